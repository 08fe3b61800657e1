use serde_json::json;

use super::*;
use crate::Framing;

/// Counts words, so that the constants are distinguishable from the texts.
fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// Counts words, with the framing of OpenAI's models.
struct OpenAi;

impl Tokenizer for OpenAi {
    fn count(&self, text: &str) -> u64 {
        words(text)
    }

    fn framing(&self) -> Framing {
        Framing::OpenAi
    }
}

#[track_caller]
fn check(request: &Value, expected: impl Into<Option<u64>>) {
    assert_eq!(
        Prompt::from_request(request).tokens(&words),
        expected.into()
    );
}

#[test]
fn a_message_costs_its_words_and_three_tokens() {
    check(&json!({ "messages": [] }), 3);
    let user = json!({ "role": "user", "content": "a b c" });
    check(&json!({ "messages": [user] }), 3 + 3 + 1 + 3);
    let named = json!({ "role": "system", "name": "someone", "content": "a" });
    check(
        &json!({ "messages": [named, user] }),
        3 + 7 + (3 + 1 + 1 + 1 + 1),
    );
    let without_content = json!({ "role": "user", "content": null, "name": null });
    check(&json!({ "messages": [without_content, 5] }), 3 + 4 + 3);
}

#[test]
fn parts_count_by_their_text() {
    let parts = json!([
        { "type": "text", "text": "a b" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,x y z" } },
        { "type": "refusal", "refusal": "no" },
    ]);
    check(&json!({ "messages": [{ "content": parts }] }), 3 + 3 + 3);
}

#[test]
fn calls_count_by_name_and_arguments() {
    let call = json!({ "id": "c d e", "type": "function", "function": { "name": "f", "arguments": "{ }" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    check(&json!({ "messages": [message] }), 3 + 3 + 1 + (6 + 3));
    let legacy =
        json!({ "role": "assistant", "function_call": { "name": "f", "arguments": "{ }" } });
    check(&json!({ "messages": [legacy] }), 3 + 3 + 1 + (6 + 3));
    let custom = json!({ "type": "custom", "custom": { "name": "f", "input": "a b c" } });
    let result = json!({ "role": "tool", "name": "f", "tool_call_id": "c d e", "content": "one" });
    let both = json!({ "role": "assistant", "tool_calls": [call, custom] });
    check(
        &json!({ "messages": [both, result] }),
        3 + (3 + 1 + (6 + 3) + (6 + 4)) + (3 + 1 + 1),
    );
}

#[test]
fn openai_models_frame_past_calls_differently() {
    let call = |name: &str| json!({ "function": { "name": name, "arguments": "{ }" } });
    let request = |calls: Value| {
        let message = json!({ "role": "assistant", "tool_calls": calls });
        Prompt::from_request(&json!({ "messages": [message] })).tokens(&OpenAi)
    };
    // "functions.f" is one word, in the call and in its result.
    assert_eq!(request(json!([call("f")])), Some(3 + 3 + 1 + (3 + 2 + 2)));
    // The JSON of both calls contains "{ }" twice, which makes three words.
    let both = json!([call("f"), call("g")]);
    assert_eq!(request(both), Some(3 + 3 + 1 + (12 + 3)));
}

#[test]
fn tools_count_in_the_form_that_the_model_gets() {
    let function =
        json!({ "name": "f", "parameters": { "properties": { "city": { "type": "string" } } } });
    let tools = json!([{ "type": "function", "function": function }]);
    let user = json!({ "role": "user", "content": "a" });
    let system = json!({ "role": "system", "content": "a" });
    // namespace functions { / type f = (_: { city?: string }) => any; / } // namespace functions
    let text = 3 + 10 + 4;
    for (messages, around) in [(json!([user]), 9), (json!([system]), 5)] {
        for request in [
            json!({ "messages": messages, "tools": tools }),
            json!({ "messages": messages, "functions": [function] }),
        ] {
            let tokens = Prompt::from_request(&request).tokens(&OpenAi);
            assert_eq!(tokens, Some(3 + 3 + 2 + text + around), "{request}");
        }
    }
    // The JSON has no space.
    check(&json!({ "messages": [], "tools": tools }), 3 + 1);
    check(&json!({ "messages": [], "tools": [] }), 3);
    let none = json!({ "messages": [], "tools": [] });
    assert_eq!(Prompt::from_request(&none).tokens(&OpenAi), Some(3));
}

#[test]
fn only_the_arguments_count_if_the_request_names_the_tool() {
    let mut demux = crate::Demux::new(crate::Config::default());
    demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"a b\"}}]}}]}\n\n");
    let message = demux.choice(crate::ChoiceIndex(0)).unwrap().message();
    for (choice, openai) in [
        (
            json!({ "type": "function", "function": { "name": "f" } }),
            2,
        ),
        (json!({ "type": "function", "name": "f" }), 2),
        (json!("required"), 6 + 1 + 2),
        (Value::Null, 6 + 1 + 2),
    ] {
        let request = json!({ "messages": [], "tool_choice": choice });
        let prompt = Prompt::from_request(&request);
        assert_eq!(prompt.completion_tokens(&message, &OpenAi), openai);
        assert_eq!(prompt.completion_tokens(&message, &words), 6 + 1 + 2);
    }
    let legacy = json!({ "messages": [], "function_call": { "name": "f" } });
    let tokens = Prompt::from_request(&legacy).completion_tokens(&message, &OpenAi);
    assert_eq!(tokens, 2);
}

#[test]
fn e15_each_prompt_of_a_list_is_counted() {
    let prompt = Prompt::from_request(&json!({ "prompt": ["a b", [1, 2, 3], "c"], "n": 2 }));
    assert_eq!(prompt.tokens(&words), Some(6));
    assert_eq!(prompt.tokens_of(|position| position == 1, &words), Some(3));
    assert_eq!(prompt.choices_per_prompt(), Some(2));
    let one = |prompt| Prompt::from_request(&json!({ "prompt": prompt })).choices_per_prompt();
    assert_eq!(one(json!(["a"])), None);
    assert_eq!(one(json!([1, 2])), None);
    assert_eq!(one(json!([[1, 2], [3]])), Some(1));
}

#[test]
fn a_text_completion_counts_its_prompt() {
    check(&json!({ "prompt": "a b" }), 2);
    check(&json!({ "prompt": ["a b", "c"] }), 3);
    check(&json!({ "prompt": [1, 2, 3] }), 3);
    check(&json!({ "prompt": [[1, 2], [3]] }), 3);
    check(&json!({ "prompt": "" }), 0);
    check(&json!({ "prompt": null }), None);
    check(&json!({ "model": "x" }), None);
    check(&json!([]), None);
}

#[test]
fn the_users_text_is_not_in_the_debug_output() {
    let prompt = Prompt::from_request(&json!({ "messages": [{ "content": "secret" }] }));
    assert!(!format!("{prompt:?}").contains("secret"));
}
