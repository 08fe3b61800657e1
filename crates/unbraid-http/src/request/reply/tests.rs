use serde_json::{Value, json};
use unbraid::{ChoiceIndex, Config, Demux, Message, ThinkTags};

use super::{ReplyPolicy, ReplyReasoning};
use crate::Request;

/// The message of choice 0 after these deltas.
fn message(deltas: &[Value]) -> Message {
    let mut demux = Demux::new(Config::default().with_think_tags(ThinkTags::Split));
    for delta in deltas {
        let chunk = json!({ "choices": [{ "index": 0, "delta": delta }] });
        demux.feed(format!("data: {chunk}\n\n").as_bytes());
    }
    demux.feed(b"data: [DONE]\n\n");
    demux.choice(ChoiceIndex(0)).unwrap().message()
}

fn reply(deltas: &[Value], policy: ReplyPolicy) -> Value {
    let request = Request::chat("m").reply_policy(policy);
    let body = request.reply(&message(deltas)).body();
    body["messages"][0].clone()
}

/// The reply as text, so that the order of the fields counts, too.
#[track_caller]
fn check(deltas: &[Value], expected: Value) {
    let reply = reply(deltas, ReplyPolicy::default());
    assert_eq!(reply.to_string(), expected.to_string());
}

#[track_caller]
fn check_reasoning(deltas: &[Value], expected: [Value; 3]) {
    use ReplyReasoning::{Always, Never, WithCalls};
    for (reasoning, expected) in [Never, WithCalls, Always].into_iter().zip(expected) {
        let policy = ReplyPolicy::default().with_reasoning(reasoning);
        let mut reply = reply(deltas, policy);
        let fields = reply.as_object_mut().unwrap();
        fields.remove("role");
        fields.remove("tool_calls");
        assert_eq!(reply, expected, "{reasoning:?}");
    }
}

fn call() -> Value {
    json!({ "tool_calls": [{ "index": 0, "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1}" } }] })
}

#[test]
fn text_is_the_content() {
    check(
        &[
            json!({ "role": "assistant", "content": "Hel" }),
            json!({ "content": "lo" }),
        ],
        json!({ "role": "assistant", "content": "Hello" }),
    );
    // C5, C7: only an assistant's message is an answer.
    check(
        &[json!({ "role": "model", "content": "Hello" })],
        json!({ "role": "assistant", "content": "Hello" }),
    );
    check(&[json!({})], json!({ "role": "assistant", "content": "" }));
}

#[test]
fn calls_without_text_have_no_content() {
    let expected = json!({
        "role": "assistant",
        "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1}" } }],
    });
    check(&[json!({ "content": null }), call()], expected.clone());
    check(&[json!({ "content": "" }), call()], expected);
    let policy = ReplyPolicy::default().with_empty_content(true);
    assert_eq!(reply(&[call()], policy)["content"], "");
}

#[test]
fn t40_unknown_fields_of_a_call_are_sent_back() {
    let signature = json!({ "google": { "thought_signature": "c2ln", "order": [1, null] } });
    check(
        &[json!({ "tool_calls": [
            { "index": 0, "id": "c1", "function": { "name": "f", "arguments": "{}" }, "extra_content": signature, "empty": null, "type": "function" },
            { "index": 1, "id": "c2", "function": { "name": "g", "arguments": "{}" } },
        ] })],
        json!({ "role": "assistant", "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" }, "extra_content": signature },
            { "id": "c2", "type": "function", "function": { "name": "g", "arguments": "{}" } },
        ] }),
    );
    // A thought signature of the text.
    check(
        &[json!({ "content": "Hi", "extra_content": signature, "citations": [1] })],
        json!({ "role": "assistant", "content": "Hi", "extra_content": signature }),
    );
}

#[test]
fn t23_empty_arguments_are_an_object() {
    for arguments in [json!(""), json!(" \n"), json!(null)] {
        let call =
            json!({ "index": 0, "id": "c1", "function": { "name": "f", "arguments": arguments } });
        check(
            &[json!({ "tool_calls": [call] })],
            json!({ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } }] }),
        );
    }
}

