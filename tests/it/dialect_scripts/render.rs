//! Writes an answer in each dialect.

use serde_json::{Value, json};
use unbraid_core::Dialect;
use unbraid_testkit::dialects::message;

use super::{Ending, Script};

/// The answer as a stream.
pub(crate) fn stream(script: &Script, dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Responses => named_events(&responses(script)),
        Dialect::Anthropic => named_events(&anthropic(script)),
        Dialect::Cohere => named_events(&cohere(script)),
        Dialect::Gemini => events(&gemini(script)),
        Dialect::Ollama => {
            let lines = ollama(script);
            lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>()
                .into_bytes()
        }
        Dialect::Bedrock => bedrock(script)
            .iter()
            .flat_map(|(name, payload)| {
                let headers = [(":event-type", *name), (":message-type", "event")];
                message(&headers, payload.to_string().as_bytes())
            })
            .collect(),
        _ => [events(&chat(script)), b"data: [DONE]\n\n".to_vec()].concat(),
    }
}

fn events(values: &[Value]) -> Vec<u8> {
    values
        .iter()
        .map(|value| format!("data: {value}\n\n"))
        .collect::<String>()
        .into_bytes()
}

fn named_events(values: &[Value]) -> Vec<u8> {
    let event = |value: &Value| {
        let name = value["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {value}\n\n")
    };
    values.iter().map(event).collect::<String>().into_bytes()
}

/// Arguments in three fragments.
fn pieces(arguments: &Value) -> Vec<String> {
    let text = if arguments == &json!({}) {
        String::new()
    } else {
        arguments.to_string()
    };
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(characters.len() / 3 + 1)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn id(position: usize) -> String {
    format!("call_{position}")
}

fn reason<'r>(script: &Script, stop: &'r str, calls: &'r str, cut: &'r str) -> &'r str {
    match script.ending {
        Ending::Cut => cut,
        Ending::Complete if script.calls.is_empty() => stop,
        Ending::Complete => calls,
    }
}

fn chat_usage(script: &Script) -> Value {
    let (prompt, completion) = (script.prompt_tokens, script.completion_tokens);
    json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
}

