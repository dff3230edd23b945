// A person looks at the console with a real browser. The test on the other side of stdin and stdout changes the service meanwhile.
import assert from "node:assert/strict";
import { ask, launch, patience, person } from "./person.js";

const { MUSTER_URL: url, KEY: key, SECRET: secret, FLEET: fleet, BUILD: build, GAME: game, NAME: name, ADMIN_KEY: adminKey, ADMIN_SECRET: adminSecret, RUN_KEY: runKey, RUN_SECRET: runSecret, SHOTS: shots } = process.env;

const browser = await launch();
const problems = [];
let revoked = false;
try {
  const { page, tabTo, accessible, text, go, submit } = await person(browser, url, problems, expected, shots);

  // A page leads to the sign-in, and the sign-in back to it.
  await go("/console/fleets");
  assert.equal(await text("h1"), "Sign in");
  await accessible("sign-in");
  await page.type("#key", key);
  await page.type("#secret", "wrong");
  await submit("form.card button");
  assert.match(await text("[role=alert]"), /wrong/);
  await page.type("#secret", secret);
  await submit("form.card button");
  assert.equal(await text("h1"), "Fleets");
  assert.match(await text("tbody"), /dev/);

  const pages = {
    overview: "/console/", fleets: "/console/fleets", fleet: `/console/fleets/${fleet}`, "game-sessions": "/console/game-sessions", "game-session": `/console/game-session/${game}`,
    hosts: "/console/hosts", aliases: "/console/aliases", queues: "/console/queues", matchmaking: "/console/matchmaking", player: "/console/player/ann",
    "fleet-metrics": `/console/fleets/${fleet}/metrics`, "fleet-values": `/console/fleets/${fleet}/metrics?graph=game-sessions&zone=utc`, "queue-metrics": "/console/queues/ranked/metrics", health: "/console/health",
    search: "/console/game-sessions/search?filter=playerSessionCount+%3C+9&sort=creationTimeMillis+DESC", "search-mistake": "/console/game-sessions/search?filter=gameSessionName+%3D+%22x%22",
    computes: `/console/fleets/${fleet}/computes`, processes: `/console/fleets/${fleet}/processes`, events: `/console/fleets/${fleet}/events`, "player-sessions": "/console/player-sessions/ann",
    builds: "/console/builds", build: `/console/builds/${build}`, "events-of-player": "/console/events/player/ann", "events-of-fleet": `/console/events/fleet/${fleet}`, "events-of-queue": "/console/events/queue/ranked",
    queue: "/console/queues/ranked", "placements-ended": "/console/queues/ranked/ended", configuration: "/console/matchmaking/duel", tickets: "/console/matchmaking/duel/tickets", "players-in-game": `/console/players-in/${game}`,
    "create-location": "/console/do/create-location", "create-fleet": "/console/do/create-fleet", "register-compute": `/console/do/register-compute/${fleet}`,
    parties: "/console/parties", cluster: "/console/cluster", "rule-sets": "/console/rule-sets", "rule-set-editor": "/console/do/create-rule-set?configuration=duel",
  };
  for (const [title, path] of Object.entries(pages)) {
    assert.equal((await go(path)).status(), 200, path);
    if (await page.$(".graphs")) {
      await page.waitForSelector(".graphs[data-drawn]");
    }
    await accessible(title);
  }
  assert.equal((await go("/console/fleets/fleet-none")).status(), 404);

  // What players and servers choose is text.
  await go("/console/game-sessions");
  assert.ok((await text("tbody")).includes(name));
  assert.equal(await page.$("tbody script, tbody img"), null);

  // A graph has a line in its color, in both themes, and a range is a link.
  await go(`/console/fleets/${fleet}/metrics`);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.waitForFunction(lineDrawn);
  }
  // Each figure stands at its name, although the table has the lines in another order than the answer.
  await page.$eval('[data-graph="game-sessions"] tbody', (table) => {
    table.prepend(table.rows[1]);
    table.rows[1].cells[1].textContent = "old";
    table.rows[2].cells[0].lastChild.textContent = "Gone";
  });
  await page.emulateMediaFeatures([]);
  await page.waitForFunction(() => {
    const rows = [...document.querySelector('[data-graph="game-sessions"] tbody').rows].map((row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent).join(" "));
    return /^ActivatingGameSessions \d+$/.test(rows[0]) && /^ActiveGameSessions \d+$/.test(rows[1]) && rows[2] === "Gone –";
  });
  await go(`/console/fleets/${fleet}/metrics`);
  assert.match(await text('[data-graph="game-sessions"] tbody'), /ActiveGameSessions\d+/);
  await Promise.all([page.waitForNavigation(), page.evaluate(() => document.querySelector('.ranges a[href*="range=455d"]').click())]);
  await page.waitForSelector(".graphs[data-drawn]");

  // An open page follows the state, and leaves alone what a person has chosen in its form.
  await go("/console/game-sessions?status=ACTIVE");
  await page.select("form.filter select[name=status]", "TERMINATED");
  await ask("create");
  await page.waitForFunction(() => document.querySelector("tbody").textContent.includes("made while the page was open"));
  assert.equal(await page.$eval("form.filter select[name=status]", (e) => e.value), "TERMINATED");

  // Columns are chosen in a form, which the page leaves open while it follows the state. The export of the page has them.
  await go("/console/fleets");
  await page.click("details.columns summary");
  for (const box of await page.$$("details.columns input[type=checkbox]:checked")) {
    await box.click();
  }
  await page.click("details.columns input[value=id]");
  await accessible("columns");
  await submit("details.columns button");
  assert.equal(new URL(page.url()).search, "?column=id");
  assert.equal((await text("thead")).trim(), "Id");
  const exported = await page.evaluate(async () => (await fetch(document.querySelector("a[download][href*=json]").href)).json());
  assert.deepEqual(exported, { list: "fleets", rows: [{ id: fleet }], next: null });

  // With the keyboard alone: from a player to what happened to it and around it, to a choice of these, and to the game session.
  await go("/console/player/ann");
  await tabTo("Events");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(await text("h1"), "Events of player ann");
  assert.match(await text("main .hint"), /Left out: entries of the audit log/);
  await tabTo("what");
  await page.keyboard.type("reserved");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(new URL(page.url()).searchParams.get("what"), "reserved");
  const found = await text("tbody");
  assert.ok(found.includes("PLAYER_RESERVED") && !found.includes("GAME_SESSION_CREATED"), found);
  assert.match(await text(".command"), /muster events player ann --what reserved/);
  await tabTo(game);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(new URL(page.url()).pathname, `/console/game-session/${game}`);

  // The box for a filter completes the attribute that is being written.
  await go("/console/game-sessions/search");
  await page.type("#filter", "maximumSessions>1 AND hasav");
  assert.equal(await page.$eval("#attributes option", (option) => option.value), "maximumSessions>1 AND hasAvailablePlayerSessions");
  await page.evaluate(() => document.activeElement.blur());

  // The keyboard finds any id.
  await page.keyboard.press("/");
  await page.keyboard.type(fleet);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(new URL(page.url()).pathname, `/console/fleets/${fleet}`);

  // So does the palette, with the focus in its box: parts of a name, arrows, and Enter.
  await page.keyboard.down("Control");
  await page.keyboard.press("k");
  await page.keyboard.up("Control");
  await page.waitForSelector("#palette[open] li");
  await page.keyboard.type("rank");
  await page.waitForFunction(() => document.querySelector("#palette-hits li")?.textContent === "queueranked");
  assert.equal(await page.evaluate(() => document.getElementById(document.activeElement.getAttribute("aria-activedescendant")).textContent), "queueranked");
  await accessible("palette");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type("e");
  await page.waitForFunction(() => document.querySelectorAll("#palette-hits li").length > 2);
  await page.keyboard.press("ArrowDown");
  const second = await page.$eval("#palette-hits li[aria-selected=true]", (option) => option.dataset.url);
  assert.equal(await page.$eval("#palette-hits li:nth-child(2)", (option) => option.dataset.url), second);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(page.url(), url + second);
  await page.keyboard.down("Control");
  await page.keyboard.press("k");
  await page.keyboard.up("Control");
  await page.waitForSelector("#palette[open] li");
  await page.evaluate(() => { // an answer that breaks off
    window.fetch = async () => new Response(new ReadableStream({ start(to) { to.enqueue(new TextEncoder().encode("[{")); to.error(new TypeError("lost")); } }));
  });
  await page.keyboard.type("rank");
  await page.waitForFunction(() => document.getElementById("palette-count").textContent === "The service does not answer.");
  await go("/console/find?id=e"); // without the palette
  assert.match(await text("h1"), /Find e/);
  await accessible("find");

  // A mistake in a rule set is marked while a person writes, and leads to its place. Who may only look can try a rule set.
  await go("/console/do/create-rule-set?configuration=duel");
  assert.match(await text("#findings"), /is valid/);
  await page.$eval("#f-body", (box) => {
    box.value = box.value.replace('"maxPlayers": 1', '"maxPlayers": -1');
    box.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await page.waitForFunction(() => {
    const mark = document.querySelector(".numbers mark");
    return mark && mark.textContent.trim() === document.querySelector("#findings [data-line]")?.dataset.line;
  });
  await accessible("rule-set-mistake");
  await page.click("#findings [data-line]");
  assert.match(await page.$eval("#f-body", (box) => box.value.slice(box.selectionStart)), /^-1/);
  await page.$eval("#f-body", (box) => { box.value = box.value.replace("-1", "1"); });
  await page.$eval("#f-minutes", (box) => { box.value = "5"; });
  await Promise.all([page.waitForNavigation(), page.click("button[formaction*=simulate]")]);
  assert.match(await text("#trial"), /duel-rules\.json/);
  assert.ok(await page.$("#trial svg rect"));
  await accessible("simulation");
  await Promise.all([page.waitForNavigation(), page.click("button[formaction*=replay]")]);
  assert.match(await text("#trial"), /2 tickets from/);
  await accessible("replay");

  // What a server process prints is asked for; here no agent has it.
  await go(`/console/game-session/${game}`);
  await submit('a[href*="/console/output/"]');
  await page.waitForFunction(() => document.getElementById("output-state").textContent.startsWith("There is no output: "));
  await accessible("output");

  // Times are in the zone of the browser, and in UTC for who wants that.
  const zoned = await text("#zone");
  await page.click("#zone");
  assert.notEqual(await text("#zone"), zoned);
  await go("/console/fleets");
  assert.match(await text("tbody time"), / UTC$/);
  await page.click("#zone");
  assert.doesNotMatch(await text("tbody time"), / UTC$/);

  // Who may only look is told which role an action needs.
  await go(`/console/game-session/${game}`);
  assert.match(await text("main .offers"), /End game session: needs the role backend or admin/);
  await submit("form.who button");

  // With the keyboard alone, a person who may ends a game session.
  await page.type("#key", runKey);
  await page.type("#secret", runSecret);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  await go(`/console/game-session/${game}`);
  await tabTo("End game session");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  await accessible("end-game-session");
  await tabTo("f-mode");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.querySelector("#command").textContent.includes("FORCE_TERMINATE"));
  assert.equal(await page.evaluate(() => document.activeElement.id), "f-mode");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Tab");
  await page.keyboard.type("another one");
  await page.keyboard.press("Tab");
  await page.keyboard.type("stuck in <b>loading</b>");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.match(await text("#confirm-problem"), /another one/);
  await accessible("end-game-session-refused");
  await tabTo("f-confirm");
  await page.keyboard.type(game.slice(game.lastIndexOf("/") + 1)); // over what was there, which Tab has selected
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(new URL(page.url()).pathname, `/console/game-session/${game}`);
  assert.match(await text("[role=status]"), /told to end/);
  await ask("ended");
  await page.waitForFunction(() => document.querySelector(".why .state").textContent === "TERMINATING");
  await accessible("ended");
  await submit("form.who button");

  // An administrator makes a key, whose secret stays on the page until the person leaves it.
  await page.type("#key", adminKey);
  await page.type("#secret", adminSecret);
  await submit("form.card button");
  for (const [title, path] of Object.entries({ audit: "/console/audit", settings: "/console/settings", keys: "/console/keys", "create-key": "/console/do/create-key", policies: "/console/policies", "policy-editor": "/console/do/create-policy", access: "/console/access" })) {
    assert.equal((await go(path)).status(), 200, path);
    await accessible(title);
  }
  await go("/console/events/queue/ranked?of=audit"); // who made it
  assert.match(await text("tbody"), /CreateGameSessionQueue/);
  await go("/console/do/create-key");
  await page.type("#f-name", "made in a browser");
  await page.type("#f-reason", "a test");
  await submit("form.act button");
  await accessible("made-key");
  assert.match(await text("dl.facts"), /made in a browser/);
  await submit("main p a");
  assert.match(await text("tbody"), /made in a browser/);
  // The longest name stays inside of the page.
  await go("/console/do/create-fleet");
  await page.$eval("#f-name", (e) => { e.value = "x".repeat(1024); });
  await page.$eval("input[name=locations]", (e) => { e.checked = true; });
  await submit("form.act > button");
  await go("/console/");
  assert.match(await text(".attention"), /x{1024} can start no game session/);
  await accessible("overview-long-name");

  // A policy is written with the keyboard: its mistake is shown while it is typed, and where it is. It is attached, and explained.
  await go("/console/do/create-policy");
  await page.focus("#f-body");
  await page.$eval("#f-body", (e) => e.setSelectionRange(e.value.indexOf("Allow"), e.value.indexOf("Allow") + 5));
  await page.keyboard.type("Perhaps");
  await page.waitForSelector("#findings [data-line='6']");
  assert.match(await text("#findings"), /Statement\[0\]\.Effect/);
  await accessible("policy-mistake");
  await page.click("#findings [data-line]"); // to the place
  assert.equal(await page.$eval("#f-body", (e) => e.value.slice(e.selectionStart).startsWith('"Perhaps"')), true);
  await page.$eval("#f-body", (e) => e.setSelectionRange(e.value.indexOf("Perhaps"), e.value.indexOf("Perhaps") + 7));
  await page.keyboard.type("Allow");
  await page.waitForFunction(() => /is valid/.test(document.querySelector("#findings").textContent));
  await tabTo("f-name");
  await page.keyboard.type("look-around");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.match(await text("h1"), /look-around/);
  assert.match(await text("[role=status]"), /once it is attached/);
  await accessible("policy");
  await go("/console/do/attach-policy/look-around");
  await accessible("attach-policy");
  await page.type("#f-target", "group:support");
  await page.type("#f-reason", "they look");
  await submit("form.act button");
  assert.match(await text("main ul"), /group:support/);
  await go("/console/access");
  await page.type("#f-who", "group:support");
  await page.type("#f-action", "gamelift:ListFleets");
  await submit("form.act button");
  assert.match(await text(".why"), /ALLOWED Statement "LookAround" of policy look-around allows it/);
  await accessible("access-explained");
  // A rule set is saved and used, with a reason.
  await go("/console/do/create-rule-set?configuration=duel");
  await page.type("#f-name", "duel-rules-2");
  await page.type("#f-reason", "closer games");
  await submit("form.act > fieldset:last-of-type button");
  assert.equal(new URL(page.url()).pathname, "/console/do/use-rule-set/duel");
  await accessible("use-rule-set");
  await submit("form.act button");
  assert.match(await text("tbody"), /duel-rules-2/);
  await ask("saved");
  // A page of what is gone says so.
  await go("/console/queues/ranked");
  await ask("delete");
  await page.waitForFunction(() => document.querySelector("main [role=alert]")?.textContent.includes("There is no queue"));
  await submit("form.who button");

  // A link signs in when the person presses the button, and once. Its code leaves the address.
  const link = await ask("link");
  for (const wanted of ["Overview", "Sign in with a link"]) {
    await page.goto("about:blank"); // else only the fragment changes
    await page.goto(link);
    await page.waitForFunction(() => document.querySelector("#code").value !== "");
    assert.equal(new URL(page.url()).hash, "");
    await accessible("link");
    await submit("#link button");
    assert.equal(await text("h1"), wanted);
  }
  assert.match(await text("[role=alert]"), /used/);
  await go("/console/");
  assert.equal(await text("h1"), "Overview");

  // A page whose stream has ended says that it shows what was before.
  const streamUntil = (name, hidden) => page.waitForFunction((n, h) => { // again and again, because the page's own stream may open meanwhile
    document.querySelector("[sse-connect]").dispatchEvent(new CustomEvent(n, { bubbles: true, detail: {} }));
    return document.getElementById("behind").hidden === h;
  }, {}, name, hidden);
  await streamUntil("htmx:sseError", false);
  await accessible("behind");
  await streamUntil("htmx:sseOpen", true);

  // A revoked key is out, on the page that is open, too. What was written there stays.
  await go("/console/do/create-location");
  await page.type("#f-name", "nowhere");
  const written = await page.$eval("#f-name", (e) => e.value);
  revoked = true;
  await ask("revoke");
  await page.waitForSelector("#signed-out", { visible: true });
  await accessible("signed-out");
  assert.equal(await page.$eval("#f-name", (e) => e.value), written);
  const fresh = await browser.newPage(); // the open one may be on its way to the sign-in by itself
  await fresh.goto(url + "/console/", { timeout: patience });
  assert.equal(await fresh.$eval("h1", (e) => e.textContent), "Sign in");

  // Reports whether the first graph has a pixel of the color of its first line.
  function lineDrawn() {
    const section = document.querySelector(".graph");
    const canvas = section.querySelector("canvas");
    if (!canvas) {
      return false;
    }
    const color = getComputedStyle(section.querySelector(".key")).color.match(/\d+/g).map(Number);
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] === 255 && color.every((part, c) => Math.abs(part - pixels[i + c]) < 8)) {
        return true;
      }
    }
    return false;
  }
} finally {
  await browser.close();
}
assert.deepEqual(problems, []);

// The browser reports answers with an error status; these are wanted. The event stream of an open page ends with its key, which htmx reports.
function expected(message) {
  return /status of (401|404|409|422)/.test(message.text()) || revoked;
}
process.exit(0);