#[test]
fn j18_arguments_that_are_not_json_are_sent_back_verbatim() {
    for arguments in [
        "{\"a\":",
        "{'a': 1}",
        "{\"a\":1}{\"b\":2}",
        "not JSON",
        "{\"a\":\"x\ny\"}",
    ] {
        let call =
            json!({ "index": 0, "id": "c1", "function": { "name": "f", "arguments": arguments } });
        let reply = reply(&[json!({ "tool_calls": [call] })], ReplyPolicy::default());
        assert_eq!(reply["tool_calls"][0]["function"]["arguments"], arguments);
    }
}

#[test]
fn t18_a_missing_id_stays_missing() {
    let call = json!({ "index": 0, "function": { "name": "f", "arguments": "{}" } });
    let answer = message(&[json!({ "tool_calls": [call] })]);
    let request = Request::chat("m")
        .reply(&answer)
        .call_result(&answer.tool_calls[0], "1");
    assert_eq!(
        request.get("messages").unwrap(),
        &json!([
            { "role": "assistant", "tool_calls": [{ "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
            { "role": "tool", "content": "1" },
        ])
    );
}

#[test]
fn t31_custom_and_t36_legacy_calls_keep_their_form() {
    check(
        &[
            json!({ "tool_calls": [{ "index": 0, "id": "c1", "type": "custom", "custom": { "name": "sql", "input": "" } }] }),
        ],
        json!({ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "custom", "custom": { "name": "sql", "input": "" } }] }),
    );
    let legacy = [json!({ "function_call": { "name": "now", "arguments": "" } })];
    check(
        &legacy,
        json!({ "role": "assistant", "function_call": { "name": "now", "arguments": "{}" } }),
    );
    let answer = message(&legacy);
    let request = Request::chat("m")
        .reply(&answer)
        .call_result(&answer.tool_calls[0], "12:00");
    assert_eq!(
        request.get("messages").unwrap()[1],
        json!({ "role": "function", "name": "now", "content": "12:00" })
    );
}

#[test]
fn m04_a_refusal_is_a_field_beside_an_empty_content() {
    check(
        &[json!({ "refusal": "I'm " }), json!({ "refusal": "sorry." })],
        json!({ "role": "assistant", "content": "", "refusal": "I'm sorry." }),
    );
}

#[test]
fn m11_audio_is_sent_back_as_its_id() {
    check(
        &[json!({ "audio": { "id": "a1", "data": "UklGRg==", "transcript": "Hi" } })],
        json!({ "role": "assistant", "audio": { "id": "a1" } }),
    );
    check(
        &[json!({ "audio": { "data": "UklGRg==" } })],
        json!({ "role": "assistant", "content": "" }),
    );
}

#[test]
fn r01_r02_reasoning_goes_back_under_its_own_name_in_messages_with_calls() {
    for name in ["reasoning_content", "reasoning", "thinking"] {
        let first = json!({ name: "Let me " });
        let second = json!({ name: "see." });
        check_reasoning(
            &[first.clone(), second.clone(), call()],
            [
                json!({}),
                json!({ name: "Let me see." }),
                json!({ name: "Let me see." }),
            ],
        );
        check_reasoning(
            &[first, second, json!({ "content": "Hi" })],
            [
                json!({ "content": "Hi" }),
                json!({ "content": "Hi" }),
                json!({ "content": "Hi", name: "Let me see." }),
            ],
        );
    }
}

#[test]
fn reasoning_of_an_unknown_source_has_the_usual_name() {
    let mut answer = message(&[json!({ "reasoning": "Hm." }), call()]);
    answer.reasoning_source = None;
    let request = Request::chat("m").reply(&answer);
    assert_eq!(
        request.get("messages").unwrap()[0]["reasoning_content"],
        "Hm."
    );
}

#[test]
fn r04_r10_details_are_joined_and_replace_the_text() {
    let text = |text: &str| json!({ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": text });
    let encrypted =
        json!({ "type": "reasoning.encrypted", "data": "Zm9v", "index": 1, "id": null });
    let deltas = [
        json!({ "reasoning": "Let me ", "reasoning_details": [text("Let me ")] }),
        json!({ "reasoning": "see.", "reasoning_details": [text("see.")] }),
        json!({ "reasoning_details": [{ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "signature": "c2ln" }] }),
        json!({ "reasoning_details": [encrypted, encrypted] }),
        call(),
    ];
    let joined = json!({ "reasoning_details": [
        { "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": "Let me see.", "signature": "c2ln" },
        { "type": "reasoning.encrypted", "data": "Zm9v", "index": 1 },
        { "type": "reasoning.encrypted", "data": "Zm9v", "index": 1 },
    ] });
    check_reasoning(&deltas, [json!({}), joined.clone(), joined]);
    // Also without calls: the signatures are what the provider needs.
    let details = json!({ "reasoning_details": [text("a"), text("b")] });
    let joined = json!({ "content": "", "reasoning_details": [text("ab")] });
    check_reasoning(
        &[details],
        [json!({ "content": "" }), joined.clone(), joined],
    );
}

#[test]
fn blocks_of_another_index_or_after_a_signature_are_not_joined() {
    let entries = [
        json!({ "type": "reasoning.summary", "index": 0, "summary": "a" }),
        json!({ "type": "reasoning.summary", "index": 0, "summary": "b" }),
        json!({ "type": "reasoning.summary", "index": 1, "summary": "c" }),
        json!({ "type": "reasoning.text", "index": 1, "text": "d", "signature": "s" }),
        json!({ "type": "reasoning.text", "index": 1, "text": "e" }),
        json!("odd"),
        json!({ "type": "reasoning.text", "text": "f", "signature": "" }),
        json!({ "type": "reasoning.text", "text": "", "signature": "t" }),
    ];
    let deltas = entries.map(|entry| json!({ "reasoning_details": [entry] }));
    let reply = reply(&deltas, ReplyPolicy::default());
    assert_eq!(
        reply["reasoning_details"],
        json!([
            { "type": "reasoning.summary", "index": 0, "summary": "ab" },
            { "type": "reasoning.summary", "index": 1, "summary": "c" },
            { "type": "reasoning.text", "index": 1, "text": "d", "signature": "s" },
            { "type": "reasoning.text", "index": 1, "text": "e" },
            "odd",
            { "type": "reasoning.text", "text": "f", "signature": "t" },
        ])
    );
}

#[test]
fn thinking_blocks_of_litellm_are_joined() {
    let block = |block: Value| json!({ "reasoning_content": "", "thinking_blocks": [block] });
    let deltas = [
        block(json!({ "type": "thinking", "thinking": "Let me ", "signature": null })),
        block(json!({ "type": "thinking", "thinking": "see.", "signature": null })),
        block(json!({ "type": "thinking", "thinking": "", "signature": "c2ln" })),
        call(),
    ];
    let blocks = json!([{ "type": "thinking", "thinking": "Let me see.", "signature": "c2ln" }]);
    let kept = json!({ "thinking_blocks": blocks });
    check_reasoning(&deltas, [json!({}), kept.clone(), kept]);
}

#[test]
fn c11_reasoning_parts_are_parts_again() {
    let thinking = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] });
    let deltas = [
        json!({ "content": [thinking] }),
        json!({ "content": "Hi" }),
        call(),
    ];
    let parts = json!({ "content": [thinking, { "type": "text", "text": "Hi" }] });
    check_reasoning(&deltas, [json!({ "content": "Hi" }), parts.clone(), parts]);
}

