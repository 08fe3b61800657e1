// Opens the page of examples/proxy, asks, and prints what a user would see, as lines of JSON:
// `node drive.mjs DIRECTORY URL CHOICES SCENARIO`.
//
// - `{"writing":true}` when every choice has text
// - `{"samples":[..],"panes":[..],"problems":[..],"urls":[..]}` at the end

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./launch.mjs";

const [directory, url, choices, scenario] = process.argv.slice(2);
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const browser = await launch(directory, JSON.parse(readFileSync(join(directory, "ready.json"), "utf8")));
try {
  const page = await browser.newPage();
  const [problems, urls, samples] = [[], [], []];
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", async (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("requestfailed", (request) => {
    const [url, reason] = [request.url(), request.failure()?.errorText];
    // The page closes a stream when it has its end.
    if (!(url.includes("/choices/") && reason === "net::ERR_ABORTED")) problems.push(`failed: ${url} ${reason}`);
  });
  page.on("request", (request) => urls.push(request.url()));

  await page.goto(url, { waitUntil: "load" });
  await page.$eval("#count", (input, value) => { input.value = value; }, choices);
  await page.click("#ask button");
  await until(page, samples, (panes) => panes.length === Number(choices) && panes.every((pane) => pane.text || pane.end));
  print({ writing: true });
  if (scenario === "leave") {
    await page.close();
  } else {
    if (scenario === "stop") await page.click(".pane .stop");
    if (scenario === "again") await page.click("#ask button");
    await until(page, samples, (panes) => panes.length === Number(choices) && panes.every((pane) => pane.end));
  }
  const panes = samples.at(-1);
  print({ samples, panes, problems, urls });
} finally {
  await browser.close();
}

/** Samples the panes until the condition holds. */
async function until(page, samples, condition) {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const panes = await page.$$eval(".pane", (panes) => panes.map((pane) => {
      const { x, y, width, height } = pane.getBoundingClientRect();
      const text = (name) => pane.querySelector(name).textContent;
      return {
        title: text("h2"), state: text(".state"), end: pane.dataset.end,
        text: text(".text"), reasoning: text(".reasoning"), calls: text(".calls"),
        elements: pane.querySelectorAll(".text *, .reasoning *, .calls pre *").length,
        visible: pane.checkVisibility() && x >= 0 && x + width <= innerWidth, x, y, width, height,
      };
    }));
    samples.push(panes);
    if (condition(panes)) return;
    if (Date.now() > deadline) throw new Error(`not reached: ${JSON.stringify(panes)}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}
