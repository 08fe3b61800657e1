// Uses the page of `unbraid serve` as a person would, and prints what that person sees, as lines of JSON:
// `node gateway.mjs DIRECTORY URL SCENARIO [MODEL] [N]`.
//
// A scenario that needs the other side prints a line first, and continues when a line arrives on its standard input. The last
// line is `{"views":[..],"samples":[..],"problems":[..],"urls":[..]}`, with whatever else the scenario has seen.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { launch } from "./launch.mjs";

const [directory, url, scenario, model = "demo", n = "4"] = process.argv.slice(2);
const PATIENCE = 60_000;
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const report = { views: [], samples: [], problems: [], urls: [] };
const browser = await launch(directory, JSON.parse(readFileSync(join(directory, "ready.json"), "utf8")));

const scenarios = {
  /** Asks, and watches the choices grow to their ends. */
  async answer() {
    const page = await ask();
    await ended(page);
    report.policy = report.headers["content-security-policy"];
  },

  /** Reloads while the choices are written, and opens the same address in a second tab. */
  async reload() {
    const page = await ask();
    await writing(page);
    report.before = await view(page);
    await page.reload({ waitUntil: "load" });
    const second = await open(page.url());
    await until(second, (seen) => seen.sections.some((section) => section.text));
    report.second = await view(second);
    await Promise.all([ended(page), ended(second)]);
    await page.reload({ waitUntil: "load" });
    await ended(page);
    report.prompt = await page.$eval("#prompt", (prompt) => prompt.value);
  },

  /** Cancels choice 1, and reads the others to their ends. */
  async cancel() {
    const page = await ask();
    const second = await open(page.url());
    await writing(page);
    await page.click('[data-cancel="1"]');
    await until(page, (seen) => seen.sections[1]?.end === "cancelled");
    report.before = await view(page);
    await Promise.all([ended(page), ended(second)]);
  },

  /** Cancels everything. */
  async cancelAll() {
    const page = await ask();
    await writing(page);
    await page.click("#cancel-all");
    await ended(page);
  },

  /** Reads on while the other side cuts the connection or restarts the gateway. */
  async interrupt() {
    const page = await ask();
    await writing(page);
    report.before = await view(page);
    print({ writing: true });
    await input.next();
    await until(page, (seen) => seen.state === "reconnecting");
    print({ reconnecting: true });
    await ended(page);
  },

  /** Opens an address whose stream does not exist. */
  async unknown() {
    const page = await open(`${url}#stream=AAAAAAAAAAAAAAAAAAAAAA`);
    await ended(page);
  },

  /** Opens the address in a second tab, although the stream may have no more than one reader. */
  async busy() {
    const page = await ask();
    await writing(page);
    const second = await open(page.url());
    report.before = await until(second, (seen) => seen.state === "reconnecting");
    await Promise.all([ended(page), ended(second)]);
  },

  /** Sends a request that is refused. */
  async refused() {
    const page = await open(url);
    await fill(page);
    await page.click("#send");
    await ended(page);
  },

  /** Is refused without a key, then enters it. Finally opens a signed link in a window that has no key. */
  async key() {
    const page = await open(url);
    await until(page, (seen) => seen.state === "failed");
    report.before = await view(page);
    await page.type("#key", n);
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => document.querySelector("#model").value);
    await fill(page, "2");
    await page.click("#send");
    await ended(page);
    await page.reload({ waitUntil: "load" });
    await ended(page);
    report.stored = await page.evaluate(() => [Object.values(sessionStorage), Object.values(localStorage), document.cookie]);
    await page.evaluate(() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; });
    await page.click("#share");
    await page.waitForFunction(() => window.copied);
    const guest = await open(await page.evaluate(() => window.copied), await browser.createBrowserContext());
    await ended(guest);
    report.cancelButtons = await guest.$$eval("[data-cancel]", (all) => all.filter((button) => button.checkVisibility()).length);
  },

  /** Uses the keyboard alone: fills the form, sends it, and cancels choice 1. */
  async keyboard() {
    const page = await open(url);
    await page.waitForFunction(() => document.querySelector("#model").value);
    report.focus = [];
    await tab(page, "#prompt");
    await page.keyboard.type("Hi");
    await tab(page, "#model");
    await tab(page, "#n");
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
    await page.keyboard.type(n);
    await tab(page, "#send");
    await page.keyboard.press("Enter");
    await writing(page);
    await tab(page, '[data-cancel="1"]');
    await page.keyboard.press("Enter");
    await until(page, (seen) => seen.sections[1]?.end === "cancelled");
    report.focused = await page.evaluate(() => document.activeElement.closest("[data-choice]")?.dataset.choice);
    await tab(page, '[data-choice="1"] .scroll');
    await ended(page);
  },

  /** Shows the choices in a narrow, dark window. */
  async narrow() {
    const page = await open(url);
    report.light = await colors(page);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await page.setViewport({ width: 390, height: 844 });
    await fill(page);
    await page.click("#send");
    await ended(page);
    report.dark = await colors(page);
    report.width = await page.evaluate(() => document.documentElement.scrollWidth);
  },

  /** Clicks while a lot of text arrives, and measures how long the page takes to respond. */
  async load() {
    const page = await ask(async (page) => page.evaluate(() => {
      window.clicks = [];
      document.querySelector("h1").addEventListener("click", (event) => window.clicks.push(performance.now() - event.timeStamp));
    }));
    report.waits = [];
    for (let isOver = false; !isOver;) {
      const started = Date.now();
      await page.click("h1");
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
      report.waits.push(Date.now() - started);
      await pause(100);
      isOver = await page.evaluate(() => ["ended", "failed"].includes(document.querySelector("#state").dataset.state));
    }
    report.clicks = await page.evaluate(() => window.clicks);
    await ended(page);
  },

  /** Counts how often what screen readers announce changes while one choice is written. */
  async announce() {
    await ask(async (page) => page.evaluate(() => {
      window.announced = [];
      const changed = () => window.announced.push(document.querySelector("#announcer").textContent);
      new MutationObserver(changed).observe(document.querySelector("#announcer"), { childList: true, characterData: true, subtree: true });
    })).then(async (page) => {
      await ended(page);
      await page.waitForFunction(() => window.announced.length, { timeout: PATIENCE });
      report.announced = await page.evaluate(() => window.announced);
      report.live = await page.$$eval("[aria-live], [role=status], [role=alert], [role=log]", (all) => all.map((one) => one.id));
    });
  },
};