#[test]
fn c18_tagged_reasoning_is_tagged_again() {
    let deltas = [json!({ "content": "<think>Hm.</think>Hi" }), call()];
    let tagged = json!({ "content": "<think>Hm.</think>Hi" });
    check_reasoning(
        &deltas,
        [json!({ "content": "Hi" }), tagged.clone(), tagged],
    );
}

#[test]
fn unknown_fields_are_sent_back_if_the_policy_names_them() {
    let deltas = [json!({ "content": "Hi", "citations": [1], "role": "assistant", "other": 2 })];
    let policy = ReplyPolicy::default().with_fields(["citations", "role", "missing"]);
    assert_eq!(
        reply(&deltas, policy),
        json!({ "role": "assistant", "content": "Hi", "citations": [1] })
    );
}

#[test]
fn a_message_that_was_stored_as_json_can_be_replied_to() {
    let answer = message(&[json!({ "content": "Hi" }), call()]);
    let stored = serde_json::to_string(&answer).unwrap();
    let read: Message = serde_json::from_str(&stored).unwrap();
    assert_eq!(
        Request::chat("m").reply(&read).body(),
        Request::chat("m").reply(&answer).body()
    );
}

#[test]
fn the_state_of_the_provider_is_not_sent_to_another_one() {
    let deltas = [json!({ "reasoning_text": "Hm.", "reasoning_opaque": "x", "content": "Hi" })];
    let kept = reply(&deltas, ReplyPolicy::default());
    assert_eq!(kept["reasoning_opaque"], "x");
    let policy = ReplyPolicy::default().with_reasoning(ReplyReasoning::Never);
    assert_eq!(
        reply(&deltas, policy),
        json!({ "role": "assistant", "content": "Hi" })
    );
}

