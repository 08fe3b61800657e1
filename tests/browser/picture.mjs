#!/usr/bin/env node
// Takes the picture of the gateway's page that the README shows: `picture.mjs URL FILE [light|dark]`, with the address that
// `unbraid demo --web` prints.

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { launch } from "./launch.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const directory = join(resolve(process.env.CARGO_TARGET_DIR ?? join(HERE, "../../target")), "browser");
const [url, file, scheme = "light"] = process.argv.slice(2);
const browser = await launch(directory, JSON.parse(readFileSync(join(directory, "ready.json"), "utf8")));
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1200, height: 660, deviceScaleFactor: 1.5 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url, { waitUntil: "load" });
  await page.waitForFunction(() => document.querySelector("#model").value && document.querySelector("#prompt").value);
  await page.focus("#send");
  await page.keyboard.press("Enter");
  // In the middle of the answers: the first choice has ended, and the calls are being written.
  await page.waitForFunction(() => {
    const call = document.querySelector('[data-choice="3"] [data-part="tool_calls.1"]')?.textContent ?? "";
    return document.querySelector('[data-choice="0"]')?.dataset.state === "ended" && call.includes('"indoors"');
  }, { polling: "mutation", timeout: 30_000 });
  await page.evaluate(() => document.activeElement.blur());
  await page.screenshot({ path: file });
} finally {
  await browser.close();
}
