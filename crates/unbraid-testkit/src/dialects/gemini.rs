//! Gemini: the parts of each candidate, and its last reason.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    Answer, Call, Choice, Stream, arguments, entries, is_error, is_set, merge, reason, text,
};

pub(super) fn read(stream: &Stream) -> Answer {
    let mut answer = Answer::default();
    let mut parts: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    let mut sources: BTreeMap<(u32, &str), Value> = BTreeMap::new();
    let mut continues: BTreeMap<u32, bool> = BTreeMap::new();
    for wire in &stream.values {
        let value = &wire.value;
        if is_error(wire) {
            answer.error = true;
            break;
        }
        let is_body = |value: &Value| {
            ["candidates", "promptFeedback", "usageMetadata"]
                .iter()
                .any(|key| !value[*key].is_null())
        };
        let body = if is_body(value) {
            value
        } else {
            &value["response"]
        };
        let candidates = entries(&body["candidates"]);
        let have_index = candidates
            .iter()
            .any(|candidate| !candidate["index"].is_null());
        for (position, candidate) in (0..).zip(&candidates) {
            // G05
            let default = if have_index { 0 } else { position };
            let index = candidate["index"]
                .as_u64()
                .map_or(default, |index| index as u32);
            let choice = answer.choices.entry(index).or_default();
            let own = entries(&candidate["content"]["parts"]);
            let has_content = own
                .iter()
                .any(|part| part["text"] != "" || has_other_content(part));
            *continues.entry(index).or_default() |= choice.finish_reason.is_some() && has_content;
            parts
                .entry(index)
                .or_default()
                .extend(own.into_iter().cloned());
            let new = reason(&candidate["finishReason"]);
            let new = new.filter(|reason| reason != "FINISH_REASON_UNSPECIFIED");
            choice.finish_reason = new.or_else(|| choice.finish_reason.take());
            for key in ["citationMetadata", "groundingMetadata"] {
                if candidate[key]
                    .as_object()
                    .is_some_and(|fields| !fields.is_empty())
                {
                    let before = sources.remove(&(index, key));
                    let new = &candidate[key];
                    let all = match key {
                        "citationMetadata" => with_citations_before(before, new),
                        _ => new.clone(),
                    };
                    sources.insert((index, key), all);
                }
            }
        }
        merge(&mut answer.usage, &body["usageMetadata"]);
        let feedback = &body["promptFeedback"];
        let is_blocked = !(text(feedback, "blockReason").is_empty()
            && text(feedback, "blockReasonMessage").is_empty());
        if candidates.is_empty() && is_blocked {
            answer.error = true; // G10
            break;
        }
    }
    // A value that was cut followed the reasons, unless it was of a candidate without one.
    let mut choices = answer.choices.values();
    if stream.is_cut && choices.all(|choice| choice.finish_reason.is_some()) {
        continues
            .values_mut()
            .for_each(|continues| *continues = true);
    }
    for (index, choice) in &mut answer.choices {
        if (answer.error || stream.is_cut) && continues[index] {
            choice.finish_reason = None;
        }
        for part in parts.get(index).into_iter().flatten() {
            read_part(choice, part);
        }
        streamed_calls(choice, parts.get(index).map_or(&[], Vec::as_slice));
        for key in ["citationMetadata", "groundingMetadata"] {
            if let Some(source) = sources.remove(&(*index, key)) {
                choice.list("annotations", source);
            }
        }
    }
    answer
}

/// Citations are those of one chunk, unless they repeat all of those before (G17). Of other fields the last value counts.
fn with_citations_before(before: Option<Value>, new: &Value) -> Value {
    let mut all = before.unwrap_or_else(|| json!({}));
    for (key, value) in new.as_object().into_iter().flatten() {
        let is_list = key == "citations" || key == "citationSources";
        let own = match value {
            Value::Object(fields) if fields.is_empty() => Vec::new(),
            value if is_list => entries(value),
            _ => Vec::new(),
        };
        let old = if is_list {
            all[key].clone()
        } else {
            Value::Null
        };
        let old = entries(&old);
        let value = if own.is_empty() {
            let is_said = !old.is_empty() || (value.is_null() && !all[key].is_null());
            if is_said {
                all[key].clone()
            } else {
                value.clone()
            }
        } else if own.starts_with(&old) {
            json!(own)
        } else {
            json!([old, own].concat())
        };
        all[key] = value;
    }
    all
}

/// Whether a part has more than a text and its signature.
fn has_other_content(part: &Value) -> bool {
    let fields = part.as_object().into_iter().flatten();
    let mut content = fields.filter(|(key, value)| {
        !["text", "thought", "thoughtSignature"].contains(&key.as_str()) && is_set(value)
    });
    content.next().is_some()
}

/// Whether a part is a call: an empty one beside other content is none.
fn is_call(part: &Value) -> bool {
    let call = &part["functionCall"];
    let is_alone = text(part, "text").is_empty() && !has_other_content(part);
    call.is_object() && (is_set(call) || is_alone)
}

