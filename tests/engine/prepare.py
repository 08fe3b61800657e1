#!/usr/bin/env python3
"""Prepares the engine and the model for the tests that need them: `tests/engine/prepare.py`, below `target/engine`.

Where packages cannot be had, that is said and the tests skip. What is installed stays.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parents[1] / "target")
ENGINE = TARGET.resolve() / "engine"
PATIENCE = 240


class Skip(Exception):
    """Why there will be no engine."""


def main() -> None:
    skipped = ENGINE / "skipped"
    ENGINE.mkdir(parents=True, exist_ok=True)
    try:
        python = installed()
    except Skip as reason:
        skipped.write_text(f"{reason}\n")
        print(f"skipped: {reason}; so will be the tests against a real engine")
        return
    subprocess.run([python, HERE / "model.py", ENGINE / "model.gguf"], check=True)
    skipped.unlink(missing_ok=True)
    print(f"the engine is ready in {ENGINE}")


def installed() -> pathlib.Path:
    """The interpreter that has the packages. A half-made environment is made anew."""
    venv, ready = ENGINE / "venv", ENGINE / "installed"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = f"{sys.version}\n{(HERE / 'requirements.txt').read_text()}"
    if ready.is_file() and ready.read_text() == wanted:
        return python
    ready.unlink(missing_ok=True)
    shutil.rmtree(venv, ignore_errors=True)
    run("no virtual environment", [sys.executable, "-m", "venv", venv])
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--retries", "1"]
    run("the packages cannot be installed", [python, *install, "-r", HERE / "requirements.txt"])
    ready.write_text(wanted)
    return python


def run(failure: str, command: list) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skip(f"{failure}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().splitlines() or ["no reason given"]
        raise Skip(f"{failure}: {said[-1]}")


if __name__ == "__main__":
    main()
