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
  await page.setViewport({ width: 1120, height: 560, deviceScaleFactor: 1.5 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url, { waitUntil: "load" });
  await page.waitForFunction(() => document.querySelector("#model").value && document.querySelector("#prompt").value);
  await page.focus("#send");
  await page.keyboard.press("Enter");
  // Towards the end: one choice is still being written.
  await page.waitForFunction(() => document.querySelector('[data-choice="2"]')?.dataset.state === "ended", { polling: "mutation", timeout: 30_000 });
  await page.waitForFunction(() => document.querySelector('[data-choice="2"] .rate').textContent.includes("tokens/s"));
  await page.evaluate(() => document.activeElement.blur());
  await page.screenshot({ path: file });
} finally {
  await browser.close();
}
