#!/usr/bin/env node
// Installs a headless Chromium and the library that drives it in `target/browser`: `tests/browser/prepare.mjs`.
//
// Both come from npm's registry. If they cannot be installed, or the browser does not start here, it prints the reason, and
// the tests skip. With UNBRAID_CHROMIUM set, that program is used, and only the library is installed.

import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { arch, platform, versions } from "node:process";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const TARGET = resolve(process.env.CARGO_TARGET_DIR ?? join(HERE, "../../target"));
const BROWSER = join(TARGET, "browser");
const FILES = ["package.json", "package-lock.json"];
const TIMEOUT = 240_000;

/** Why the browser is not available. */
class Skip extends Error {}

async function main() {
  mkdirSync(BROWSER, { recursive: true });
  const [ready, skipped] = ["ready.json", "skipped"].map((name) => join(BROWSER, name));
  rmSync(ready, { force: true });
  try {
    install();
    writeFileSync(ready, `${JSON.stringify(await started())}\n`);
    rmSync(skipped, { force: true });
    console.log(`the browser is ready in ${BROWSER}`);
  } catch (error) {
    if (!(error instanceof Skip)) throw error;
    writeFileSync(skipped, `${error.message}\n`);
    console.log(`skipped: ${error.message}; the tests in a browser will skip as well`);
  }
}

/** Installs the packages of the lock file, unless they are installed. */
function install() {
  const own = (path) => FILES.map((name) => readFileSync(join(path, name), "utf8")).join("\n");
  const installed = join(BROWSER, "installed");
  const wanted = `${versions.node}\n${own(HERE)}`;
  if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return;
  rmSync(installed, { force: true });
  for (const name of FILES) copyFileSync(join(HERE, name), join(BROWSER, name));
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"];
  const npm = platform === "win32" ? "npm.cmd" : "npm";
  const done = spawnSync(npm, ["ci", ...options], { cwd: BROWSER, encoding: "utf8", timeout: TIMEOUT, shell: platform === "win32" });
  if (done.error) throw new Skip(`npm cannot be run: ${done.error.message}`);
  if (done.status !== 0) {
    const lines = done.stderr.split("\n").filter((line) => line.startsWith("npm error"));
    throw new Skip(`the packages cannot be installed: ${lines[0] ?? `npm ended with status ${done.status}`}`);
  }
  writeFileSync(installed, wanted);
}

/** The program and its environment with which the browser starts on this machine. */
async function started() {
  const own = process.env.UNBRAID_CHROMIUM;
  if (own) return checked({ executable: own, env: {} });
  if (platform !== "linux" || arch !== "x64") {
    throw new Skip(`there is no Chromium for ${platform} ${arch}; set UNBRAID_CHROMIUM to the path of yours`);
  }
  try {
    return await checked({ executable: await unpacked({}), env: {} });
  } catch (error) {
    if (!(error instanceof Skip)) throw error;
    // Without its libraries in the system, those that come with it are used.
    const executable = await unpacked({ AWS_EXECUTION_ENV: "AWS_Lambda_nodejs20.x" });
    const libraries = join(BROWSER, "unpacked/al2023/lib");
    return checked({ executable, env: { LD_LIBRARY_PATH: libraries } });
  }
}

/** Unpacks the browser in a process of its own, because the package reads its settings from the environment. */
async function unpacked(env) {
  const directory = join(BROWSER, "unpacked");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  const script = 'import("@sparticuz/chromium").then(({ default: chromium }) => chromium.executablePath())';
  const done = spawnSync(process.execPath, ["-e", script], {
    cwd: BROWSER,
    encoding: "utf8",
    env: { ...process.env, ...env, TMPDIR: directory },
    timeout: TIMEOUT,
  });
  const executable = join(directory, "chromium");
  if (done.status !== 0 || !existsSync(executable)) {
    throw new Skip(`Chromium cannot be unpacked: ${lastLine(done.stderr) ?? "no reason given"}`);
  }
  chmodSync(executable, 0o755);
  return executable;
}

/** Starts the browser once. */
async function checked({ executable, env }) {
  const { launch } = await import(pathToFileURL(join(HERE, "launch.mjs")));
  try {
    const browser = await launch(BROWSER, { executable, env });
    await browser.close();
  } catch (error) {
    throw new Skip(`Chromium does not start: ${lastLine(error.message)}`);
  }
  return { executable, env };
}

function lastLine(text) {
  const lines = (text ?? "").split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("TROUBLESHOOTING"));
  return lines.find((line) => line.includes("error while loading")) ?? lines.at(-1);
}

await main();
