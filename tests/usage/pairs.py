#!/usr/bin/env python3
"""Extracts requests and their answers from recorded HTTP traffic. Usage: pairs.py OUT REPOSITORY...

Each REPOSITORY is a git directory whose newest commit has YAML recordings ("cassettes") of chat completions, as vcr.py and
httpmock write them. For each one that reports usage, writes NAME.sse, the answer as it was sent, and NAME.req.json, the
request, to OUT. `cargo test -p unbraid-tests --test it usage_error` reads them with UNBRAID_CORPUS=OUT.
"""

import json
import pathlib
import re
import subprocess
import sys

import yaml


class Loader(yaml.CSafeLoader):
    """Ignores the tags of Python scalars."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, _, node: loader.construct_scalar(node))


def git(repository, *words):
    run = subprocess.run(["git", "-C", repository, *words], capture_output=True, check=True)
    return run.stdout.decode("utf-8", "replace")


def text(body):
    """Returns a body as text. Recordings store it directly or under a key."""
    if isinstance(body, dict):
        body = body.get("string") or body.get("body")
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    return body if isinstance(body, str) else ""


def exchanges(documents):
    """Yields the URL, request and answer of every exchange in a recording."""
    for document in documents:
        if not isinstance(document, dict):
            continue
        if "when" in document:
            when, then = document["when"], document.get("then") or {}
            yield when.get("path") or "", text(when.get("body")), text(then.get("body"))
        for one in document.get("interactions") or []:
            request, response = one["request"], one["response"]
            yield request.get("uri") or "", text(request.get("body")), text(response.get("body"))


def main(out, *repositories):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    kept = 0
    for repository in repositories:
        for path in git(repository, "ls-tree", "-r", "HEAD", "--name-only").splitlines():
            if "cassette" not in path or not path.endswith((".yaml", ".yml")):
                continue
            try:
                documents = list(yaml.load_all(git(repository, "show", f"HEAD:{path}"), Loader=Loader))
            except yaml.YAMLError:
                continue
            for number, (url, request, answer) in enumerate(exchanges(documents)):
                if "chat/completions" not in url or '"prompt_tokens"' not in answer:
                    continue
                try:
                    request = json.loads(request)
                except ValueError:
                    continue
                name = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.split("cassettes/")[-1])
                name = f"{name.rsplit('.', 1)[0]}-{number}"[-180:]
                (out / f"{name}.sse").write_text(answer)
                (out / f"{name}.req.json").write_text(json.dumps(request, ensure_ascii=False))
                kept += 1
    print(f"{kept} requests with their answers in {out}")


if __name__ == "__main__":
    main(*sys.argv[1:])
