// What the tests with a browser share: a page that notes problems, a look at whether it is accessible, and the keyboard.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const patience = 60_000; // for a loaded machine

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// ask has the test on the other side of stdin and stdout change the service, and returns what it answers.
export async function ask(what) {
  console.log(what);
  const { value } = await lines.next();
  assert.match(value, /^done/);
  return value.slice("done ".length);
}

export const launch = () => puppeteer.launch({
  executablePath: "/usr/bin/chromium",
  timeout: patience,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// person opens a page. Errors of the browser that are not expected, and requests to other hosts, become problems.
export async function person(browser, url, problems, expected, shots) {
  const page = await browser.newPage();
  page.setDefaultTimeout(patience);
  await page.emulateTimezone("Europe/Berlin"); // which pages tell from UTC
  page.on("console", (m) => m.type() === "error" && !expected(m) && problems.push(`console: ${m.text()} ${m.location().url ?? ""}`));
  page.on("pageerror", (e) => problems.push(`script: ${e}`));
  page.on("dialog", (d) => { problems.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => r.url().startsWith(url) || problems.push(`foreign request: ${r.url()}`));

  // tabTo goes on with Tab until the focus is on the element with an id or a text.
  async function tabTo(what) {
    for (let i = 0; i < 200; i++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate((w) => document.activeElement.id === w || document.activeElement.name === w || document.activeElement.textContent === w, what)) {
        return;
      }
    }
    assert.fail(`Tab does not reach ${what}`);
  }

  // accessible looks at a page in both themes and on a phone.
  async function accessible(title) {
    for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [390, "light"]]) {
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => axe.run());
      for (const v of violations) {
        problems.push(`${title} (${width}, ${scheme}): ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`);
      }
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) {
        problems.push(`${title} is ${over} px wider than ${width} px`);
      }
      if (shots && width === 1280) {
        await page.screenshot({ path: `${shots}/${title}-${scheme}.png` });
      }
    }
    await page.setViewport({ width: 1280, height: 900 });
  }

  return {
    page, tabTo, accessible,
    text: (selector) => page.$eval(selector, (e) => e.textContent),
    go: (path) => page.goto(url + path),
    submit: (selector) => Promise.all([page.waitForNavigation(), page.click(selector)]),
    press: (key) => Promise.all([page.waitForNavigation(), page.keyboard.press(key)]),
  };
}
