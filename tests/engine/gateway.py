"""Uses the gateway with OpenAI's library, and prints what it observed as one JSON object: `gateway.py BASE_URL ..`.

The prompts select what the upstream of `gateway_sdks.rs` does. `gateway.mjs` does the same with the library for JavaScript.
"""

import json
import sys
import time

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk


def messages(prompt):
    return [{"role": "user", "content": prompt}]


class Gateway:
    def __init__(self, base_url):
        self.client = openai.OpenAI(base_url=f"{base_url}v1", api_key="none", max_retries=0, timeout=100)

    def create(self, prompt, n=3, **headers):
        """The id of a new stream, its chunks, and the headers of the response."""
        completions = self.client.chat.completions.with_raw_response
        raw = completions.create(model="m", n=n, messages=messages(prompt), stream=True, extra_headers=headers)
        return raw.headers.get("x-stream-id"), raw.parse(), raw.headers

    def read(self, path, **options):
        chunks = openai.Stream[ChatCompletionChunk]
        return self.client.get(path, cast_to=ChatCompletionChunk, stream=True, stream_cls=chunks, options=options)

    def so_far(self, path):
        completion = self.client.get(path, cast_to=ChatCompletion)
        choices = [{"index": c.index, "text": c.message.content, "finish_reason": c.finish_reason} for c in completion.choices]
        return {"choices": choices, "state": completion.model_extra["unbraid"]["state"]}


def texts(chunks, n=3):
    whole = [""] * n
    for chunk in chunks:
        for choice in chunk.choices:
            whole[choice.index] += choice.delta.content or ""
    return whole


def text(chunks):
    return texts(chunks, 1)[0]


def code_of(call):
    """The code of the error that a call raises; `None` if it raises none."""
    try:
        call()
    except openai.APIError as error:
        return error.code
    return None


def finished(gateway):
    id, chunks, headers = gateway.create("words")
    created = texts(chunks)
    views = [f"/streams/{id}/choices/{index}?stream=true" for index in range(3)]
    after_6 = {"headers": {"Last-Event-ID": "6"}}
    last = gateway.client.get(f"/streams/{id}", cast_to=object)["seq"]
    return {
        "created": created,
        "request_id": headers["x-request-id"],
        "choices": [text(gateway.read(view)) for view in views],
        "resumed": [text(gateway.read(view, **after_6)) for view in views],
        "resumed_by_query": [text(gateway.read(f"{view}&after=6")) for view in views],
        "snapshot": [text(gateway.read(f"{view}&from=snapshot")) for view in views],
        "tail": [text(gateway.read(f"{view}&from=tail")) for view in views],
        "after_the_end": len(list(gateway.read(f"/streams/{id}/events?stream=true&after={last}"))),
        "so_far": [gateway.so_far(f"/streams/{id}/choices/{index}") for index in range(3)],
        "all_so_far": gateway.so_far(f"/streams/{id}/events"),
    }


def cancelled(gateway):
    id, chunks, _ = gateway.create("endless", n=2)
    chunks = iter(chunks)
    for chunk in chunks:
        if chunk.choices[0].index == 1 and chunk.choices[0].delta.content:
            break
    running = gateway.so_far(f"/streams/{id}/choices/0")
    answer = gateway.client.delete(f"/streams/{id}/choices/1", cast_to=object)
    view = list(gateway.read(f"/streams/{id}/choices/1?stream=true"))
    # The other choice continues after the end of this one.
    continued = next(chunk for chunk in gateway.read(f"/streams/{id}/choices/0?stream=true&from=tail") if chunk.choices)
    status = gateway.client.post(f"/streams/{id}/cancel", cast_to=object)
    rest = list(chunks)
    return {
        "running": {"state": running["state"], "finish_reason": running["choices"][0]["finish_reason"]},
        "answer": answer,
        "view_ends": view[-1].choices[0].finish_reason,
        "continued": continued.choices[0].finish_reason,
        "end": status["end"],
        "post_ends": [rest[-1].choices[0].index, rest[-1].choices[0].finish_reason],
    }


def cut(gateway):
    got = []
    id, chunks, _ = gateway.create("cut")
    post = code_of(lambda: got.extend(chunks))
    view = f"/streams/{id}/choices/1"
    return {
        "created": texts(got),
        "post": post,
        "combined": code_of(lambda: list(gateway.read(f"/streams/{id}/events?stream=true"))),
        "choice": code_of(lambda: list(gateway.read(f"{view}?stream=true"))),
        "so_far": gateway.so_far(view),
    }


def repeated(gateway):
    key = {"Idempotency-Key": f"python-{time.time_ns()}"}
    first, chunks, _ = gateway.create("pause", **key)
    second, again, headers = gateway.create("pause", **key)
    return {
        "same_id": first == second,
        "replayed": headers.get("idempotent-replayed"),
        "texts": [texts(chunks), texts(again)],
    }


def later(gateway):
    completions = gateway.client.chat.completions.with_raw_response
    raw = completions.create(model="m", n=2, messages=messages("pause"), extra_headers={"Prefer": "respond-async"})
    status = raw.http_response.json()
    return {
        "status": raw.status_code,
        "state": status["state"],
        "choices": [text(gateway.read(f"/streams/{status['id']}/choices/{index}?stream=true")) for index in range(2)],
    }


def main():
    gateway = Gateway(sys.argv[1])
    live, chunks, _ = gateway.create("words", **{"X-Stream-Durability": "live"})
    observed = {
        "finished": finished(gateway),
        "pings": texts(gateway.create("pause")[1]),
        "cancelled": cancelled(gateway),
        "cut": cut(gateway),
        "repeated": repeated(gateway),
        "later": later(gateway),
        "live": {"id": live, "texts": texts(chunks)},
        "unknown": code_of(lambda: gateway.read("/streams/AAAAAAAAAAAAAAAAAAAAAA/events?stream=true")),
        "refused": code_of(lambda: gateway.create("refuse")),
    }
    print(json.dumps(observed))


if __name__ == "__main__":
    main()
