"""Reads streams with OpenAI's library.

Each line of the standard input is `{"kind": "chat" | "text", "request": {..}, "source": FILE | URL}`. For each one, a line of output has
the response that the library accumulates, or `{"died": ".."}`. This script serves files itself, byte for byte.
"""

import http.server
import json
import pathlib
import sys
import threading

import openai
from openai.lib.streaming.chat import ChatCompletionStreamState


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recording = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(Server.recording)))
        self.end_headers()
        self.wfile.write(Server.recording)

    def log_message(self, *_) -> None:
        pass


def chat(client: openai.OpenAI, request: dict) -> list:
    """Uses an accumulator for each choice. The library's own uses an index as a position in a list, and mixes up choices that open out of order."""
    states: dict[int, ChatCompletionStreamState] = {}
    for chunk in client.chat.completions.create(model="tiny", messages=[], stream=True, extra_body=request):
        for choice in chunk.choices:
            state = states.setdefault(choice.index, ChatCompletionStreamState())
            alone = choice.model_copy(update={"index": 0})
            state.handle_chunk(chunk.model_copy(update={"choices": [alone], "usage": None}))
    choices = []
    for index, state in sorted(states.items()):
        # Not the final completion, which raises if `max_tokens` cut the answer.
        whole = state.current_completion_snapshot.choices[0].to_dict()
        choices.append(whole | {"index": index})
    return choices


def text(client: openai.OpenAI, request: dict) -> list:
    """Concatenates the texts, which the library does not."""
    choices: dict[int, dict] = {}
    for chunk in client.completions.create(model="tiny", prompt="", stream=True, extra_body=request):
        for choice in chunk.choices:
            whole = choices.setdefault(choice.index, {"index": choice.index, "text": "", "finish_reason": None})
            whole["text"] += choice.text
            whole["finish_reason"] = choice.finish_reason or whole["finish_reason"]
    return [choices[index] for index in sorted(choices)]


def response_to(query: dict, here: str) -> dict:
    source = query["source"]
    if not source.startswith("http://"):
        Server.recording = pathlib.Path(source).read_bytes()
        source = here
    client = openai.OpenAI(base_url=source, api_key="none", max_retries=0, timeout=60)
    read = chat if query["kind"] == "chat" else text
    try:
        return {"choices": read(client, query["request"])}
    except Exception as error:  # Reported, because the library fails on some streams.
        return {"died": f"{type(error).__name__}: {error}"}


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/v1"
    sys.stdout.reconfigure(encoding="utf-8")
    for line in sys.stdin:
        answer = json.dumps(response_to(json.loads(line), here), ensure_ascii=False)
        # The library does not join surrogate halves, not even those of one pair in two deltas.
        print(answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), flush=True)


if __name__ == "__main__":
    main()
