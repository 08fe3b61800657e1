#!/usr/bin/env python3
"""Installs LiteLLM's proxy for `unbraid-bench gateway`, in `target/bench/venv`: `tests/bench/prepare.py`.

If it cannot be installed, it prints the reason, and the benchmark has no row for it.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parents[1] / "target")
BENCH = TARGET.resolve() / "bench"
TIMEOUT = 900


def main() -> None:
    BENCH.mkdir(parents=True, exist_ok=True)
    venv, ready = BENCH / "venv", BENCH / "installed"
    python = venv / "bin" / "python"
    wanted = f"{sys.version}\n{(HERE / 'requirements.txt').read_text()}"
    if ready.is_file() and ready.read_text() == wanted:
        return
    ready.unlink(missing_ok=True)
    shutil.rmtree(venv, ignore_errors=True)
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--retries", "1"]
    for command in (
        [sys.executable, "-m", "venv", venv],
        [python, "-m", "pip", "install", *options, "-r", HERE / "requirements.txt"],
    ):
        reason = run(command)
        if reason:
            print(f"skipped: LiteLLM cannot be installed: {reason}")
            return
    ready.write_text(wanted)
    print(f"LiteLLM is ready in {venv}")


def run(command: list) -> str:
    """Runs a command. Returns why it has failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return ((done.stderr + done.stdout).strip().splitlines() or ["no reason given"])[-1]


if __name__ == "__main__":
    main()
