// Starts the browser that `prepare.mjs` installed.

import { createRequire } from "node:module";
import { join } from "node:path";

/** Starts a browser of its own, with an empty profile. */
export async function launch(directory, { executable, env }) {
  const puppeteer = createRequire(join(directory, "package.json"))("puppeteer-core");
  const options = {
    executablePath: executable,
    env: { ...process.env, ...env },
    headless: "shell",
    // The page comes from the test itself. CI runs as root and in containers, where the sandbox cannot start.
    args: ["--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"],
    defaultViewport: { width: 1200, height: 800 },
    timeout: 60_000,
  };
  try {
    return await puppeteer.launch(options);
  } catch (error) {
    // Chromium may crash as it starts, before it has seen a page. A second crash is reported.
    console.error(`the browser is started once more: ${error.message}`);
    return puppeteer.launch(options);
  }
}
