// People sign in with a real browser: one through an identity provider, one with a passkey of a virtual authenticator. The test on the other side of stdin and stdout changes the service meanwhile.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const { MUSTER_URL: url } = process.env;
const patience = 60_000; // for a loaded machine

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function ask(what) {
  console.log(what);
  const { value } = await lines.next();
  assert.match(value, /^done/);
  return value.slice("done ".length);
}

const browser = await puppeteer.launch({
  executablePath: "/usr/bin/chromium",
  timeout: patience,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const problems = [];
async function person(authenticator) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  page.on("console", (m) => m.type() === "error" && !m.location().url?.includes("favicon") && !/status of 40[13]|object Event/.test(m.text()) && problems.push(`console: ${m.text()} ${m.location().url ?? ""}`));
  page.on("pageerror", (e) => problems.push(`script: ${e}`));
  const session = await page.createCDPSession();
  if (authenticator) {
    await session.send("WebAuthn.enable");
    const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
      options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    });
    return { page, session, authenticatorId };
  }
  return { page, session };
}
const text = (page, selector) => page.$eval(selector, (e) => e.textContent);
const arrive = (page, path) => page.waitForFunction((p) => location.pathname.startsWith(p), {}, path);

try {
  // Through the provider: the console's page leads there and back to the page that was asked for.
  const ann = await person(false);
  await ann.page.goto(`${url}/console/fleets`);
  assert.equal(await text(ann.page, "h1"), "Sign in");
  await Promise.all([arrive(ann.page, "/console/fleets"), ann.page.evaluate(() => [...document.querySelectorAll("a")].find((a) => a.textContent === "Sign in with The studio").click())]);
  await ann.page.waitForSelector("nav");
  assert.equal(await text(ann.page, "h1"), "Fleets");
  const cookies = (await ann.session.send("Network.getAllCookies")).cookies;
  assert.ok(cookies.every((c) => c.httpOnly), "a cookie is for scripts, too");

  // With a passkey: the link registers it, and then it signs in.
  const bob = await person(true);
  const link = await ask("enrol");
  await bob.page.goto(link);
  await bob.page.click("#enrol button");
  await bob.page.waitForSelector("#done:not([hidden])");
  assert.ok(!bob.page.url().includes("#person"), "the used link is still in the address");
  await bob.page.goto(link);
  await bob.page.reload();
  await bob.page.click("#enrol button");
  await bob.page.waitForSelector("#problem:not([hidden])");
  assert.match(await text(bob.page, "#problem"), /used/);

  await bob.page.goto(`${url}/signin?back=/console/hosts`);
  await Promise.all([arrive(bob.page, "/console/hosts"), bob.page.click("#passkey")]);
  await bob.page.waitForSelector("nav");
  assert.equal(await text(bob.page, "h1"), "Hosts");
  await ask("signed-in");

  // An operator ends the session: the open page leads to the sign-in.
  await arrive(bob.page, "/console/sign-in");
  await bob.page.waitForSelector("form.card");
  assert.equal(await text(bob.page, "h1"), "Sign in");

  // A passkey that nobody here has.
  const eve = await person(true);
  await eve.page.goto(`${url}/signin`);
  const { credentials } = await bob.session.send("WebAuthn.getCredentials", { authenticatorId: bob.authenticatorId });
  assert.equal(credentials.length, 1);
  const copy = { ...credentials[0], userHandle: Buffer.alloc(16, 7).toString("base64") };
  await eve.session.send("WebAuthn.addCredential", { authenticatorId: eve.authenticatorId, credential: copy });
  await eve.page.click("#passkey");
  await eve.page.waitForSelector("#problem:not([hidden])");
  const unknown = await text(eve.page, "#problem");
  assert.match(unknown, /not registered with this service/);

  // A copy of the authenticator signs in once with its counter; then the first one, whose counter is behind, is refused in the same words.
  await eve.session.send("WebAuthn.removeCredential", { authenticatorId: eve.authenticatorId, credentialId: copy.credentialId });
  await eve.session.send("WebAuthn.addCredential", { authenticatorId: eve.authenticatorId, credential: { ...credentials[0], signCount: credentials[0].signCount + 10 } });
  await Promise.all([arrive(eve.page, "/console"), eve.page.click("#passkey")]);
  await bob.page.goto(`${url}/signin`);
  await bob.page.click("#passkey");
  await bob.page.waitForSelector("#problem:not([hidden])");
  assert.equal(await text(bob.page, "#problem"), unknown);

  // Without the verification of the user, the authenticator's answer counts for nothing.
  await bob.session.send("WebAuthn.setUserVerified", { authenticatorId: bob.authenticatorId, isUserVerified: false });
  await bob.page.click("#passkey");
  await bob.page.waitForFunction(() => !document.getElementById("passkey").disabled);
  assert.ok((await text(bob.page, "#problem")).length > 0);
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
process.exit(0); // stdin is still open
