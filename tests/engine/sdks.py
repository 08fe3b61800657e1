"""Reads streams with the providers' own libraries.

Each line of the standard input is `{"sdk": NAME, "url": BASE}`: the library of that provider, and a server with one recording. For each one, a line of
output has the choices that the library reads, `{"missing": ".."}` if it is not installed, or `{"died": ".."}` with its exception.
"""

import json
import sys
import warnings

QUESTION = [{"role": "user", "content": "x"}]


def choice(index=0):
    return {"index": index, "text": "", "calls": [], "finish_reason": None}


def read_anthropic(url):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=60)
    with client.messages.stream(model="m", max_tokens=1, messages=QUESTION) as stream:
        message = stream.get_final_message()
    whole = choice() | {"finish_reason": message.stop_reason}
    for block in message.content:
        if block.type == "text":
            whole["text"] += block.text
        elif block.type == "tool_use":
            whole["calls"].append([block.name, block.input])
    return [whole]


def read_responses(url):
    """Reads the events. The library's own accumulator takes the final response, which some servers send without its items."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)
    whole = choice()
    for event in client.responses.create(model="m", input="x", stream=True):
        if event.type == "response.output_text.delta":
            whole["text"] += event.delta
        elif event.type == "response.output_item.done" and event.item:
            if event.item.type == "function_call":
                whole["calls"].append([event.item.name, json.loads(event.item.arguments or "{}")])
            elif event.item.type == "custom_tool_call":
                whole["calls"].append([event.item.name, event.item.input])
        elif event.type in ("response.completed", "response.incomplete"):
            details = event.response.incomplete_details
            whole["finish_reason"] = details.reason if details else event.response.status
        elif event.type in ("response.failed", "error"):
            raise RuntimeError(event.type)
    return [whole]


def read_gemini(url):
    from google import genai

    client = genai.Client(api_key="none", http_options={"base_url": url})
    choices = {}
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        for candidate in chunk.candidates or []:
            whole = choices.setdefault(candidate.index or 0, choice(candidate.index or 0))
            if candidate.finish_reason:
                whole["finish_reason"] = candidate.finish_reason.value
            for part in (candidate.content and candidate.content.parts) or []:
                if part.text and not part.thought:
                    whole["text"] += part.text
                if part.function_call:
                    whole["calls"].append([part.function_call.name, part.function_call.args or {}])
    return [choices[index] for index in sorted(choices)]


def read_cohere(url):
    import cohere

    client = cohere.ClientV2(api_key="none", base_url=url)
    whole, calls = choice(), {}
    for event in client.chat_stream(model="m", messages=QUESTION):
        delta = getattr(event, "delta", None)
        if event.type == "content-delta" and delta.message.content.text:
            whole["text"] += delta.message.content.text
        elif event.type == "tool-call-start":
            function = delta.message.tool_calls.function
            calls[event.index] = [function.name, function.arguments or ""]
        elif event.type == "tool-call-delta":
            calls[event.index][1] += delta.message.tool_calls.function.arguments or ""
        elif event.type == "message-end":
            whole["finish_reason"] = delta.finish_reason
    whole["calls"] = [[name, json.loads(arguments or "{}")] for name, arguments in calls.values()]
    return [whole]


def read_ollama(url):
    import ollama

    whole = choice()
    for line in ollama.Client(host=url).chat(model="m", messages=QUESTION, stream=True):
        whole["text"] += line.message.content or ""
        for call in line.message.tool_calls or []:
            whole["calls"].append([call.function.name, dict(call.function.arguments or {})])
        if line.done:
            whole["finish_reason"] = line.done_reason
    return [whole]


READERS = {
    "anthropic": read_anthropic,
    "responses": read_responses,
    "gemini": read_gemini,
    "cohere": read_cohere,
    "ollama": read_ollama,
}


def answer_to(query: dict) -> dict:
    try:
        return {"choices": READERS[query["sdk"]](query["url"])}
    except ImportError as error:
        return {"missing": f"{error}"}
    except Exception as error:  # Reported, because the libraries fail on some streams.
        return {"died": f"{type(error).__name__}: {error}"}


def main() -> None:
    warnings.simplefilter("ignore")
    sys.stdout.reconfigure(encoding="utf-8")
    for line in sys.stdin:
        answer = json.dumps(answer_to(json.loads(line)), ensure_ascii=False)
        print(answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), flush=True)


if __name__ == "__main__":
    main()