#[test]
fn whole_blocks_of_other_dialects_are_not_joined() {
    let entries = [
        json!({ "type": "thinking", "thinking": "", "signature": "a" }),
        json!({ "type": "thinking", "thinking": "", "signature": "b" }),
        json!({ "type": "redacted_thinking", "data": "c" }),
        json!({ "type": "reasoning", "summary": [], "encrypted_content": "d" }),
        json!({ "type": "reasoning", "summary": [], "encrypted_content": "e" }),
        json!({ "text": "f", "thoughtSignature": "g" }),
        json!({ "text": "", "thoughtSignature": "h" }),
    ];
    let deltas = entries
        .clone()
        .map(|entry| json!({ "reasoning_details": [entry] }));
    let reply = reply(&deltas, ReplyPolicy::default());
    assert_eq!(reply["reasoning_details"], json!(entries));
    // A signature that is repeated, or empty, begins no block.
    let deltas = ["s", "", "s"].map(
        |signature| json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "", "signature": signature }] }),
    );
    let reply = self::reply(&deltas, ReplyPolicy::default());
    let joined = json!([{ "type": "reasoning.text", "text": "", "signature": "s" }]);
    assert_eq!(reply["reasoning_details"], joined);
}

#[test]
fn parts_that_a_provider_needs_back_are_kept() {
    let own = json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} });
    let other = json!({ "type": "reference", "reference_ids": [1] });
    let deltas = [json!({ "content": "Hi", "content_parts": [own, other], "tool_plan": "I ask." })];
    assert_eq!(
        reply(&deltas, ReplyPolicy::default()),
        json!({ "role": "assistant", "content": "Hi", "content_parts": [own], "tool_plan": "I ask." })
    );
    let never = ReplyPolicy::default().with_reasoning(ReplyReasoning::Never);
    let without_state = json!({ "role": "assistant", "content": "Hi" });
    assert_eq!(reply(&deltas, never.clone()), without_state);
    let named = never.with_fields(["content_parts"]);
    assert_eq!(reply(&deltas, named)["content_parts"], json!([own, other]));
    let only_other = [json!({ "content": "Hi", "content_parts": [other] })];
    assert_eq!(reply(&only_other, ReplyPolicy::default()), without_state);
}

#[test]
fn fields_that_a_provider_added_to_a_call_are_not_sent_to_another_one() {
    let call = json!({
        "index": 0, "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" },
        "extra_content": { "google": { "thought_signature": "c2ln" } }, "caller": { "type": "direct" },
    });
    let deltas = [json!({ "tool_calls": [call] })];
    let never = ReplyPolicy::default().with_reasoning(ReplyReasoning::Never);
    assert_eq!(
        reply(&deltas, never)["tool_calls"],
        json!([{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } }])
    );
    let kept = reply(&deltas, ReplyPolicy::default());
    assert_eq!(kept["tool_calls"][0]["caller"]["type"], "direct");
}
