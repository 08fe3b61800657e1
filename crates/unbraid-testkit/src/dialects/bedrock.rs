//! Bedrock: the events of Converse, its body, and the chunks of `invoke` after decoding.

mod guardrail;
mod models;

use serde_json::{Value, json};

pub(super) use models::is_body;
use models::{is_of_model, models, read_decoded};

use super::{
    Answer, Call, Choice, Stream, WireValue, anthropic, arguments, entries, is_error, merge,
    reason, text,
};

pub(super) fn read(stream: &Stream) -> Answer {
    let chunks: Vec<WireValue> = stream.values.iter().filter_map(decoded).collect();
    let is_anthropic = chunks
        .iter()
        .any(|chunk| super::identify(chunk) == Some("anthropic"));
    if is_anthropic {
        let mut answer = anthropic::read_values(&chunks);
        guardrail::add(&mut answer, &chunks, anthropic::read_values);
        return answer;
    }
    let is_decoded = |wire: &&WireValue| {
        ["", "chunk", "message", "data"].contains(&&*wire.name) && is_of_model(&wire.value)
    };
    let decoded_values: Vec<WireValue> = stream.values.iter().filter(is_decoded).cloned().collect();
    if !decoded_values.is_empty() {
        return read_decoded(&decoded_values);
    }
    let converse: Vec<(String, Value)> = stream
        .values
        .iter()
        .filter(|wire| wire.name != "chunk")
        .flat_map(named)
        .chain(chunks.iter().flat_map(named))
        .collect();
    let keys = [
        "choices",
        "generation",
        "outputText",
        "completion",
        "outputs",
        "generations",
        "is_finished",
    ];
    let is_model = |chunk: &WireValue| keys.iter().any(|key| chunk.value.get(key).is_some());
    let mut answer = if chunks.iter().any(is_model) {
        let mut answer = models(&chunks);
        guardrail::add(&mut answer, &chunks, models);
        answer
    } else {
        let mut answer = read_converse(&converse, &stream.values);
        guardrail::add(&mut answer, &chunks, |chunks| {
            let events: Vec<_> = chunks.iter().flat_map(named).collect();
            read_converse(&events, &[])
        });
        answer
    };
    let is_exception = |wire: &WireValue| wire.name.ends_with("Exception");
    answer.error = stream
        .values
        .iter()
        .any(|wire| is_error(wire) || is_exception(wire));
    for chunk in &chunks {
        if answer.usage.is_null() {
            merge(
                &mut answer.usage,
                &chunk.value["amazon-bedrock-invocationMetrics"],
            );
        }
    }
    answer
}

/// The model's own value in a chunk.
fn decoded(wire: &WireValue) -> Option<WireValue> {
    // B07: under another name these bytes are no chunk.
    let is_chunk = ["", "chunk", "message", "data"].contains(&&*wire.name);
    let bytes = wire.value["bytes"]
        .as_str()
        .filter(|_| is_chunk)
        .or_else(|| wire.value["chunk"]["bytes"].as_str())?;
    let value = serde_json::from_slice(&base64(bytes)).ok()?;
    Some(WireValue {
        name: String::new(),
        value,
    })
}

/// Decodes base64, six bits at a time.
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.chars().filter_map(|digit| ALPHABET.find(digit));
    let bits: Vec<usize> = digits
        .flat_map(|digit| (0..6).rev().map(move |bit| digit >> bit & 1))
        .collect();
    let bytes = bits.chunks_exact(8);
    bytes
        .map(|bits| bits.iter().fold(0_u8, |byte, bit| byte << 1 | *bit as u8))
        .collect()
}

