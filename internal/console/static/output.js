// Shows what a server process prints, while it prints it. The end stays in view until a person scrolls up.
"use strict";

addEventListener("DOMContentLoaded", async () => {
  const most = 500_000; // characters that the page keeps
  const box = document.getElementById("output");
  const state = document.getElementById("output-state");
  const say = (text) => { state.textContent = text; };

  function add(text) {
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    box.append(text);
    if (box.textContent.length > most) {
      const kept = box.textContent.slice(-most / 2);
      box.textContent = kept.slice(kept.indexOf("\n") + 1);
    }
    if (atEnd) {
      box.scrollTop = box.scrollHeight;
    }
  }

  say("Asking for the output …");
  try {
    const answer = await fetch(box.dataset.source);
    if (answer.redirected) { // to the sign-in
      location.reload();
      return;
    }
    if (!answer.ok) {
      const problem = await answer.json().catch(() => ({}));
      say(problem.message ? `There is no output: ${problem.message}.` : "There is no output.");
      return;
    }
    const note = answer.headers.get("Muster-Note");
    say(note ? `This is ${note}.` : "What is printed from now on appears here.");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      add(part.value);
    }
    say(note ? `This is ${note}.` : "The output has ended.");
  } catch {
    say("The connection is lost. Load the page again for what was printed since.");
  }
});
