"use strict";
// Signing in with a passkey, and registering one. What the browser and the service exchange is base64url in JSON.

const bytes = text => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0));
const text = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

function show(problem) {
  const p = document.getElementById("problem");
  p.textContent = problem;
  p.hidden = problem === "";
}

async function call(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.problem);
  return said;
}

// attempt runs one step and shows why it failed. A person who closes the browser's dialog has not failed.
async function attempt(button, step) {
  show("");
  button.disabled = true;
  try {
    await step();
  } catch (e) {
    show(e.name === "NotAllowedError" ? "The browser has ended this: no passkey of this service was chosen, or it took too long." : e.message);
  } finally {
    button.disabled = false;
  }
}

const passkey = document.getElementById("passkey");
passkey?.addEventListener("click", () => attempt(passkey, async () => {
  const { publicKey } = await call("/signin/passkey/begin", { back: passkey.dataset.back });
  publicKey.challenge = bytes(publicKey.challenge);
  const c = await navigator.credentials.get({ publicKey });
  const r = c.response;
  const { back } = await call("/signin/passkey/finish", {
    id: c.id, rawId: text(c.rawId), type: c.type, clientExtensionResults: {}, response: {
      clientDataJSON: text(r.clientDataJSON), authenticatorData: text(r.authenticatorData), signature: text(r.signature), userHandle: r.userHandle ? text(r.userHandle) : "",
    },
  });
  location.assign(back);
}));

const enrol = document.getElementById("enrol");
enrol?.addEventListener("submit", event => {
  event.preventDefault();
  attempt(enrol.querySelector("button"), async () => {
    const link = location.hash.slice(1);
    const { publicKey } = await call("/signin/enrol/begin", { link });
    publicKey.challenge = bytes(publicKey.challenge);
    publicKey.user.id = bytes(publicKey.user.id);
    for (const known of publicKey.excludeCredentials ?? []) known.id = bytes(known.id);
    const c = await navigator.credentials.create({ publicKey });
    const r = c.response;
    await call("/signin/enrol/finish", {
      link, name: enrol.elements.name.value, credential: {
        id: c.id, rawId: text(c.rawId), type: c.type, clientExtensionResults: {}, response: { clientDataJSON: text(r.clientDataJSON), attestationObject: text(r.attestationObject) },
      },
    });
    history.replaceState(null, "", location.pathname); // the link is used up
    enrol.hidden = true;
    document.getElementById("done").hidden = false;
  });
});