/// An event by its name, or each key of a line (B16).
fn named(wire: &WireValue) -> Vec<(String, Value)> {
    if !wire.name.is_empty() && wire.name != "chunk" {
        return vec![(wire.name.clone(), wire.value.clone())];
    }
    let fields = wire.value.as_object().into_iter().flatten();
    fields
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// A part of the message, with the index of its block.
struct Block {
    index: i64,
    start: Value,
    deltas: Vec<Value>,
    is_open: bool,
    /// The number of the event that started or reopened it.
    opened_at: usize,
}

impl Block {
    /// Whether it is a call that the client answers.
    fn is_call(&self) -> bool {
        let tool = &self.start["toolUse"];
        tool.is_object() && tool["type"] != "server_tool_use"
    }

    fn is_server_tool(&self) -> bool {
        self.start["toolUse"]["type"] == "server_tool_use"
    }
}

/// The block of an index that was opened last, among the open ones or among all.
fn latest(blocks: &[Block], index: i64, only_open: bool) -> Option<usize> {
    let is_it = |block: &Block| block.index == index && (block.is_open || !only_open);
    (0..blocks.len())
        .filter(|at| is_it(&blocks[*at]))
        .max_by_key(|at| (blocks[*at].opened_at, *at))
}

/// Makes the call with the id of a delta the open block of its index, whichever is open (T28). The input of a tool of the server
/// goes on until its stop.
fn switch_to_call(blocks: &mut [Block], index: i64, id: &str, now: usize) {
    let open = latest(blocks, index, true);
    if id.is_empty() || open.is_some_and(|at| blocks[at].is_server_tool()) {
        return;
    }
    let is_it = |block: &Block| {
        block.index == index && block.is_call() && text(&block.start["toolUse"], "toolUseId") == id
    };
    let Some(at) = blocks.iter().rposition(is_it) else {
        return;
    };
    if let Some(open) = open {
        blocks[open].is_open = false;
    }
    blocks[at].is_open = true;
    blocks[at].opened_at = now;
}

/// Whether a start is that of this open call: one that its first delta has overtaken, or that comes twice (A08).
fn is_restart(block: &Block, tool: &Value) -> bool {
    let own = &block.start["toolUse"];
    let is_headless = own.as_object().is_some_and(serde_json::Map::is_empty);
    let has_id = tool["toolUseId"].is_string() && own["toolUseId"] == tool["toolUseId"];
    tool.is_object()
        && tool["type"] != "server_tool_use"
        && own["type"] != "server_tool_use"
        && (is_headless || has_id)
}

fn read_converse(events: &[(String, Value)], values: &[WireValue]) -> Answer {
    let mut answer = Answer::default();
    let mut choice = Choice::default();
    if let Some(body) = values
        .iter()
        .map(|wire| &wire.value)
        .find(|value| value.get("stopReason").is_some() && value.get("output").is_some())
    {
        return read_body(body);
    }
    let mut blocks: Vec<Block> = Vec::new();
    let (mut started, mut has_head, mut has_content) = (false, false, false);
    for (now, (name, payload)) in events.iter().enumerate() {
        let index = payload["contentBlockIndex"].as_i64().unwrap_or_default();
        has_content |= ["contentBlockStart", "contentBlockDelta", "messageStop"].contains(&&**name);
        match name.as_str() {
            "messageStart" => {
                started = true;
                // A11: after content it is that of another message.
                if std::mem::replace(&mut has_head, true) && has_content {
                    answer.malformed = true;
                    break;
                }
            }
            "contentBlockStart" => {
                started = true;
                let tool = &payload["start"]["toolUse"];
                let known =
                    latest(&blocks, index, true).filter(|at| is_restart(&blocks[*at], tool));
                if let Some(block) = known.map(|at| &mut blocks[at]) {
                    let own = &mut block.start["toolUse"];
                    fill_header(own, tool);
                    if arguments(&own["input"]).is_empty() {
                        own["input"] = tool["input"].clone();
                    }
                    continue;
                }
                blocks.push(Block {
                    index,
                    start: payload["start"].clone(),
                    deltas: Vec::new(),
                    is_open: true,
                    opened_at: now,
                });
            }
            "contentBlockDelta" => {
                started = true;
                let delta = &payload["delta"];
                choice.content += text(delta, "text");
                choice.reasoning += text(&delta["reasoningContent"], "text");
                if !delta["citation"].is_null() {
                    choice.list("annotations", delta["citation"].clone());
                }
                let header = header(&delta["toolUse"]);
                let is_headless = header.as_object().is_none_or(serde_json::Map::is_empty);
                let is_empty = is_headless && text(&delta["toolUse"], "input").is_empty();
                let is_only = delta.as_object().is_some_and(|delta| delta.len() == 1);
                if delta["toolUse"].is_object() && is_empty && is_only {
                    continue;
                }
                // An empty member may stand beside that of the delta.
                let is_input = delta["toolUse"].is_object() && !is_empty;
                switch_to_call(&mut blocks, index, text(&header, "toolUseId"), now);
                let mut at = latest(&blocks, index, true);
                // T07: the name of another call begins it, although a stop is missing.
                let begins_other = |block: &Block| {
                    let tool = &block.start["toolUse"];
                    !block.is_server_tool()
                        && !text(&header, "name").is_empty()
                        && is_other_call(tool, &header)
                };
                // B17: the input of a call ends a block of another kind, whose stop is missing.
                let has_no_tool = |block: &Block| is_input && !block.start["toolUse"].is_object();
                let ends = |at: &usize| begins_other(&blocks[*at]) || has_no_tool(&blocks[*at]);
                if let Some(open) = at.filter(ends) {
                    blocks[open].is_open = false;
                    at = None;
                }
                let last = latest(&blocks, index, false);
                // A08: after the stop a call goes on, unless the delta is of another one; a tool of the server does not.
                if let Some(last) = last.filter(|_| is_input && at.is_none()) {
                    let tool = &blocks[last].start["toolUse"];
                    if tool["type"] == "server_tool_use" {
                        continue;
                    }
                    if tool.is_object() && !is_other_call(tool, &header) {
                        blocks[last].is_open = true;
                        blocks[last].opened_at = now;
                        at = Some(last);
                    }
                }
                let at = at.unwrap_or_else(|| {
                    blocks.push(Block {
                        index,
                        start: if is_input {
                            json!({ "toolUse": header })
                        } else {
                            json!({})
                        },
                        deltas: Vec::new(),
                        is_open: true,
                        opened_at: now,
                    });
                    blocks.len() - 1
                });
                if blocks[at].is_call() {
                    fill_header(&mut blocks[at].start["toolUse"], &header);
                }
                blocks[at].deltas.push(delta.clone());
            }
            "contentBlockStop" => {
                for block in &mut blocks {
                    block.is_open &= block.index != index;
                }
            }
            "messageStop" => choice.finish_reason = reason(&payload["stopReason"]),
            "metadata" => merge(&mut answer.usage, &payload["usage"]),
            _ => {}
        }
    }
    for block in &blocks {
        finish_block(&mut choice, block);
    }
    choice.fill_calls();
    if started {
        answer.choices.insert(0, choice);
    }
    answer
}

/// What a delta says about its call: the id and the name, which usually only the start has.
fn header(delta: &Value) -> Value {
    let keys = ["toolUseId", "name"].into_iter();
    let fields = keys.filter(|key| !text(delta, key).is_empty());
    fields
        .map(|key| (key.to_owned(), delta[key].clone()))
        .collect()
}

/// Whether a delta has the id of another call, or another name beside an id, where the call has none (T07).
fn is_other_call(tool: &Value, header: &Value) -> bool {
    let [own_id, own_name] = ["toolUseId", "name"].map(|key| text(tool, key));
    let [id, name] = ["toolUseId", "name"].map(|key| text(header, key));
    let has_other_name = !own_name.is_empty() && !name.is_empty() && own_name != name;
    !id.is_empty() && (own_id != id && (!own_id.is_empty() || has_other_name))
}

/// Takes the id and the name of a call from a later event, if its start had none.
fn fill_header(own: &mut Value, later: &Value) {
    for key in ["toolUseId", "name"] {
        if text(own, key).is_empty() && later[key].is_string() {
            own[key] = later[key].clone();
        }
    }
}

fn finish_block(choice: &mut Choice, block: &Block) {
    let input: String = block
        .deltas
        .iter()
        .map(|delta| text(&delta["toolUse"], "input"))
        .collect();
    let tool = &block.start["toolUse"];
    if tool["type"] == "server_tool_use" {
        let mut object = tool.clone();
        object["input"] = serde_json::from_str(&input).unwrap_or_else(|_| json!({}));
        choice.list("content_parts", json!({ "toolUse": object }));
    } else if tool.is_object() {
        choice.calls.push(Call {
            id: tool["toolUseId"].as_str().map(str::to_owned),
            name: text(tool, "name").to_owned(),
            custom: false,
            // A07: the start's input counts if no fragment came.
            arguments: match arguments(&tool["input"]) {
                initial if input.trim().is_empty() && !initial.is_empty() => initial,
                _ => input,
            },
        });
    } else if block.start["toolResult"].is_object() {
        let mut object = block.start["toolResult"].clone();
        let content = block
            .deltas
            .iter()
            .flat_map(|delta| entries(&delta["toolResult"]));
        let content: Vec<Value> = content.cloned().collect();
        if !content.is_empty() {
            object["content"] = json!(content);
        }
        choice.list("content_parts", json!({ "toolResult": object }));
    }
    let of = |key: &str| -> String {
        block
            .deltas
            .iter()
            .map(|delta| text(&delta["reasoningContent"], key))
            .collect()
    };
    if !of("signature").is_empty() {
        let mut reasoning = json!({ "signature": of("signature") });
        if block
            .deltas
            .iter()
            .any(|delta| delta["reasoningContent"]["text"].is_string())
        {
            reasoning["text"] = json!(of("text"));
        }
        choice.list(
            "reasoning_details",
            json!({ "reasoningContent": { "reasoningText": reasoning } }),
        );
    }
    for delta in &block.deltas {
        for key in ["redactedContent", "data"] {
            let value = &delta["reasoningContent"][key];
            if !value.is_null() {
                choice.list(
                    "reasoning_details",
                    json!({ "reasoningContent": { key: value } }),
                );
            }
        }
    }
}

fn read_body(body: &Value) -> Answer {
    let mut answer = Answer::default();
    let mut choice = Choice::default();
    for part in entries(&body["output"]["message"]["content"]) {
        choice.content += text(part, "text");
        let tool = &part["toolUse"];
        let reasoning = &part["reasoningContent"];
        if tool.is_object() && tool["type"] != "server_tool_use" {
            choice.calls.push(Call {
                id: tool["toolUseId"].as_str().map(str::to_owned),
                name: text(tool, "name").to_owned(),
                custom: false,
                arguments: arguments(&tool["input"]),
            });
        } else if reasoning.is_object() {
            choice.reasoning += text(&reasoning["reasoningText"], "text");
            if !reasoning["reasoningText"].is_object()
                || reasoning["reasoningText"]["signature"].is_string()
            {
                choice.list("reasoning_details", part.clone());
            }
        } else if part["citationsContent"].is_object() {
            for content in entries(&part["citationsContent"]["content"]) {
                choice.content += text(content, "text");
            }
            for citation in entries(&part["citationsContent"]["citations"]) {
                choice.list("annotations", citation.clone());
            }
        } else if part["text"].is_null() {
            choice.list("content_parts", part.clone());
        }
    }
    choice.finish_reason = reason(&body["stopReason"]);
    choice.fill_calls();
    merge(&mut answer.usage, &body["usage"]);
    answer.choices.insert(0, choice);
    answer
}
