// Line numbers beside the text of a rule set, lines with mistakes marked, and links from a mistake to its place.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const text = document.getElementById("f-body");
  const numbers = document.querySelector(".numbers");

  function number() {
    const wrong = new Set([...document.querySelectorAll("#findings [data-line]")].map((place) => Number(place.dataset.line)));
    numbers.replaceChildren(...text.value.split("\n").map((_, i) => {
      const line = document.createElement(wrong.has(i + 1) ? "mark" : "span");
      line.textContent = `${i + 1}\n`;
      return line;
    }));
    numbers.scrollTop = text.scrollTop;
  }

  numbers.hidden = false;
  number();
  text.addEventListener("input", number);
  text.addEventListener("scroll", () => { numbers.scrollTop = text.scrollTop; });
  document.addEventListener("htmx:afterSwap", number);
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.target.id === "findings" && !event.detail.successful) {
      event.target.textContent = "This text was not checked.";
      number();
    }
  });
  document.addEventListener("click", (event) => {
    const place = event.target.closest("#findings [data-line]");
    if (!place) {
      return;
    }
    event.preventDefault();
    const lines = text.value.split("\n");
    const line = Math.min(Number(place.dataset.line), lines.length);
    const start = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
    const at = start + [...lines[line - 1]].slice(0, Number(place.dataset.column) - 1).join("").length; // columns count characters
    text.focus();
    text.setSelectionRange(at, start + lines[line - 1].length);
    text.scrollTop = (line - 4) * text.scrollHeight / lines.length;
  });
});
