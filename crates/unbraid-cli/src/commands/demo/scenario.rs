//! The stream of the demo's server: four invented answers to one question, each at its own pace.

use std::time::Duration;

use serde_json::{Value, json};

/// The path at which the server answers.
pub(super) const PATH: &str = "/v1/chat/completions";

/// The path at which it lists its model.
pub(super) const MODELS_PATH: &str = "/v1/models";

pub(super) const MODEL: &str = "demo-1";

pub(super) const CHOICES: u32 = 4;

pub(super) const QUESTION: &str =
    "It will rain in Oslo on Saturday. How do we spend the day with two children?";

/// The longest answer that the request allows, in tokens. One answer is longer, and ends with `length`.
const MAX_TOKENS: u64 = 94;

/// The same length in words, which are the deltas of a text.
const MAX_WORDS: usize = 80;

/// The lowest speed of the demo. Below it, the pauses would come near the client's timeouts.
pub(super) const MIN_SPEED: f64 = 0.1;

const PROMPT_TOKENS: u64 = 24;

const CREATED: u64 = 1_767_225_600;

/// The most choices of one request. Beyond four, the answers repeat, each at another pace.
pub(super) const MAX_CHOICES: u32 = 128;

/// The request that an application would send.
pub(super) fn request() -> Value {
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
pub(super) struct TimedEvent {
    /// The time since the request.
    pub(super) time: Duration,
    pub(super) data: String,
}

/// The response to a request for the list of models. The page of the gateway begins with the question.
pub(super) fn models() -> Value {
    let model = json!({
        "id": MODEL,
        "object": "model",
        "created": CREATED,
        "owned_by": "unbraid",
        "unbraid": { "prompt": QUESTION },
    });
    json!({ "object": "list", "data": [model] })
}

/// The events of an answer with this many choices, in the order in which they are sent.
pub(super) fn events(choices: u32) -> Vec<TimedEvent> {
    let answers: Vec<Answer> = (0..choices.clamp(1, MAX_CHOICES)).map(answer).collect();
    let mut chunks: Vec<(u64, Value)> = answers.iter().flat_map(Answer::chunks).collect();
    chunks.sort_by_key(|(millis, _)| *millis);
    let last = chunks.last().map_or(0, |(millis, _)| *millis);
    let completion_tokens: u64 = answers.iter().map(|answer| answer.tokens).sum();
    let usage = json!({
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": completion_tokens,
        "total_tokens": PROMPT_TOKENS + completion_tokens,
    });
    chunks.push((last + 20, chunk(&json!([]), &usage)));
    let mut events: Vec<TimedEvent> = chunks
        .into_iter()
        .map(|(millis, chunk)| event(millis, &chunk.to_string()))
        .collect();
    events.push(event(last + 20, "[DONE]"));
    events
}

fn event(millis: u64, data: &str) -> TimedEvent {
    TimedEvent {
        time: Duration::from_millis(millis),
        data: format!("data: {data}\n\n"),
    }
}

/// The answer of a choice.
fn answer(index: u32) -> Answer {
    let (round, position) = (index / CHOICES, index % CHOICES);
    let first = ANSWERS[position as usize];
    Answer {
        index,
        start: first.start + 190 * u64::from(round),
        pace: first.pace + 3 * u64::from(round % 8),
        ..first
    }
}

/// One choice: its text, its calls and its pace.
#[derive(Clone, Copy)]
struct Answer {
    index: u32,
    /// When the choice appears, in milliseconds.
    start: u64,
    /// The milliseconds that each delta takes, before the time that its length adds.
    pace: u64,
    /// Its tokens, as the command counts them, so that its figures for the choices add up to the reported usage.
    tokens: u64,
    text: &'static str,
    calls: &'static [Call],
}

struct Call {
    id: &'static str,
    name: &'static str,
    /// The fragments of the arguments.
    arguments: &'static [&'static str],
}

impl Answer {
    /// The deltas between the role and the finish reason.
    fn deltas(&self) -> Vec<Value> {
        let mut deltas: Vec<Value> = words(self.text)
            .take(MAX_WORDS)
            .map(|word| json!({ "content": word }))
            .collect();
        for (index, call) in self.calls.iter().enumerate() {
            let function = json!({ "name": call.name, "arguments": "" });
            let call =
                json!({ "index": index, "id": call.id, "type": "function", "function": function });
            deltas.push(json!({ "tool_calls": [call] }));
        }
        // The calls are parallel, so their fragments are interleaved too.
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

    fn finish_reason(&self) -> &'static str {
        if words(self.text).count() > MAX_WORDS {
            "length"
        } else if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }
    }

    /// The chunks of the choice, each with its time in milliseconds.
    fn chunks(&self) -> Vec<(u64, Value)> {
        let role = json!({ "role": "assistant", "content": "", "refusal": null });
        let mut millis = self.start;
        let mut chunks = vec![(millis, self.chunk(&role, None))];
        for delta in self.deltas() {
            // The length adds to the time, because a real model does not send its deltas at equal intervals either.
            millis += self.pace + delta.to_string().len() as u64 / 4;
            chunks.push((millis, self.chunk(&delta, None)));
        }
        let finish = self.chunk(&json!({}), Some(self.finish_reason()));
        chunks.push((millis + 5, finish));
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
        "created": CREATED,
        "model": MODEL,
        "service_tier": "default",
        "system_fingerprint": "fp_demo",
        "choices": choices,
        "usage": usage,
    })
}

/// Splits a text like the tokens of a model: words with the white space before them.
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

/// The answers in the order of their indices, which differs from the order of their appearance.
const ANSWERS: [Answer; CHOICES as usize] = [
    Answer {
        index: 0,
        start: 420,
        pace: 34,
        tokens: 73,
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
        tokens: 93,
        text: "\
A plan that needs no umbrella:

1. Morning: the museum of science and technology. Everything wants to be pressed, pulled or cranked.
2. Noon: waffles with brown cheese, one each, and one more for the table.
3. Afternoon: the big library by the harbour. A whole floor is theirs, and you may read the paper.
4. Evening: the swimming pool, where they get wet by their own choice.

Pack dry socks.",
        calls: &[],
    },
    Answer {
        index: 2,
        start: 260,
        pace: 31,
        tokens: 94,
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
        tokens: 66,
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
