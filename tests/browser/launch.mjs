// Starts the browser that `prepare.mjs` installed.

import { createRequire } from "node:module";
import { join } from "node:path";

/** Starts a browser of its own, with an empty profile. */
export function launch(directory, { executable, env }) {
  const puppeteer = createRequire(join(directory, "package.json"))("puppeteer-core");
  return puppeteer.launch({
    executablePath: executable,
    env: { ...process.env, ...env },
    headless: "shell",
    // The page comes from the test itself. CI runs as root and in containers, where the sandbox cannot start.
    args: ["--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"],
    defaultViewport: { width: 1200, height: 800 },
    timeout: 60_000,
  });
}
