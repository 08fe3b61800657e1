use serde_json::json;

use super::{answer, check, check_messages, common, schema};
use crate::Provider::Ollama;

#[test]
fn the_common_part() {
    check(
        Ollama,
        common(),
        json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Where is this?", "images": ["iVBORw0="] },
                { "role": "assistant", "content": "Let me ask.", "tool_calls": [
                    { "id": "c1", "function": { "name": "locate", "arguments": { "zoom": 2 } } },
                    { "id": "c2", "function": { "name": "now", "arguments": {} } },
                ] },
                { "role": "tool", "content": "12:00", "tool_name": "now", "tool_call_id": "c2" },
                { "role": "tool", "content": "{\"city\":\"Oslo\"}", "tool_name": "locate", "tool_call_id": "c1" },
                { "role": "user", "content": "Thanks. And this?" },
            ],
            "tools": [
                { "type": "function", "function": { "name": "locate", "description": "Finds a place.", "parameters": schema() } },
                { "type": "function", "function": { "name": "now", "parameters": { "type": "object", "properties": {} } } },
            ],
            "format": schema(),
            "options": { "temperature": 0.5, "num_predict": 64 },
            "stream": true,
        }),
    );
}

#[test]
fn everything_else() {
    check(
        Ollama,
        json!({
            "model": "m",
            "messages": [{ "role": "developer", "content": [
                { "type": "text", "text": "a" },
                { "type": "text", "text": "b" },
            ] }],
            "top_p": 0.9,
            "top_k": 5,
            "seed": 7,
            "stop": "END",
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
            "logprobs": true,
            "top_logprobs": 2,
            "response_format": { "type": "json_object" },
            "reasoning_effort": "none",
            "keep_alive": "5m",
            "options": { "num_ctx": 8192 },
        }),
        json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "a\nb" }],
            "options": {
                "num_ctx": 8192,
                "top_p": 0.9,
                "top_k": 5,
                "seed": 7,
                "frequency_penalty": 0.2,
                "presence_penalty": 0.1,
                "stop": ["END"],
            },
            "format": "json",
            "logprobs": true,
            "top_logprobs": 2,
            "keep_alive": "5m",
            "think": false,
            "stream": true,
        }),
    );
}

#[test]
fn reasoning_returns_as_thinking() {
    check_messages(
        Ollama,
        json!([answer(json!({ "reasoning_content": "Hm." }))]),
        json!([{ "role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [
            { "id": "c1", "function": { "name": "now", "arguments": {} } },
        ] }]),
    );
}
