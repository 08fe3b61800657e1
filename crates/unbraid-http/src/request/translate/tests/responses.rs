use serde_json::json;

use super::{answer, check, check_messages, common, schema};
use crate::Provider::Responses;

#[test]
fn the_common_part() {
    check(
        Responses,
        common(),
        json!({
            "model": "m",
            "input": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": [
                    { "type": "input_text", "text": "Where is this?" },
                    { "type": "input_image", "image_url": "data:image/png;base64,iVBORw0=", "detail": "auto" },
                ] },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Let me ask." }] },
                { "type": "function_call", "call_id": "c1", "name": "locate", "arguments": "{\"zoom\":2}" },
                { "type": "function_call", "call_id": "c2", "name": "now", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "c2", "output": "12:00" },
                { "type": "function_call_output", "call_id": "c1", "output": "{\"city\":\"Oslo\"}" },
                { "role": "user", "content": "Thanks. And this?" },
            ],
            "tools": [
                { "type": "function", "name": "locate", "description": "Finds a place.", "parameters": schema(), "strict": false },
                { "type": "function", "name": "now", "parameters": { "type": "object", "properties": {} }, "strict": false },
            ],
            "tool_choice": "auto",
            "max_output_tokens": 64,
            "temperature": 0.5,
            "text": { "format": { "type": "json_schema", "name": "place", "strict": true, "schema": schema() } },
            "store": false,
            "stream": true,
        }),
    );
}

#[test]
fn everything_else() {
    check(
        Responses,
        json!({
            "model": "m",
            "messages": [
                { "role": "developer", "content": [{ "type": "text", "text": "a" }] },
                { "role": "user", "content": [
                    { "type": "image_url", "image_url": { "url": "https://a/b.png", "detail": "high" } },
                    { "type": "file", "file": { "file_id": "file-1" } },
                    { "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } },
                ] },
                { "role": "system", "content": "b" },
            ],
            "tools": [
                { "type": "function", "function": { "name": "f", "strict": true } },
                { "type": "custom", "custom": {
                    "name": "sql",
                    "format": { "type": "grammar", "grammar": { "syntax": "lark", "definition": "start: \"a\"" } },
                } },
                { "type": "web_search", "search_context_size": "low" },
            ],
            "tool_choice": { "type": "custom", "custom": { "name": "sql" } },
            "parallel_tool_calls": false,
            "max_completion_tokens": 9,
            "top_p": 0.9,
            "logprobs": true,
            "top_logprobs": 2,
            "response_format": { "type": "json_object" },
            "reasoning_effort": "high",
            "reasoning": { "summary": "auto" },
            "verbosity": "low",
            "metadata": { "a": "b" },
            "store": true,
            "include": ["file_search_call.results"],
            "stream_options": { "include_usage": true, "include_obfuscation": false },
        }),
        json!({
            "model": "m",
            "input": [
                { "role": "developer", "content": [{ "type": "input_text", "text": "a" }] },
                { "role": "user", "content": [
                    { "type": "input_image", "image_url": "https://a/b.png", "detail": "high" },
                    { "type": "input_file", "file_id": "file-1" },
                    { "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } },
                ] },
                { "role": "system", "content": "b" },
            ],
            "tools": [
                { "type": "function", "name": "f", "parameters": { "type": "object", "properties": {} }, "strict": true },
                { "type": "custom", "name": "sql", "format": { "type": "grammar", "syntax": "lark", "definition": "start: \"a\"" } },
                { "type": "web_search", "search_context_size": "low" },
            ],
            "tool_choice": { "type": "custom", "name": "sql" },
            "parallel_tool_calls": false,
            "max_output_tokens": 9,
            "reasoning": { "summary": "auto", "effort": "high" },
            "text": { "format": { "type": "json_object" }, "verbosity": "low" },
            "store": true,
            "top_p": 0.9,
            "top_logprobs": 2,
            "metadata": { "a": "b" },
            "include": [
                "file_search_call.results",
                "reasoning.encrypted_content",
                "message.output_text.logprobs",
            ],
            "stream_options": { "include_obfuscation": false },
            "stream": true,
        }),
    );
}

#[test]
fn reasoning_and_items_are_in_front_of_the_message() {
    let reasoning =
        json!({ "id": "rs_0", "type": "reasoning", "summary": [], "encrypted_content": "bmV3" });
    let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" });
    let phase = json!({ "type": "message", "id": "msg_1", "phase": "commentary" });
    let mut message = answer(json!({
        "content": "Now.",
        "reasoning_details": [reasoning],
        "content_parts": [phase, search],
    }));
    message["tool_calls"][0]["item_id"] = json!("fc_1");
    check_messages(
        Responses,
        json!([message]),
        json!([
            reasoning,
            search,
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Now." }], "phase": "commentary" },
            { "type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}" },
        ]),
    );
}

#[test]
fn custom_calls_have_custom_outputs() {
    check_messages(
        Responses,
        json!([
            { "role": "assistant", "tool_calls": [{ "id": "c1", "type": "custom", "custom": { "name": "sql", "input": "" } }] },
            { "role": "tool", "tool_call_id": "c1", "content": [{ "type": "text", "text": "1" }] },
        ]),
        json!([
            { "type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "" },
            { "type": "custom_tool_call_output", "call_id": "c1", "output": [{ "type": "input_text", "text": "1" }] },
        ]),
    );
}

#[test]
fn reasoning_without_state_and_refusals_are_items() {
    check_messages(
        Responses,
        json!([
            answer(json!({ "reasoning_content": "Hm." })),
            { "role": "assistant", "content": "a", "refusal": "b" },
            { "role": "assistant", "content": "", "refusal": "c" },
        ]),
        json!([
            { "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "Hm." }] },
            { "type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" },
                { "type": "refusal", "refusal": "b" },
            ] },
            { "type": "message", "role": "assistant", "content": [{ "type": "refusal", "refusal": "c" }] },
        ]),
    );
}

#[test]
fn reasoning_without_a_following_item_is_left_out() {
    let reasoning =
        json!({ "id": "rs_0", "type": "reasoning", "summary": [], "encrypted_content": "bmV3" });
    let phase = json!({ "type": "message", "id": "msg_1", "phase": "commentary" });
    let user = |text: &str| json!({ "role": "user", "content": text });
    for answer in [
        json!({ "content": "", "reasoning_details": [reasoning] }),
        json!({ "content": "", "reasoning_details": [reasoning], "content_parts": [phase] }),
        json!({ "content": "", "reasoning_content": "Hm." }),
        json!({ "content": "" }),
    ] {
        let mut message = answer.clone();
        message["role"] = json!("assistant");
        check_messages(
            Responses,
            json!([user("a"), message, user("b")]),
            json!([user("a"), user("b")]),
        );
    }
    let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" });
    let message =
        json!({ "role": "assistant", "reasoning_details": [reasoning], "content_parts": [search] });
    check_messages(Responses, json!([message]), json!([reasoning, search]));
}