fn read_part(choice: &mut Choice, part: &Value) {
    let is_thought = part["thought"] == true;
    if is_call(part) {
        let lane = match is_thought {
            true => &mut choice.reasoning,
            false => &mut choice.content,
        };
        return lane.push_str(text(part, "text"));
    }
    let signature = is_set(&part["thoughtSignature"]);
    let data = [&part["inlineData"], &part["fileData"]]
        .into_iter()
        .find(|data| data.is_object());
    let has_content = has_other_content(part);
    let own = part["text"].as_str();
    if let Some(text) = own.filter(|text| !text.is_empty() || !has_content) {
        let lane = if is_thought {
            &mut choice.reasoning
        } else {
            &mut choice.content
        };
        lane.push_str(text);
        if has_content && !signature {
            // The fields beside a text.
            let fields = part.as_object().into_iter().flatten();
            let others = fields.filter(|(key, value)| {
                is_set(value) && !["text", "thought"].contains(&key.as_str())
            });
            let others: Map<String, Value> = others.map(|(k, v)| (k.clone(), v.clone())).collect();
            choice.list("content_parts", others.into());
        }
    } else if let Some(data) = data {
        let is_image = text(data, "mimeType").starts_with("image/");
        return choice.list(
            if is_image { "images" } else { "content_parts" },
            part.clone(),
        );
    } else if has_content || !signature {
        return choice.list("content_parts", part.clone());
    }
    if signature {
        choice.list("reasoning_details", part.clone());
    }
}

/// A call that more parts may continue.
struct Open {
    /// Its place among the calls.
    at: usize,
    id: String,
    name: String,
    value: Value,
    /// The paths of the strings whose last piece said that more follow.
    strings: BTreeSet<String>,
}

/// The calls: whole ones, and those whose arguments arrive in several parts (G09).
fn streamed_calls(choice: &mut Choice, parts: &[Value]) {
    let mut open: Vec<Open> = Vec::new();
    for call in parts
        .iter()
        .filter(|part| is_call(part))
        .map(|part| &part["functionCall"])
    {
        let continues = call["willContinue"] == true;
        let pieces = entries(&call["partialArgs"]);
        let (id, name) = (text(call, "id"), text(call, "name"));
        let args = call["args"].as_object().filter(|args| !args.is_empty());
        let mut at = match open.iter().rposition(|known| known.id == id) {
            Some(at) if !id.is_empty() => {
                Some(at).filter(|_| name.is_empty() || open[at].name == name)
            }
            _ => {
                let may_have = |known: &Open| id.is_empty() || known.id.is_empty();
                let last = open.len().checked_sub(1);
                last.filter(|last| name.is_empty() && may_have(&open[*last]))
            }
        };
        if at.is_none() {
            let is_blank = pieces.iter().all(|piece| is_empty(piece));
            if name.is_empty() && args.is_none() && is_blank {
                continue;
            }
            // The next call ends those before it, unless their ids differ.
            let (kept, ended): (Vec<_>, Vec<_>) = open
                .into_iter()
                .partition(|known| !id.is_empty() && !known.id.is_empty() && known.id != id);
            open = kept;
            for call in ended {
                end(choice, &call, true);
            }
            let whole = arguments(&call["args"]);
            let is_whole = !continues && pieces.is_empty();
            choice.calls.push(Call {
                id: call["id"].as_str().map(str::to_owned),
                name: name.to_owned(),
                custom: false,
                arguments: match whole.as_str() {
                    _ if !is_whole => String::new(),
                    "" => "{}".to_owned(),
                    whole => whole.to_owned(),
                },
            });
            if is_whole {
                continue;
            }
            at = Some(open.len());
            open.push(Open {
                at: choice.calls.len() - 1,
                id: id.to_owned(),
                name: name.to_owned(),
                value: Value::Object(Map::new()),
                strings: BTreeSet::new(),
            });
        }
        let Some(at) = at else { continue };
        for (key, value) in args.into_iter().flatten() {
            open[at].value[key] = value.clone();
        }
        for piece in pieces {
            set(&mut open[at].value, piece);
            let path = text(piece, "jsonPath").to_owned();
            let is_string = ["numberValue", "boolValue", "nullValue"]
                .iter()
                .all(|key| piece[*key].is_null());
            match is_string && piece["willContinue"] == true {
                true => open[at].strings.insert(path),
                false => open[at].strings.remove(&path),
            };
        }
        if !continues {
            let call = open.remove(at);
            choice.calls[call.at].arguments = call.value.to_string();
        }
    }
    let has_reason = choice.finish_reason.is_some();
    for call in open {
        end(choice, &call, has_reason);
    }
}

/// The end of a call without a part that says so. D14: without a reason it was cut, and so was one with an open string.
fn end(choice: &mut Choice, call: &Open, is_whole: bool) {
    let arguments = &mut choice.calls[call.at].arguments;
    *arguments = call.value.to_string();
    if !is_whole || !call.strings.is_empty() {
        arguments.pop();
    }
}

/// Whether a piece adds nothing to a string.
fn is_empty(piece: &Value) -> bool {
    let others = ["numberValue", "boolValue", "nullValue"];
    text(piece, "stringValue").is_empty() && others.iter().all(|key| piece.get(key).is_none())
}

/// Sets the value of a simple path, or continues its string.
fn set(root: &mut Value, piece: &Value) {
    let path = text(piece, "jsonPath")
        .trim_start_matches('$')
        .replace('[', ".")
        .replace([']', '\''], "");
    let mut target = root;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        target = match step.parse::<usize>() {
            Ok(at) => {
                if !target.is_array() {
                    *target = json!([]);
                }
                let items = target.as_array_mut().expect("just made");
                while items.len() <= at {
                    items.push(Value::Null);
                }
                &mut items[at]
            }
            Err(_) => {
                if !target.is_object() {
                    *target = json!({});
                }
                &mut target[step]
            }
        };
    }
    let number = &piece["numberValue"];
    let boolean = &piece["boolValue"];
    *target = if let Some(more) = piece["stringValue"].as_str() {
        // A string is continued until it ends, and never set twice.
        json!(format!("{}{more}", target.as_str().unwrap_or_default()))
    } else if !number.is_null() {
        number.clone()
    } else if !boolean.is_null() {
        boolean.clone()
    } else if piece.get("nullValue").is_some() {
        Value::Null
    } else {
        json!(target.as_str().unwrap_or_default())
    };
}
