#!/usr/bin/env python3
"""Installs the engine and writes the model for the tests that need them, in `target/engine`: `tests/engine/prepare.py`.

If the packages cannot be installed, it prints the reason, and the tests skip. Installed packages are reused.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parents[1] / "target")
ENGINE = TARGET.resolve() / "engine"
# Seconds for each command. `.ci/run` compiles meanwhile.
TIMEOUT = 600


class Skip(Exception):
    """The reason why the engine is not available."""


def main() -> None:
    skipped = ENGINE / "skipped"
    ENGINE.mkdir(parents=True, exist_ok=True)
    install_node_packages()
    try:
        python = installed()
    except Skip as reason:
        skipped.write_text(f"{reason}\n")
        print(f"skipped: {reason}; the tests against a real engine will skip as well")
        return
    subprocess.run([python, HERE / "model.py", ENGINE / "model.gguf"], check=True)
    skipped.unlink(missing_ok=True)
    print(f"the engine is ready in {ENGINE}")


def installed() -> pathlib.Path:
    """Returns the interpreter with the packages. An incomplete environment is recreated."""
    venv, ready = ENGINE / "venv", ENGINE / "installed"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = f"{sys.version}\n{(HERE / 'requirements.txt').read_text()}{(HERE / 'sdks.txt').read_text()}"
    if ready.is_file() and ready.read_text() == wanted:
        return python
    ready.unlink(missing_ok=True)
    shutil.rmtree(venv, ignore_errors=True)
    run("no virtual environment", [sys.executable, "-m", "venv", venv])
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--retries", "1"]
    run("the packages cannot be installed", [python, *install, "-r", HERE / "requirements.txt"])
    for sdk in (HERE / "sdks.txt").read_text().splitlines():
        if sdk.startswith("#"):
            continue
        try:
            run(f"{sdk} cannot be installed", [python, *install, sdk])
        except Skip as reason:
            print(f"skipped: {reason}; its tests will skip as well")
    ready.write_text(wanted)
    return python


def install_node_packages() -> None:
    """Installs the libraries for JavaScript. Without them, only their tests skip."""
    node, files = ENGINE / "node", ["package.json", "package-lock.json"]
    ready, skipped = node / "installed", node / "skipped"
    wanted = "".join((HERE / "node" / name).read_text() for name in files)
    if ready.is_file() and ready.read_text() == wanted:
        return
    node.mkdir(exist_ok=True)
    ready.unlink(missing_ok=True)
    for name in files:
        shutil.copy(HERE / "node" / name, node / name)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    try:
        run("npm cannot install the packages", [shutil.which("npm") or "npm", "ci", *options], cwd=node)
    except Skip as reason:
        skipped.write_text(f"{reason}\n")
        print(f"skipped: {reason}; the tests of openai-node will skip as well")
        return
    ready.write_text(wanted)
    skipped.unlink(missing_ok=True)


def run(failure: str, command: list, cwd: pathlib.Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skip(f"{failure}: {error}") from error
    if done.returncode != 0:
        output = (done.stderr + done.stdout).strip().splitlines() or ["no reason given"]
        raise Skip(f"{failure}: {output[-1]}")


if __name__ == "__main__":
    main()
