//! Anthropic: the blocks in the order of their starts, each with all of its deltas.

use serde_json::{Value, json};

use super::{
    Answer, Call, Choice, Stream, WireValue, arguments, entries, is_error, merge, reason, text,
};

/// A block with everything that arrived for it.
struct Block {
    index: i64,
    start: Value,
    deltas: Vec<Value>,
    is_open: bool,
    /// Whether its start is missing.
    is_headless: bool,
}

impl Block {
    /// Whether it is a text, or thinking, of which nothing has arrived.
    fn is_empty(&self) -> bool {
        let is_text = ["text", "thinking"]
            .iter()
            .any(|kind| self.start["type"] == *kind);
        let mut values = [&self.start].into_iter().chain(&self.deltas);
        let is_filled = |value: &Value| {
            let fields = value.as_object().into_iter().flatten();
            let mut fields = fields
                .filter(|(key, _)| *key != "type")
                .map(|(_, value)| value);
            fields.any(|value| !matches!(value, Value::Null) && *value != "" && *value != json!([]))
        };
        is_text && !values.any(is_filled)
    }
}

pub(super) fn read(stream: &Stream) -> Answer {
    read_values(&stream.values)
}

pub(super) fn read_values(values: &[WireValue]) -> Answer {
    let mut answer = Answer::default();
    let mut choice = Choice::default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut order: Vec<(usize, Value)> = Vec::new();
    let mut early: Option<(String, usize)> = None;
    let (mut id, mut begun_to) = (None, None);
    let (mut started, mut has_head, mut has_content, mut done) = (false, false, false, false);
    for wire in values {
        let value = &wire.value;
        let kind = super::kind_of(value, &wire.name);
        if done {
            break;
        }
        if is_error(wire) {
            answer.error = true;
            break;
        }
        match kind {
            "message_start" | "message" => {
                // A11: after content it is another message, unless no other one had started.
                let is_late = has_content && !has_head && choice.finish_reason.is_none();
                let own_id = value["message"]["id"].as_str();
                let begun = blocks.iter().filter(|block| !block.is_headless);
                begun_to = begun.map(|block| block.index).max();
                if started && !is_late {
                    let is_same = own_id.is_some() && own_id == id;
                    let has_ended = choice.finish_reason.is_some();
                    if has_content && !has_ended && blocks.iter().all(Block::is_empty) {
                        // What an attempt started and did not fill is forgotten.
                        (id, begun_to, has_content) = (own_id, None, false);
                        blocks.clear();
                        order.clear();
                    }
                    if has_content && (!is_same || has_ended) {
                        answer.malformed = true;
                        break;
                    }
                    continue;
                }
                id = own_id;
                (started, has_head) = (true, true);
                let message = if kind == "message" {
                    value
                } else {
                    &value["message"]
                };
                for (index, start) in (0..).zip(entries(&message["content"])) {
                    if begun_to.is_some_and(|last| index <= last) {
                        answer.malformed = true;
                        continue;
                    }
                    has_content = true;
                    order.push((blocks.len(), Value::Null));
                    blocks.push(Block {
                        index,
                        start: start.clone(),
                        deltas: Vec::new(),
                        is_open: false,
                        is_headless: false,
                    });
                }
                merge(&mut answer.usage, &message["usage"]);
                // A10: before the end mark it counts only if the start has blocks, and no other block follows.
                let is_empty = is_late || blocks.is_empty();
                let count = if is_empty { usize::MAX } else { blocks.len() };
                early = reason(&message["stop_reason"]).map(|reason| (reason, count));
                // Without content and reason it is only the start.
                let has_answer = !entries(&message["content"]).is_empty() || early.is_some();
                done = kind == "message" && has_answer;
                if answer.malformed {
                    break;
                }
            }
            "content_block_start" => {
                (started, has_content) = (true, true);
                let index = value["index"].as_i64().unwrap_or_default();
                if begun_to.is_some_and(|last| index <= last) {
                    answer.malformed = true; // A11: it begins anew.
                    break;
                }
                let start = &value["content_block"];
                let is_it = |block: &&mut Block| block.index == index && block.is_open;
                let known = blocks.iter_mut().rev().find(is_it);
                if let Some(block) = known.filter(|block| is_restart(block, start)) {
                    if std::mem::take(&mut block.is_headless) {
                        block.start = start.clone();
                    }
                    fill(&mut block.start, start);
                    continue;
                }
                order.push((blocks.len(), Value::Null));
                blocks.push(Block {
                    index,
                    start: start.clone(),
                    deltas: Vec::new(),
                    is_open: true,
                    is_headless: false,
                });
            }
            "content_block_delta" => {
                (started, has_content) = (true, true);
                let index = value["index"].as_i64().unwrap_or_default();
                let Some(delta) = typed(&value["delta"]) else {
                    continue; // nothing
                };
                let Some(at) = block_of(&mut blocks, index, &delta) else {
                    continue;
                };
                blocks[at].deltas.push(delta.clone());
                order.push((at, delta));
            }
            "content_block_stop" => {
                for block in &mut blocks {
                    block.is_open &= block.index != value["index"].as_i64().unwrap_or_default();
                }
            }
            "message_delta" => {
                let new = reason(&value["delta"]["stop_reason"]);
                for block in &mut blocks {
                    // A03: one without a reason is not the end.
                    block.is_open &= new.is_none();
                }
                let usage = &value["usage"];
                let is_outside = usage.is_object();
                merge(
                    &mut answer.usage,
                    if is_outside {
                        usage
                    } else {
                        &value["delta"]["usage"]
                    },
                );
                choice.finish_reason = new.or_else(|| choice.finish_reason.take());
            }
            "message_stop" => {
                if answer.usage.is_null() {
                    merge(
                        &mut answer.usage,
                        &value["amazon-bedrock-invocationMetrics"],
                    );
                }
                done = true;
            }
            // D16: kept, if it is an event of this dialect.
            _ if started && value["type"].is_string() && !matches!(kind, "ping" | "keepalive") => {
                choice.list("content_parts", value.clone());
            }
            _ => {}
        }
    }
    let is_whole = |count: usize| done || (blocks.len() == count && order.len() == count);
    if let Some((reason, _)) = early.filter(|(_, count)| is_whole(*count)) {
        choice.finish_reason.get_or_insert(reason);
    }
    for (at, delta) in &order {
        texts(&mut choice, &blocks[*at].start, delta);
    }
    for block in &blocks {
        finish_block(&mut choice, block);
    }
    if done || choice.finish_reason.is_some() {
        choice.fill_calls();
    }
    if done && choice.finish_reason.is_none() {
        choice.end = "done_without_finish";
    }
    if started {
        answer.choices.insert(0, choice);
    }
    answer
}

