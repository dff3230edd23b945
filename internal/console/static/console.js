// What the pages cannot do without a script: instants in the viewer's zone, a key for the search, and forms that stay while the page follows the state.
"use strict";

// Instants are in the zone of the browser, or in UTC if the person has chosen so; the other one is in their titles.
const utc = () => localStorage.getItem("muster-zone") === "utc";
const form = (zone) => new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: zone });
const forms = { local: form(), utc: form("UTC") };

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const texts = [forms.local.format(at), forms.utc.format(at) + " UTC"];
    [time.textContent, time.title] = utc() ? texts.reverse() : texts;
  }
  const zone = document.getElementById("zone");
  if (zone) {
    const here = forms.local.resolvedOptions().timeZone;
    zone.hidden = here === "UTC";
    zone.textContent = utc() ? `Times are in UTC: show them in ${here}` : `Times are in ${here}: show them in UTC`;
  }
}

// An open page is fetched again at each change. The form in which a person writes or chooses stays as it is.
Idiomorph.defaults.callbacks.beforeNodeMorphed = (old) => !(old instanceof Element && old.matches("form.filter, form.act, details.columns"));

document.addEventListener("DOMContentLoaded", () => {
  showTimes(document);
  document.getElementById("zone")?.addEventListener("click", () => {
    localStorage.setItem("muster-zone", utc() ? "local" : "utc");
    showTimes(document);
  });
  const nav = document.querySelector("header nav"); // which a phone shows a part of
  const here = nav?.querySelector("[aria-current]");
  if (here) {
    nav.scrollLeft = here.offsetLeft - nav.offsetLeft - 16;
  }
});
document.addEventListener("htmx:afterSwap", () => showTimes(document));

// A page with a form does not leave for the sign-in: it says that the person has to sign in again, and keeps what is written in it.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const note = document.getElementById("signed-out");
  const out = event.detail.xhr.status === 401;
  if (out && document.querySelector("form.act")) {
    event.preventDefault();
    note.hidden = false;
  } else if (!out && note) {
    note.hidden = true;
  }
});

// A page whose object is gone, or which the person may no longer see, says so; a form stays, and says so when it is sent.
document.addEventListener("htmx:beforeSwap", (event) => {
  const detail = event.detail;
  if (detail.target.id === "main" && [403, 404].includes(detail.xhr.status) && !document.querySelector("form.act")) {
    [detail.shouldSwap, detail.isError] = [true, false];
  }
});

// A page that cannot follow the state says so: its stream does not come back at once, or it could not be fetched again.
const behind = (is) => { document.getElementById("behind").hidden = !is; };
let lost;
document.addEventListener("htmx:sseError", () => { lost ??= setTimeout(() => behind(true), 5000); });
document.addEventListener("htmx:sseOpen", () => {
  clearTimeout(lost);
  lost = undefined;
  behind(false);
});
for (const failed of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(failed, (event) => event.detail.target.id === "main" && behind(true));
}
document.addEventListener("htmx:afterSwap", (event) => event.detail.target.id === "main" && behind(false));
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing) {
    const find = document.getElementById("find");
    if (find) {
      event.preventDefault();
      find.focus();
    }
  }
});
// A form that is on its way is not sent a second time.
document.addEventListener("submit", (event) => {
  if (event.target.matches("form.act")) {
    event.submitter?.setAttribute("disabled", "");
  }
});

// Boxes for filters complete the name of an attribute: a browser compares suggestions with the whole text, so they begin with what stands before the word.
document.addEventListener("input", (event) => {
  const list = event.target.list;
  if (list?.id !== "attributes") {
    return;
  }
  list.names ??= [...list.options].map((option) => option.value);
  const [, before, word] = event.target.value.match(/^(.*?)([\w.]*)$/s);
  list.replaceChildren(...list.names.filter((name) => word !== "" && name.toLowerCase().startsWith(word.toLowerCase())).map((name) => new Option("", before + name)));
});

// The code of a link that signs in is in the fragment. It leaves the address, so that the browser's history does not keep it.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("link");
  if (form && location.hash.length > 1) {
    form.elements.code.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
    form.querySelector("button").focus();
  }
});
