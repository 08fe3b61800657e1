//! Ollama: one object a line.

use serde_json::{Map, Value, json};

use super::{Answer, Call, Choice, Stream, arguments, entries, is_cut, is_error, reason, text};

pub(super) fn read(stream: &Stream) -> Answer {
    let mut answer = Answer::default();
    let mut choice = Choice::default();
    let mut started = false;
    for wire in &stream.values {
        let value = &wire.value;
        if is_error(wire) {
            answer.error = true;
            break;
        }
        started = true;
        let message = &value["message"];
        choice.content += text(message, "content");
        choice.content += text(value, "response");
        choice.reasoning += text(message, "thinking");
        choice.reasoning += text(value, "thinking");
        for entry in [message, value]
            .into_iter()
            .flat_map(|from| entries(&from["tool_calls"]))
        {
            let function = &entry["function"];
            let whole = arguments(&function["arguments"]);
            let reason = reason(&value["done_reason"]).filter(|_| value["done"] == true);
            choice.calls.push(Call {
                id: entry["id"].as_str().map(str::to_owned),
                name: text(function, "name").to_owned(),
                custom: false,
                // Each call is whole, unless the answer was cut in it (D14).
                arguments: match whole.is_empty() && !reason.is_some_and(|reason| is_cut(&reason)) {
                    true => "{}".to_owned(),
                    false => whole,
                },
            });
        }
        for (from, key) in [message, value]
            .into_iter()
            .flat_map(|from| [(from, "images"), (from, "image")])
        {
            match &from[key] {
                Value::Array(images) => {
                    images
                        .iter()
                        .for_each(|image| choice.list("images", image.clone()));
                }
                Value::Null => {}
                image => choice.list("images", image.clone()),
            }
        }
        for list in ["annotations", "reasoning_details", "content_parts"] {
            for entry in message[list].as_array().into_iter().flatten() {
                choice.list(list, entry.clone());
            }
        }
        if value["done"] == true {
            choice.finish_reason = reason(&value["done_reason"]);
            let fields = value.as_object().into_iter().flatten();
            let counts = fields.filter(|(key, value)| {
                (key.ends_with("_count") || key.ends_with("_duration")) && !value.is_null()
            });
            let counts: Map<String, Value> = counts.map(|(k, v)| (k.clone(), v.clone())).collect();
            answer.usage = if counts.is_empty() {
                Value::Null
            } else {
                json!(counts)
            };
            if choice.finish_reason.is_none() {
                choice.end = "done_without_finish";
            }
            break;
        }
    }
    if started {
        answer.choices.insert(0, choice);
    }
    answer
}
