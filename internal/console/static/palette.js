// The palette: Ctrl-K, some letters of a page, an id or a name, and Enter. The focus stays in its box; the options follow the pattern of a combobox with a list.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const palette = document.getElementById("palette");
  if (!palette) {
    return;
  }
  const box = document.getElementById("palette-text");
  const list = document.getElementById("palette-hits");
  const count = document.getElementById("palette-count");
  let chosen = 0;
  let asked = 0; // answers may come in another order than the questions
  let wait;

  function choose(i) {
    const options = [...list.children];
    chosen = options.length === 0 ? 0 : (i + options.length) % options.length;
    options.forEach((option, n) => option.setAttribute("aria-selected", String(n === chosen)));
    options[chosen]?.scrollIntoView({ block: "nearest" });
    if (options.length === 0) {
      box.removeAttribute("aria-activedescendant");
    } else {
      box.setAttribute("aria-activedescendant", options[chosen].id);
    }
  }

  async function find() {
    const mine = ++asked;
    const answer = await fetch("/console/find.json?id=" + encodeURIComponent(box.value)).catch(() => null);
    const signedOut = answer?.redirected; // to the sign-in
    const hits = answer?.ok && !signedOut ? await answer.json().catch(() => null) : null;
    if (mine !== asked) {
      return;
    }
    list.replaceChildren(...(hits ?? []).map((hit, i) => {
      const option = document.createElement("li");
      const kind = document.createElement("span");
      kind.textContent = hit.kind;
      option.id = "palette-hit-" + i;
      option.setAttribute("role", "option");
      option.dataset.url = hit.url;
      option.append(kind, hit.text);
      option.addEventListener("click", () => location.assign(hit.url));
      return option;
    }));
    box.setAttribute("aria-expanded", String(list.children.length > 0));
    list.dataset.of = box.value;
    count.textContent = signedOut ? "You are not signed in any more." : hits === null ? "The service does not answer." : hits.length === 0 ? "Nothing has this id or name." : hits.length === 1 ? "1 result" : hits.length + " results";
    choose(0);
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!palette.open) {
        box.value = "";
        palette.showModal();
        find();
      }
    }
  });
  box.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(find, 150);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      choose(chosen + step);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      // What was typed since the list was made goes to the page of results, which leads on if there is one.
      const current = list.dataset.of === box.value && list.children[chosen];
      location.assign(current ? current.dataset.url : "/console/find?id=" + encodeURIComponent(box.value));
    }
  });
});