fn chat(script: &Script) -> Vec<Value> {
    let chunk = |delta: Value| json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": delta }] });
    let mut chunks = vec![chunk(json!({ "role": "assistant" }))];
    chunks.extend(
        script
            .reasoning
            .iter()
            .map(|text| chunk(json!({ "reasoning_content": text }))),
    );
    chunks.extend(
        script
            .text
            .iter()
            .map(|text| chunk(json!({ "content": text }))),
    );
    for (position, (name, arguments)) in script.calls.iter().enumerate() {
        let head = json!({ "index": position, "id": id(position), "function": { "name": name, "arguments": arguments.to_string() } });
        chunks.push(chunk(json!({ "tool_calls": [head] })));
    }
    let reason = reason(script, "stop", "tool_calls", "length");
    chunks.push(
        json!({ "id": "c", "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }),
    );
    chunks.push(json!({ "id": "c", "choices": [], "usage": chat_usage(script) }));
    chunks
}

fn anthropic_usage(script: &Script) -> Value {
    json!({ "input_tokens": script.prompt_tokens - 1, "cache_read_input_tokens": 1, "output_tokens": script.completion_tokens })
}

fn anthropic(script: &Script) -> Vec<Value> {
    let mut values = vec![
        json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": { "input_tokens": script.prompt_tokens - 1, "cache_read_input_tokens": 1, "output_tokens": 1 } } }),
    ];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        values
            .push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        for delta in deltas {
            values.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        values.push(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    };
    let thoughts = script
        .reasoning
        .iter()
        .map(|text| json!({ "type": "thinking_delta", "thinking": text }));
    block(
        json!({ "type": "thinking", "thinking": "" }),
        thoughts.collect(),
    );
    let texts = script
        .text
        .iter()
        .map(|text| json!({ "type": "text_delta", "text": text }));
    block(json!({ "type": "text", "text": "" }), texts.collect());
    for (position, (name, arguments)) in script.calls.iter().enumerate() {
        let deltas = pieces(arguments)
            .into_iter()
            .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
        block(
            json!({ "type": "tool_use", "id": id(position), "name": name, "input": {} }),
            deltas.collect(),
        );
    }
    let reason = reason(script, "end_turn", "tool_use", "max_tokens");
    values.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": script.completion_tokens } }));
    values.push(json!({ "type": "message_stop" }));
    values
}

fn responses_usage(script: &Script) -> Value {
    json!({ "input_tokens": script.prompt_tokens, "output_tokens": script.completion_tokens })
}

/// The whole response, with its items.
fn response(script: &Script) -> Value {
    let mut output = vec![
        json!({ "id": "rs", "type": "reasoning", "summary": [{ "type": "summary_text", "text": script.reasoning.concat() }] }),
    ];
    output.push(json!({ "id": "msg", "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": script.text.concat(), "annotations": [] }] }));
    for (position, (name, arguments)) in script.calls.iter().enumerate() {
        output.push(json!({ "id": format!("fc_{position}"), "type": "function_call", "call_id": id(position), "name": name, "arguments": pieces(arguments).concat() }));
    }
    let is_cut = script.ending == Ending::Cut;
    let details = if is_cut {
        json!({ "reason": "max_output_tokens" })
    } else {
        Value::Null
    };
    let status = if is_cut { "incomplete" } else { "completed" };
    json!({ "id": "r", "object": "response", "model": "m", "status": status, "incomplete_details": details, "output": output, "usage": responses_usage(script) })
}

fn responses(script: &Script) -> Vec<Value> {
    let whole = response(script);
    let mut values = vec![
        json!({ "type": "response.created", "response": { "id": "r", "object": "response", "model": "m", "status": "in_progress", "output": [] } }),
    ];
    for (index, item) in whole["output"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        let key = item["id"].clone();
        let kind = item["type"].as_str().unwrap_or_default();
        let mut start = item.clone();
        for emptied in ["content", "summary"] {
            if start[emptied].is_array() {
                start[emptied] = json!([]);
            }
        }
        if kind == "function_call" {
            start["arguments"] = json!("");
        }
        values.push(
            json!({ "type": "response.output_item.added", "output_index": index, "item": start }),
        );
        let deltas: Vec<String> = match kind {
            "reasoning" => script.reasoning.clone(),
            "message" => script.text.clone(),
            _ => pieces(&script.calls[index - 2].1),
        };
        let name = match kind {
            "reasoning" => "reasoning_summary_text",
            "message" => "output_text",
            _ => "function_call_arguments",
        };
        for delta in &deltas {
            values.push(json!({ "type": format!("response.{name}.delta"), "output_index": index, "item_id": key, "content_index": 0, "delta": delta }));
        }
        let (done, field) = (
            format!("response.{name}.done"),
            if kind == "function_call" {
                "arguments"
            } else {
                "text"
            },
        );
        values.push(json!({ "type": done, "output_index": index, "item_id": key, "content_index": 0, field: deltas.concat() }));
        values.push(
            json!({ "type": "response.output_item.done", "output_index": index, "item": item }),
        );
    }
    let kind = format!("response.{}", whole["status"].as_str().unwrap_or_default());
    values.push(json!({ "type": kind, "response": whole }));
    values
}

fn gemini_usage(script: &Script) -> Value {
    json!({ "promptTokenCount": script.prompt_tokens, "candidatesTokenCount": script.completion_tokens - 400, "thoughtsTokenCount": 400 })
}

fn gemini_parts(script: &Script) -> Vec<Value> {
    let thoughts = script
        .reasoning
        .iter()
        .map(|text| json!({ "text": text, "thought": true }));
    let texts = script.text.iter().map(|text| json!({ "text": text }));
    let calls = script
        .calls
        .iter()
        .map(|(name, args)| json!({ "functionCall": { "name": name, "args": args } }));
    thoughts.chain(texts).chain(calls).collect()
}

fn gemini(script: &Script) -> Vec<Value> {
    let parts = gemini_parts(script);
    let mut chunks: Vec<Value> = parts.iter().map(|part| json!({ "candidates": [{ "content": { "role": "model", "parts": [part] } }], "modelVersion": "m" })).collect();
    let reason = reason(script, "STOP", "STOP", "MAX_TOKENS");
    chunks.push(json!({ "candidates": [{ "content": { "role": "model" }, "finishReason": reason }], "usageMetadata": gemini_usage(script) }));
    chunks
}

fn ollama_call(call: &(String, Value)) -> Value {
    json!({ "function": { "name": call.0, "arguments": call.1 } })
}

fn ollama_end(script: &Script, mut message: Value) -> Value {
    message["role"] = json!("assistant");
    let reason = reason(script, "stop", "stop", "length");
    json!({ "model": "m", "created_at": "2025-06-03T17:46:32Z", "message": message, "done": true, "done_reason": reason, "prompt_eval_count": script.prompt_tokens, "eval_count": script.completion_tokens, "total_duration": 5 })
}

fn ollama(script: &Script) -> Vec<Value> {
    let line = |message: Value| json!({ "model": "m", "created_at": "2025-06-03T17:46:32Z", "message": message, "done": false });
    let mut lines: Vec<Value> = script
        .reasoning
        .iter()
        .map(|text| line(json!({ "role": "assistant", "content": "", "thinking": text })))
        .collect();
    lines.extend(
        script
            .text
            .iter()
            .map(|text| line(json!({ "role": "assistant", "content": text }))),
    );
    lines.extend(script.calls.iter().map(|call| {
        line(json!({ "role": "assistant", "content": "", "tool_calls": [ollama_call(call)] }))
    }));
    lines.push(ollama_end(script, json!({ "content": "" })));
    lines
}

fn cohere_usage(script: &Script) -> Value {
    json!({ "billed_units": { "input_tokens": 1 }, "tokens": { "input_tokens": script.prompt_tokens, "output_tokens": script.completion_tokens } })
}

fn cohere(script: &Script) -> Vec<Value> {
    let event = |kind: &str, index: usize, message: Value| json!({ "type": kind, "index": index, "delta": { "message": message } });
    let mut values = vec![
        json!({ "type": "message-start", "id": "c", "delta": { "message": { "role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": [] } } }),
    ];
    for (index, (kind, texts)) in [("thinking", &script.reasoning), ("text", &script.text)]
        .into_iter()
        .enumerate()
    {
        values.push(event(
            "content-start",
            index,
            json!({ "content": { "type": kind, kind: "" } }),
        ));
        values.extend(
            texts
                .iter()
                .map(|text| event("content-delta", index, json!({ "content": { kind: text } }))),
        );
        values.push(json!({ "type": "content-end", "index": index }));
    }
    for (index, (name, arguments)) in script.calls.iter().enumerate() {
        values.push(event("tool-call-start", index, json!({ "tool_calls": { "id": id(index), "type": "function", "function": { "name": name, "arguments": "" } } })));
        values.extend(pieces(arguments).into_iter().map(|piece| {
            event(
                "tool-call-delta",
                index,
                json!({ "tool_calls": { "function": { "arguments": piece } } }),
            )
        }));
        values.push(json!({ "type": "tool-call-end", "index": index }));
    }
    let reason = reason(script, "COMPLETE", "TOOL_CALL", "MAX_TOKENS");
    values.push(json!({ "type": "message-end", "delta": { "finish_reason": reason, "usage": cohere_usage(script) } }));
    values
}

fn bedrock_usage(script: &Script) -> Value {
    let (prompt, completion) = (script.prompt_tokens, script.completion_tokens);
    json!({ "inputTokens": prompt, "outputTokens": completion, "totalTokens": prompt + completion })
}

fn bedrock(script: &Script) -> Vec<(&'static str, Value)> {
    let mut values = vec![("messageStart", json!({ "role": "assistant", "p": "abc" }))];
    let delta = |index: usize, delta: Value| {
        (
            "contentBlockDelta",
            json!({ "contentBlockIndex": index, "delta": delta }),
        )
    };
    values.extend(
        script
            .reasoning
            .iter()
            .map(|text| delta(0, json!({ "reasoningContent": { "text": text } }))),
    );
    values.push(("contentBlockStop", json!({ "contentBlockIndex": 0 })));
    values.extend(
        script
            .text
            .iter()
            .map(|text| delta(1, json!({ "text": text }))),
    );
    values.push(("contentBlockStop", json!({ "contentBlockIndex": 1 })));
    for (position, (name, arguments)) in script.calls.iter().enumerate() {
        let index = position + 2;
        values.push(("contentBlockStart", json!({ "contentBlockIndex": index, "start": { "toolUse": { "toolUseId": id(position), "name": name } } })));
        values.extend(
            pieces(arguments)
                .into_iter()
                .map(|piece| delta(index, json!({ "toolUse": { "input": piece } }))),
        );
        values.push(("contentBlockStop", json!({ "contentBlockIndex": index })));
    }
    let reason = reason(script, "end_turn", "tool_use", "max_tokens");
    values.push(("messageStop", json!({ "stopReason": reason })));
    values.push((
        "metadata",
        json!({ "usage": bedrock_usage(script), "metrics": { "latencyMs": 1 } }),
    ));
    values
}

/// The answer without streaming.
pub(crate) fn body(script: &Script, dialect: Dialect) -> Vec<u8> {
    let (reasoning, text) = (script.reasoning.concat(), script.text.concat());
    let calls = script.calls.iter().enumerate();
    let value = match dialect {
        Dialect::Responses => response(script),
        Dialect::Anthropic => {
            let mut content = vec![
                json!({ "type": "thinking", "thinking": reasoning }),
                json!({ "type": "text", "text": text }),
            ];
            content.extend(calls.map(|(at, (name, input))| json!({ "type": "tool_use", "id": id(at), "name": name, "input": input })));
            let reason = reason(script, "end_turn", "tool_use", "max_tokens");
            json!({ "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason, "usage": anthropic_usage(script) })
        }
        Dialect::Gemini => {
            let reason = reason(script, "STOP", "STOP", "MAX_TOKENS");
            json!({ "candidates": [{ "content": { "role": "model", "parts": gemini_parts(script) }, "finishReason": reason }], "usageMetadata": gemini_usage(script), "modelVersion": "m" })
        }
        Dialect::Ollama => {
            let calls: Vec<Value> = script.calls.iter().map(ollama_call).collect();
            ollama_end(
                script,
                json!({ "content": text, "thinking": reasoning, "tool_calls": calls }),
            )
        }
        Dialect::Cohere => {
            let calls: Vec<Value> = calls.map(|(at, (name, arguments))| json!({ "id": id(at), "type": "function", "function": { "name": name, "arguments": pieces(arguments).concat() } })).collect();
            let content = json!([{ "type": "thinking", "thinking": reasoning }, { "type": "text", "text": text }]);
            let reason = reason(script, "COMPLETE", "TOOL_CALL", "MAX_TOKENS");
            json!({ "id": "c", "finish_reason": reason, "message": { "role": "assistant", "content": content, "tool_calls": calls }, "usage": cohere_usage(script) })
        }
        Dialect::Bedrock => {
            let mut content = vec![
                json!({ "reasoningContent": { "reasoningText": { "text": reasoning } } }),
                json!({ "text": text }),
            ];
            content.extend(calls.map(|(at, (name, input))| json!({ "toolUse": { "toolUseId": id(at), "name": name, "input": input } })));
            let reason = reason(script, "end_turn", "tool_use", "max_tokens");
            json!({ "output": { "message": { "role": "assistant", "content": content } }, "stopReason": reason, "usage": bedrock_usage(script), "metrics": {} })
        }
        _ => {
            let calls: Vec<Value> = calls.map(|(at, (name, arguments))| json!({ "id": id(at), "type": "function", "function": { "name": name, "arguments": arguments.to_string() } })).collect();
            let reason = reason(script, "stop", "tool_calls", "length");
            let message = json!({ "role": "assistant", "content": text, "reasoning_content": reasoning, "tool_calls": calls });
            json!({ "id": "c", "object": "chat.completion", "model": "m", "choices": [{ "index": 0, "message": message, "finish_reason": reason }], "usage": chat_usage(script) })
        }
    };
    value.to_string().into_bytes()
}