/// A delta with its type, which its field implies if it is missing; `None` if it has nothing.
fn typed(delta: &Value) -> Option<Value> {
    let mut delta = delta.clone();
    let Some(fields) = delta.as_object_mut() else {
        return Some(delta).filter(super::is_set);
    };
    let kinds = [
        ("text", "text_delta"),
        ("thinking", "thinking_delta"),
        ("partial_json", "input_json_delta"),
        ("signature", "signature_delta"),
        ("citation", "citations_delta"),
    ];
    let has = |key: &str| fields.get(key).is_some_and(super::is_set);
    let implied = kinds.iter().find(|(key, _)| has(key));
    let own = fields.get("type").and_then(Value::as_str);
    let kind = own.filter(|kind| !kind.is_empty()).map(str::to_owned);
    let kind = kind.or_else(|| implied.map(|(_, kind)| (*kind).to_owned()));
    let is_known = !matches!(kind.as_deref(), None | Some("signature_delta"));
    let mut others = fields.iter().filter(|(key, _)| *key != "type");
    let is_blank = !is_known && others.all(|(_, value)| !super::is_set(value));
    if let Some(kind) = kind {
        fields.insert("type".to_owned(), json!(kind));
    }
    (!is_blank).then_some(delta)
}

/// A block whose start is missing (A08).
fn missing(index: i64, delta: &str) -> Block {
    let kind = match delta {
        "input_json_delta" => "tool_use",
        "thinking_delta" | "signature_delta" => "thinking",
        _ => "text",
    };
    Block {
        index,
        start: json!({ "type": kind }),
        deltas: Vec::new(),
        is_open: true,
        is_headless: true,
    }
}

/// Whether a start is that of this open call: one that its first delta has overtaken, or that comes twice (A08).
fn is_restart(block: &Block, start: &Value) -> bool {
    let is_call = |start: &Value| start["type"] == "tool_use";
    let has_id = start["id"].is_string() && start["id"] == block.start["id"];
    is_call(start) && is_call(&block.start) && (block.is_headless || has_id)
}

