use serde_json::json;

use super::{answer, check, check_messages, common, schema};
use crate::Provider::Anthropic;

#[test]
fn the_common_part() {
    check(
        Anthropic,
        common(),
        json!({
            "model": "m",
            "max_tokens": 64,
            "system": "Be brief.",
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "Where is this?" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0=" } },
                ] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "Let me ask." },
                    { "type": "tool_use", "id": "c1", "name": "locate", "input": { "zoom": 2 } },
                    { "type": "tool_use", "id": "c2", "name": "now", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "c2", "content": "12:00" },
                    { "type": "tool_result", "tool_use_id": "c1", "content": "{\"city\":\"Oslo\"}" },
                ] },
                { "role": "user", "content": "Thanks. And this?" },
            ],
            "tools": [
                { "name": "locate", "description": "Finds a place.", "input_schema": schema() },
                { "name": "now", "input_schema": { "type": "object", "properties": {} } },
            ],
            "tool_choice": { "type": "auto" },
            "temperature": 0.5,
            "output_config": { "format": { "type": "json_schema", "schema": schema() } },
            "stream": true,
        }),
    );
}

#[test]
fn everything_else() {
    check(
        Anthropic,
        json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": [{ "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } }] },
                { "role": "developer", "content": "b" },
                { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://a/b.png", "detail": "auto" } }] },
            ],
            "tools": [
                { "type": "function", "function": { "name": "f", "strict": true }, "cache_control": { "type": "ephemeral" } },
                { "type": "web_search_20250305", "name": "web_search" },
            ],
            "tool_choice": { "type": "function", "function": { "name": "f" } },
            "parallel_tool_calls": false,
            "max_completion_tokens": 9,
            "top_p": 0.9,
            "stop": "END",
            "reasoning_effort": "high",
            "user": "u1",
            "top_k": 5,
            "thinking": { "type": "adaptive" },
            "output_config": { "task_budget": 1 },
        }),
        json!({
            "model": "m",
            "max_tokens": 9,
            "system": [
                { "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } },
                { "type": "text", "text": "b" },
            ],
            "messages": [{ "role": "user", "content": [{ "type": "image", "source": { "type": "url", "url": "https://a/b.png" } }] }],
            "tools": [
                { "name": "f", "input_schema": { "type": "object", "properties": {} }, "strict": true, "cache_control": { "type": "ephemeral" } },
                { "type": "web_search_20250305", "name": "web_search" },
            ],
            "tool_choice": { "type": "tool", "name": "f", "disable_parallel_tool_use": true },
            "top_p": 0.9,
            "stop_sequences": ["END"],
            "output_config": { "task_budget": 1, "effort": "high" },
            "metadata": { "user_id": "u1" },
            "top_k": 5,
            "thinking": { "type": "adaptive" },
            "stream": true,
        }),
    );
}

#[test]
fn an_answer_may_end_what_is_cached() {
    let cache_control = json!({ "type": "ephemeral" });
    let text = json!({ "type": "text", "text": "a", "cache_control": cache_control });
    check_messages(
        Anthropic,
        json!([
            { "role": "assistant", "content": [text] },
            answer(json!({ "content": [{ "type": "text", "text": "b" }, text] })),
        ]),
        json!([
            { "role": "assistant", "content": [text] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "b" },
                text,
                { "type": "tool_use", "id": "c1", "name": "now", "input": {} },
            ] },
        ]),
    );
}

#[test]
fn choices_of_tools() {
    for (choice, parallel, expected) in [
        (json!("none"), json!(null), json!({ "type": "none" })),
        (json!("none"), json!(false), json!({ "type": "none" })),
        (json!("required"), json!(null), json!({ "type": "any" })),
        (
            json!(null),
            json!(false),
            json!({ "type": "auto", "disable_parallel_tool_use": true }),
        ),
        (json!(null), json!(true), json!(null)),
    ] {
        let request = json!({
            "model": "m", "messages": [], "tool_choice": choice, "parallel_tool_calls": parallel,
        });
        let mut body = json!({ "model": "m", "max_tokens": 4096, "messages": [], "stream": true });
        if !expected.is_null() {
            body["tool_choice"] = expected;
        }
        check(Anthropic, request, body);
    }
}

#[test]
fn thinking_and_server_tools_are_in_front_of_the_calls() {
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let redacted = json!({ "type": "redacted_thinking", "data": "ZGF0YQ==" });
    let search =
        json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "s1", "content": [] });
    let message = answer(json!({
        "content": "Now.",
        "reasoning_details": [thinking, redacted],
        "content_parts": [search, found],
    }));
    check_messages(
        Anthropic,
        json!([message]),
        json!([{ "role": "assistant", "content": [
            thinking,
            redacted,
            search,
            found,
            { "type": "text", "text": "Now." },
            { "type": "tool_use", "id": "c1", "name": "now", "input": {} },
        ] }]),
    );
    // LiteLLM's name for the same blocks, beside the same text.
    check_messages(
        Anthropic,
        json!([{ "role": "assistant", "content": "a", "reasoning_content": "Hm.", "thinking_blocks": [thinking] }]),
        json!([{ "role": "assistant", "content": [thinking, { "type": "text", "text": "a" }] }]),
    );
}

