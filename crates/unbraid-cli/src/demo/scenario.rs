//! What the demo's server streams: four invented answers to one question, each at a pace of its own.

use std::time::Duration;

use serde_json::{Value, json};

/// Where the server answers.
pub(crate) const PATH: &str = "/v1/chat/completions";

pub(crate) const MODEL: &str = "demo-1";

pub(crate) const CHOICES: u32 = 4;

pub(crate) const QUESTION: &str =
    "It will rain in Oslo on Saturday. How do we spend the day with two children?";

/// The longest answer that the request allows; one of them would go on.
const MAX_TOKENS: usize = 80;

const PROMPT_TOKENS: usize = 24;

/// The request, as an application would send it.
pub(crate) fn request() -> Value {
    json!({
        "model": MODEL,
        "n": CHOICES,
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_completion_tokens": MAX_TOKENS,
        "messages": [{ "role": "user", "content": QUESTION }],
        "tools": [tool("get_forecast"), tool("find_activities")],
    })
}

fn tool(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } })
}

/// One server-sent event, and when it is sent.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Since the request.
    pub(crate) at: Duration,
    pub(crate) data: String,
}

/// The whole stream, in the order in which it is sent.
pub(crate) fn pieces() -> Vec<Piece> {
    let mut deltas: Vec<(u64, Value)> = ANSWERS.iter().flat_map(Answer::chunks).collect();
    deltas.sort_by_key(|(at, _)| *at);
    let last = deltas.last().map_or(0, |(at, _)| *at);
    let tokens: usize = ANSWERS.iter().map(Answer::tokens).sum();
    let usage = json!({
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": tokens,
        "total_tokens": PROMPT_TOKENS + tokens,
    });
    deltas.push((last + 20, chunk(&json!([]), &usage)));
    let mut pieces: Vec<Piece> = deltas
        .into_iter()
        .map(|(at, chunk)| piece(at, &chunk.to_string()))
        .collect();
    pieces.push(piece(last + 20, "[DONE]"));
    pieces
}

fn piece(millis: u64, data: &str) -> Piece {
    Piece {
        at: Duration::from_millis(millis),
        data: format!("data: {data}\n\n"),
    }
}

/// One choice: what it says, what it calls, and when.
struct Answer {
    index: u32,
    /// When it appears, in milliseconds.
    start: u64,
    /// Milliseconds that a delta takes, before what its length adds.
    pace: u64,
    text: &'static str,
    calls: &'static [Call],
}

struct Call {
    id: &'static str,
    name: &'static str,
    /// The arguments in the fragments that they are streamed in.
    arguments: &'static [&'static str],
}

impl Answer {
    /// What the choice says after its role, one delta a token, the last one its finish.
    fn deltas(&self) -> Vec<Value> {
        let mut deltas: Vec<Value> = words(self.text)
            .take(MAX_TOKENS)
            .map(|word| json!({ "content": word }))
            .collect();
        for (index, call) in self.calls.iter().enumerate() {
            let function = json!({ "name": call.name, "arguments": "" });
            let call =
                json!({ "index": index, "id": call.id, "type": "function", "function": function });
            deltas.push(json!({ "tool_calls": [call] }));
        }
        // The calls are parallel, so their fragments are braided too.
        let longest = self.calls.iter().map(|call| call.arguments.len()).max();
        for k in 0..longest.unwrap_or(0) {
            for (index, call) in self.calls.iter().enumerate() {
                if let Some(fragment) = call.arguments.get(k) {
                    let call = json!({ "index": index, "function": { "arguments": fragment } });
                    deltas.push(json!({ "tool_calls": [call] }));
                }
            }
        }
        deltas
    }

    fn tokens(&self) -> usize {
        self.deltas().len()
    }

    fn finish_reason(&self) -> &'static str {
        if words(self.text).count() > MAX_TOKENS {
            "length"
        } else if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }
    }

    /// Its chunks, each with its time.
    fn chunks(&self) -> Vec<(u64, Value)> {
        let role = json!({ "role": "assistant", "content": "", "refusal": null });
        let mut at = self.start;
        let mut chunks = vec![(at, self.chunk(&role, None))];
        for delta in self.deltas() {
            at += self.pace + delta.to_string().len() as u64 / 4; // no two deltas of a model take the same time
            chunks.push((at, self.chunk(&delta, None)));
        }
        let finish = self.chunk(&json!({}), Some(self.finish_reason()));
        chunks.push((at + 5, finish));
        chunks
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({
            "index": self.index,
            "delta": delta,
            "logprobs": null,
            "finish_reason": finish_reason,
        });
        chunk(&json!([choice]), &Value::Null)
    }
}

fn chunk(choices: &Value, usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-7Qd2mUOJw4demo",
        "object": "chat.completion.chunk",
        "created": 1_767_225_600,
        "model": MODEL,
        "service_tier": "default",
        "system_fingerprint": "fp_demo",
        "choices": choices,
        "usage": usage,
    })
}

/// The text in pieces as a model gives it: words with the white space before them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let gap = rest.find(|c: char| !c.is_whitespace())?;
        let word = rest.get(gap..)?.find(char::is_whitespace);
        let (word, more) = rest.split_at_checked(word.map_or(rest.len(), |len| gap + len))?;
        rest = more;
        Some(word)
    })
}

/// In the order of their indices, which is not that of their appearance.
const ANSWERS: [Answer; CHOICES as usize] = [
    Answer {
        index: 0,
        start: 420,
        pace: 34,
        text: "\
Start on Bygdøy with the polar ship Fram: you walk through the real thing, deck by deck, and nobody gets wet.

Take the bus back for lunch in the food hall at Vulkan, then find a climbing hall and let them climb until they \
are tired.

Keep the roof of the opera house for another day. In the rain it is a slide.",
        calls: &[],
    },
    Answer {
        index: 1,
        start: 1300,
        pace: 46,
        text: "\
A plan that needs no umbrella:

1. Morning: the museum of science and technology. Everything wants to be pressed, pulled or cranked.
2. Noon: waffles with brown cheese, one each, and one more for the table.
3. Afternoon: the big library by the harbour. A whole floor is theirs, and you may read the paper.
4. Evening: the swimming pool, where they get wet by their own choice.

Pack dry socks anyway.",
        calls: &[],
    },
    Answer {
        index: 2,
        start: 260,
        pace: 31,
        text: "\
Rain is no reason to stay in. Dress them in wool and rubber and walk along the river Akerselva from the top down: \
today its waterfalls are at their best, and from each bridge you can race sticks to the next.

Halfway there is a bakery where wet children are met with cinnamon buns. Behind it the old factories begin, and \
with them the painted walls. Give each child a camera, ask for the ten strangest faces, and when you have counted \
them all",
        calls: &[],
    },
    Answer {
        index: 3,
        start: 700,
        pace: 38,
        text: "Let me look at the forecast by the hour, and at what is open for children that day.",
        calls: &[
            Call {
                id: "call_Vf3kQpXh1aWc",
                name: "get_forecast",
                arguments: &[
                    "{\"", "city", "\":\"", "Oslo", "\",\"", "day", "\":\"", "saturday", "\"}",
                ],
            },
            Call {
                id: "call_m0TzRb8LxYeN",
                name: "find_activities",
                arguments: &[
                    "{\"", "city", "\":\"", "Oslo", "\",\"", "indoors", "\":", "true", ",\"",
                    "ages", "\":[", "5", ",", "8", "]}",
                ],
            },
        ],
    },
];

#[cfg(test)]
mod tests;