/// Adds what the start of a call lacks from another start of it.
fn fill(start: &mut Value, other: &Value) {
    if text(start, "name").is_empty() {
        start["name"] = other["name"].clone();
    }
    if arguments(&start["input"]).is_empty() {
        start["input"] = other["input"].clone();
    }
}

/// The block of a delta: that which is open, or the call that has stopped, or a new one (A08). `None` if there is nothing to add.
fn block_of(blocks: &mut Vec<Block>, index: i64, delta: &Value) -> Option<usize> {
    let kind = text(delta, "type");
    let is_input = kind == "input_json_delta";
    let is_open = |block: &Block| block.index == index && block.is_open;
    let open = blocks.iter().rposition(is_open);
    if let Some(at) = open.filter(|at| !is_input || blocks[*at].start["type"] != "text") {
        return Some(at);
    }
    let key = match kind {
        "text_delta" => "text",
        "thinking_delta" => "thinking",
        "input_json_delta" => "partial_json",
        _ => "type",
    };
    if arguments(&delta[key]).is_empty() {
        return None;
    }
    let last = blocks.iter().rposition(|block| block.index == index);
    if let Some(at) = last.filter(|_| is_input) {
        match text(&blocks[at].start, "type") {
            "tool_use" => {
                blocks[at].is_open = true;
                return Some(at);
            }
            "text" | "thinking" | "redacted_thinking" => {}
            _ => return None, // a tool of the server
        }
    }
    blocks.push(missing(index, kind));
    Some(blocks.len() - 1)
}

/// Adds the texts of a block's start (a delta of null) or of a delta, in the order of arrival (D10).
fn texts(choice: &mut Choice, start: &Value, delta: &Value) {
    match (delta["type"].as_str(), text(start, "type")) {
        (None, "text") => {
            choice.content += text(start, "text");
            for citation in entries(&start["citations"]) {
                choice.list("annotations", citation.clone());
            }
        }
        (None, "thinking") => choice.reasoning += text(start, "thinking"),
        (Some("text_delta"), _) => choice.content += text(delta, "text"),
        (Some("thinking_delta"), _) => choice.reasoning += text(delta, "thinking"),
        (Some("citations_delta"), _) => choice.list("annotations", delta["citation"].clone()),
        (Some("input_json_delta" | "signature_delta" | "compaction_delta"), _) => {}
        (Some(_), "text" | "tool_use") => choice.list("content_parts", delta.clone()),
        _ => {}
    }
}

fn finish_block(choice: &mut Choice, block: &Block) {
    let Block { start, deltas, .. } = block;
    let json: String = deltas
        .iter()
        .map(|delta| arguments(&delta["partial_json"]))
        .collect();
    match text(start, "type") {
        "text" => {}
        "tool_use" => {
            // A07: the start's input counts if no fragment came.
            let initial = arguments(&start["input"]);
            choice.calls.push(Call {
                id: start["id"].as_str().map(str::to_owned),
                name: text(start, "name").to_owned(),
                custom: false,
                arguments: if initial.is_empty() || !json.trim().is_empty() {
                    json
                } else {
                    initial
                },
            });
        }
        "thinking" | "redacted_thinking" => {
            let mut object = start.clone();
            let more: String = deltas.iter().map(|delta| text(delta, "thinking")).collect();
            if !more.is_empty() {
                object["thinking"] = json!(format!("{}{more}", text(start, "thinking")));
            }
            if let Some(delta) = deltas
                .iter()
                .rfind(|delta| delta["type"] == "signature_delta")
            {
                object["signature"] = delta["signature"].clone();
            }
            if !text(&object, "signature").is_empty() || !text(&object, "data").is_empty() {
                choice.list("reasoning_details", object);
            }
        }
        _ => {
            let mut object = start.clone();
            if !json.is_empty() {
                object["input"] = serde_json::from_str(&json).unwrap_or_else(|_| json!(json));
            }
            for delta in deltas
                .iter()
                .filter(|delta| delta["type"] == "compaction_delta")
            {
                for (key, value) in delta
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(k, _)| *k != "type")
                {
                    object[key] = match value.as_str() {
                        Some(more) => json!(format!("{}{more}", text(&object, key))),
                        None => value.clone(),
                    };
                }
            }
            choice.list("content_parts", object);
        }
    }
}