#[test]
fn white_space_between_blocks_is_not_sent_back() {
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    check_messages(
        Anthropic,
        json!([answer(
            json!({ "content": "\n\n", "reasoning_details": [thinking] })
        )]),
        json!([{ "role": "assistant", "content": [
            thinking,
            { "type": "tool_use", "id": "c1", "name": "now", "input": {} },
        ] }]),
    );
}

#[test]
fn calls_of_a_toolset_return_with_its_name() {
    let mut message = answer(json!({}));
    message["tool_calls"][0]["toolset_name"] = json!("computer");
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "x", "is_error": true, "toolset_name": "computer" });
    check_messages(
        Anthropic,
        json!([message, result]),
        json!([
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "c1", "name": "now", "input": {}, "toolset_name": "computer" },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": "x", "is_error": true, "toolset_name": "computer" },
            ] },
        ]),
    );
}

#[test]
fn thinking_without_a_signature_returns_to_compatible_servers() {
    check_messages(
        Anthropic,
        json!([answer(json!({ "reasoning_content": "Hm." }))]),
        json!([{ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "" },
            { "type": "tool_use", "id": "c1", "name": "now", "input": {} },
        ] }]),
    );
}

#[test]
fn state_of_the_own_calls_returns_and_that_of_others_does_not() {
    let call = |extra: (&str, serde_json::Value)| {
        let mut message = answer(json!({}));
        message["tool_calls"][0][extra.0] = extra.1;
        json!([message])
    };
    let sent = |extra: serde_json::Value| {
        let mut block = json!({ "type": "tool_use", "id": "c1", "name": "now", "input": {} });
        if !extra.is_null() {
            block["caller"] = extra;
        }
        json!([{ "role": "assistant", "content": [block] }])
    };
    let direct = json!({ "type": "direct" });
    check_messages(Anthropic, call(("caller", direct.clone())), sent(direct));
    for (name, value) in [
        ("thoughtSignature", json!("s")),
        ("item_id", json!("fc_1")),
        (
            "extra_content",
            json!({ "google": { "thought_signature": "s" } }),
        ),
    ] {
        check_messages(Anthropic, call((name, value)), sent(json!(null)));
    }
}

#[test]
fn answers_that_the_api_refuses_are_left_out() {
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let redacted = json!({ "type": "redacted_thinking", "data": "ZGF0YQ==" });
    let cached = json!({ "type": "text", "text": " ", "cache_control": { "type": "ephemeral" } });
    for answer in [
        json!({ "content": "" }),
        json!({}),
        json!({ "content": " \n\t" }),
        json!({ "content": [{ "type": "text", "text": "\n" }, { "type": "text", "text": " " }] }),
        json!({ "content": [cached] }),
        json!({ "content": "", "reasoning_details": [thinking, redacted] }),
        json!({ "content": "\n\n", "reasoning_details": [thinking] }),
        json!({ "content": "", "reasoning_content": "Hm." }),
    ] {
        let mut message = answer.clone();
        message["role"] = json!("assistant");
        let user = |text: &str| json!({ "role": "user", "content": text });
        check_messages(
            Anthropic,
            json!([user("a"), message, user("b"), message]),
            json!([user("a"), user("b")]),
        );
    }
    // What they contain is still checked.
    let foreign =
        json!({ "role": "assistant", "content": "", "reasoning_details": [{ "type": "x" }] });
    let request = crate::Request::chat("m").message(foreign);
    assert!(request.body_for(Anthropic).is_err());
}

#[test]
fn texts_beside_white_space_are_sent() {
    let cached = json!({ "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } });
    check_messages(
        Anthropic,
        json!([
            { "role": "assistant", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "\n" }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "\n" }, cached] },
        ]),
        json!([
            { "role": "assistant", "content": "a\n" },
            { "role": "assistant", "content": [cached] },
        ]),
    );
}

#[test]
fn tools_in_the_form_of_the_api_are_sent_unchanged() {
    let own = json!([
        { "name": "f", "description": "d", "input_schema": schema(), "eager_input_streaming": true },
        { "type": "custom", "name": "g", "input_schema": schema() },
        { "type": "tool_search_tool_regex", "name": "tool_search_tool_regex" },
        { "type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25" },
        { "type": "web_search_20250305", "name": "web_search" },
    ]);
    check(
        Anthropic,
        json!({ "model": "m", "messages": [], "tools": own }),
        json!({ "model": "m", "max_tokens": 4096, "messages": [], "tools": own, "stream": true }),
    );
    let function =
        json!({ "type": "function", "function": { "name": "f" }, "eager_input_streaming": true });
    let translated = json!({
        "name": "f",
        "input_schema": { "type": "object", "properties": {} },
        "eager_input_streaming": true,
    });
    check(
        Anthropic,
        json!({ "model": "m", "messages": [], "tools": [function] }),
        json!({ "model": "m", "max_tokens": 4096, "messages": [], "tools": [translated], "stream": true }),
    );
}
