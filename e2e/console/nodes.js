// A person looks at a cluster, its players and their search with a real browser, in development mode. The test on the other side of stdin and stdout changes the service meanwhile.
import assert from "node:assert/strict";
import { ask, launch, person } from "./person.js";

const { MUSTER_URL: url, SHOTS: shots } = process.env;
const browser = await launch();
const problems = [];
try {
  // The page that asks for a hand-over may be refreshed right after it, and hears that the node leads already.
  const leadsAlready = (m) => /\b400\b/.test(m.text()) && `${m.text()} ${m.location().url}`.includes("/do/hand-over/");
  const { page, tabTo, accessible, text, go, press } = await person(browser, url, problems, (m) => /status of (404|422)/.test(m.text()) || leadsAlready(m), shots);

  // The nodes, with how far they are behind and when they were heard, which changes while nothing else does.
  await go("/console/cluster");
  assert.equal(await page.$$eval("tbody tr", (rows) => rows.length), 3);
  assert.match(await text("main"), /the service survives the loss of 1 of them/);
  await accessible("cluster");
  const heard = () => page.$$eval("tbody tr", (rows) => rows.map((row) => row.cells[5].textContent).join());
  const before = await heard();
  assert.match(before, /\d ms ago/);
  await page.waitForFunction((was) => [...document.querySelectorAll("tbody tr")].map((row) => row.cells[5].textContent).join() !== was, {}, before);

  // With the keyboard alone, another node becomes the leader. The name is asked for, and a reason.
  const to = await page.$eval('a[href*="/do/hand-over/"]', (a) => decodeURIComponent(a.pathname.split("/").at(-1)));
  await tabTo(`Make it the leader: ${to}`);
  await press("Enter");
  assert.match(await text("h1"), /the leader/);
  await accessible("hand-over");
  await tabTo("f-confirm");
  await page.keyboard.type("another");
  await page.keyboard.press("Tab");
  await page.keyboard.type("a new kernel");
  await press("Enter");
  assert.match(await text("#confirm-problem"), /another/);
  await tabTo("f-confirm");
  await page.keyboard.type(to);
  await press("Enter");
  assert.equal(await text("[role=status]"), "The node leads the cluster.");
  assert.equal(await text(".figures dd"), to);
  await ask(`handed over to ${to}`);

  // Parties appear while the list is open. The keyboard leads to one.
  await go("/console/parties");
  assert.match(await text("tbody"), /No party/);
  await ask("party");
  await page.waitForFunction(() => document.querySelector("tbody").textContent.includes("ann"));
  await accessible("parties");
  await go("/console/parties?player=AN&order=newest");
  await tabTo(await text("tbody th a"));
  await press("Enter");
  assert.match(await text("h1"), /^Party pty-/);
  await ask("join");
  await page.waitForFunction(() => document.querySelectorAll("main table tbody tr").length === 2);
  assert.match(await text("main"), /bob/);
  await accessible("party");
  const party = page.url();
  await ask("leave"); // both
  await page.goto(party).catch(() => {}); // the open page may be on its way by itself
  assert.match(await text("[role=alert]"), /has ended/);
  await Promise.all([page.waitForNavigation(), page.click("main p a")]);
  const past = await text("tbody");
  assert.ok(past.includes("ann") && past.includes("bob"), past);

  // The pool follows the tickets; each plot has its values as a table.
  await go("/console/matchmaking/ranked");
  assert.match(await text("main"), /No ticket waits/);
  await ask("ticket");
  await page.waitForFunction(() => document.querySelectorAll(".pool svg").length === 3);
  await page.click(".pool details summary");
  assert.match(await text(".pool details tbody"), /< 5 s/);
  await accessible("pool");
  await go("/console/matchmaking/ranked?attribute=mode&region=eu-central-1");
  assert.match(await text(".pool"), /Players by latency to eu-central-1/);
  assert.match(await text(".pool"), /Players by mode/);
  await tabTo(await text("main .wide tbody th a"));
  await press("Enter");
  assert.match(await text("main"), /SEARCHING/);
  await accessible("ticket");
} finally {
  await browser.close();
}
assert.deepEqual(problems, []);
process.exit(0);
