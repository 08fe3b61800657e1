use serde_json::json;

use super::{answer, check, check_messages, common, schema};
use crate::Provider::Cohere;

#[test]
fn the_common_part() {
    check(
        Cohere,
        common(),
        json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": [
                    { "type": "text", "text": "Where is this?" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0=" } },
                ] },
                { "role": "assistant", "content": "Let me ask.", "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "locate", "arguments": "{\"zoom\":2}" } },
                    { "id": "c2", "type": "function", "function": { "name": "now", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "c2", "content": "12:00" },
                { "role": "tool", "tool_call_id": "c1", "content": "{\"city\":\"Oslo\"}" },
                { "role": "user", "content": "Thanks. And this?" },
            ],
            "tools": [
                { "type": "function", "function": { "name": "locate", "description": "Finds a place.", "parameters": schema() } },
                { "type": "function", "function": { "name": "now", "parameters": { "type": "object", "properties": {} } } },
            ],
            "max_tokens": 64,
            "temperature": 0.5,
            "response_format": { "type": "json_object", "json_schema": schema() },
            "stream": true,
        }),
    );
}

#[test]
fn everything_else() {
    check(
        Cohere,
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": [
                { "type": "image_url", "image_url": { "url": "https://a/b.png", "detail": "low" } },
            ] }],
            "tools": [{ "type": "function", "function": { "name": "f", "strict": true } }],
            "tool_choice": "required",
            "top_p": 0.9,
            "top_k": 5,
            "seed": 7,
            "stop": "END",
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
            "logprobs": true,
            "response_format": { "type": "json_object" },
            "reasoning_effort": "none",
            "documents": ["a"],
        }),
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": [
                { "type": "image_url", "image_url": { "url": "https://a/b.png", "detail": "low" } },
            ] }],
            "tools": [{ "type": "function", "function": { "name": "f", "parameters": { "type": "object", "properties": {} } } }],
            "strict_tools": true,
            "tool_choice": "REQUIRED",
            "p": 0.9,
            "k": 5,
            "seed": 7,
            "stop_sequences": ["END"],
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
            "logprobs": true,
            "response_format": { "type": "json_object" },
            "thinking": { "type": "disabled" },
            "documents": ["a"],
            "stream": true,
        }),
    );
}

#[test]
fn h04_the_plan_stands_in_place_of_the_text() {
    let calls = answer(json!({}))["tool_calls"].clone();
    let plan = answer(json!({ "tool_plan": "I ask.", "reasoning_content": "I ask." }));
    check_messages(
        Cohere,
        json!([plan]),
        json!([{ "role": "assistant", "tool_plan": "I ask.", "tool_calls": calls }]),
    );
    let both = answer(json!({ "tool_plan": "I ask.", "reasoning_content": "Hm. I ask." }));
    check_messages(
        Cohere,
        json!([both]),
        json!([{
            "role": "assistant",
            "content": [{ "type": "thinking", "thinking": "Hm. " }],
            "tool_plan": "I ask.",
            "tool_calls": calls,
        }]),
    );
}

#[test]
fn h05_thinking_is_a_part_of_the_content() {
    check_messages(
        Cohere,
        json!([{ "role": "assistant", "content": "a", "reasoning_content": "Hm." }]),
        json!([{ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm." },
            { "type": "text", "text": "a" },
        ] }]),
    );
}
