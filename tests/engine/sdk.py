"""Asks OpenAI's own library what a stream says.

Each line of the standard input is `{"kind": "chat" | "text", "request": {..}, "source": FILE | URL}`; for each, a line of output holds
the response that the library makes of it, or `{"died": ".."}`. A file is served from here, byte for byte.
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
    """One accumulator for each choice: the library's own takes an index for a place in a list, and mixes choices up that come out of order."""
    states: dict[int, ChatCompletionStreamState] = {}
    for chunk in client.chat.completions.create(model="tiny", messages=[], stream=True, extra_body=request):
        for choice in chunk.choices:
            state = states.setdefault(choice.index, ChatCompletionStreamState())
            alone = choice.model_copy(update={"index": 0})
            state.handle_chunk(chunk.model_copy(update={"choices": [alone], "usage": None}))
    choices = []
    for index, state in sorted(states.items()):
        # Not the final one: that raises for what was cut by `max_tokens`.
        whole = state.current_completion_snapshot.choices[0].to_dict()
        choices.append(whole | {"index": index})
    return choices


def text(client: openai.OpenAI, request: dict) -> list:
    """The library adds no texts up."""
    choices: dict[int, dict] = {}
    for chunk in client.completions.create(model="tiny", prompt="", stream=True, extra_body=request):
        for choice in chunk.choices:
            whole = choices.setdefault(choice.index, {"index": choice.index, "text": "", "finish_reason": None})
            whole["text"] += choice.text
            whole["finish_reason"] = choice.finish_reason or whole["finish_reason"]
    return [choices[index] for index in sorted(choices)]


def asked(question: dict, here: str) -> dict:
    source = question["source"]
    if not source.startswith("http://"):
        Server.recording = pathlib.Path(source).read_bytes()
        source = here
    client = openai.OpenAI(base_url=source, api_key="none", max_retries=0, timeout=60)
    read = chat if question["kind"] == "chat" else text
    try:
        return {"choices": read(client, question["request"])}
    except Exception as error:  # The streams that it does not survive are its own affair.
        return {"died": f"{type(error).__name__}: {error}"}


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/v1"
    sys.stdout.reconfigure(encoding="utf-8")
    for line in sys.stdin:
        answer = json.dumps(asked(json.loads(line), here), ensure_ascii=False)
        # It keeps halves of surrogate pairs apart, also of one that came in two pieces.
        print(answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), flush=True)


if __name__ == "__main__":
    main()