try {
  await scenarios[scenario]();
  for (const page of await browser.pages()) if (page.url().startsWith(url)) report.views.push(await view(page));
  print(report);
} finally {
  await browser.close();
  process.exit();
}

/** Opens a page that reports everything that a page should not do. */
async function open(address, context = browser) {
  const page = await context.newPage();
  page.on("console", (message) => {
    // A refusal is logged by the browser itself.
    const isRefusal = message.text().startsWith("Failed to load resource: ");
    if (["error", "warn"].includes(message.type()) && !isRefusal) report.problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => report.problems.push(`error: ${error.message}`));
  page.on("dialog", async (dialog) => {
    report.problems.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("request", (request) => report.urls.push(request.url()));
  const response = await page.goto(address, { waitUntil: "load" });
  report.headers ??= response.headers();
  return page;
}

async function ask(prepare = async () => {}) {
  const page = await open(url);
  await prepare(page);
  await fill(page);
  await page.click("#send");
  await page.waitForFunction(() => location.hash.startsWith("#stream="), { timeout: PATIENCE });
  return page;
}

async function fill(page, choices = n) {
  await page.waitForFunction(() => document.querySelector("#model").value, { timeout: PATIENCE });
  const set = (selector, value) => page.$eval(selector, (input, value) => { input.value = value; }, value);
  await set("#model", model);
  await set("#n", choices);
  await set("#prompt", "Hi");
}

/** Presses Tab until an element has the focus, and records how that shows. */
async function tab(page, selector) {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    const outline = await page.evaluate((selector) => {
      const focused = document.activeElement;
      if (!focused.matches(selector)) return null;
      const { outlineStyle, outlineWidth } = getComputedStyle(focused);
      return `${outlineStyle} ${outlineWidth}`;
    }, selector);
    if (outline) return report.focus.push([selector, outline]);
  }
  throw new Error(`the keyboard does not reach ${selector}`);
}

/** Waits until every choice shows a part of its answer: the reasoning before it is no content yet. */
function writing(page) {
  return until(page, (seen) => seen.sections.length === Number(n) && seen.sections.every((section) => section.parts.content || section.end));
}

function ended(page) {
  return until(page, (seen) => ["ended", "failed"].includes(seen.state));
}

/** Samples the page until the condition holds. */
async function until(page, condition) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const seen = await view(page);
    report.samples.push({ sections: seen.sections.map(({ choice, text }) => ({ choice, text: text.length > 2000 ? "" : text })), url: page.url() });
    if (condition(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`not reached: ${JSON.stringify(seen).slice(0, 4000)}`);
    await pause(20);
  }
}

/** What the page shows. */
function view(page) {
  return page.evaluate(() => {
    const text = (root, selector) => root.querySelector(selector)?.textContent ?? "";
    const sections = [...document.querySelectorAll("section[data-choice]")].map((section) => {
      const { x, y, width, height } = section.getBoundingClientRect();
      const parts = Object.fromEntries([...section.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part.textContent]));
      const allowed = "div.block, h3, pre, span.key, span.string, span.word, span.raw";
      return {
        choice: section.dataset.choice, state: section.dataset.state, end: section.dataset.end, notice: section.dataset.notice,
        heading: text(section, "h2"), doing: text(section, ".doing"), rate: text(section, ".rate"), note: text(section, ".note"),
        color: getComputedStyle(section.querySelector("h2")).color, noticeColor: getComputedStyle(section.querySelector(".doing")).color,
        text: Object.values(parts).join(""), parts,
        elements: [...section.querySelectorAll("[data-part] *")].filter((inner) => !inner.matches(allowed)).length,
        cancel: section.querySelector(`button[data-cancel="${section.dataset.choice}"]`)?.checkVisibility() ?? null,
        visible: section.checkVisibility() && x >= 0 && x + width <= innerWidth, x, y, width, height,
      };
    });
    return {
      sections, hash: location.hash, title: document.title,
      state: document.querySelector("#state").dataset.state, words: document.querySelector("#state").textContent,
      about: text(document, "#about"),
      problem: document.querySelector("#problem").hidden ? "" : document.querySelector("#problem").textContent,
      models: [...document.querySelectorAll("#models option")].map((option) => option.value), model: document.querySelector("#model").value,
      cancelAll: document.querySelector("#cancel-all").disabled,
    };
  });
}

function colors(page) {
  return page.evaluate(() => {
    const { color, backgroundColor } = getComputedStyle(document.body);
    return [color, backgroundColor];
  });
}
