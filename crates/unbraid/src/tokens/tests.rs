//! Encodings, their counts, and how texts are cut for them.

use serde_json::{Value, json};
use tiktoken_rs::{
    CoreBPE, cl100k_base_singleton, o200k_base_singleton, p50k_base_singleton, r50k_base_singleton,
};

use super::*;

/// Against tiktoken-rs itself.
mod reference;

const ALL: [Encoding; 4] = [
    Encoding::O200k,
    Encoding::Cl100k,
    Encoding::P50k,
    Encoding::R50k,
];

fn reference(encoding: Encoding) -> &'static CoreBPE {
    match encoding {
        Encoding::O200k => o200k_base_singleton(),
        Encoding::Cl100k => cl100k_base_singleton(),
        Encoding::P50k => p50k_base_singleton(),
        Encoding::R50k => r50k_base_singleton(),
    }
}

#[track_caller]
fn check(encoding: Encoding, text: &str, expected: u64) {
    assert_eq!(encoding.count(text), expected, "{encoding:?}");
}

/// These counts are from the page "How to count tokens with tiktoken".
#[test]
fn known_texts_have_their_known_counts() {
    for (text, r50k, cl100k, o200k) in [
        ("tiktoken is great!", 6, 6, 6),
        ("antidisestablishmentarianism", 5, 6, 6),
        ("2 + 2 = 4", 5, 7, 7),
        ("お誕生日おめでとう", 14, 9, 8),
    ] {
        check(Encoding::R50k, text, r50k);
        check(Encoding::Cl100k, text, cl100k);
        check(Encoding::O200k, text, o200k);
    }
    check(Encoding::O200k, "", 0);
}

#[test]
fn text_that_resembles_a_special_token_is_text() {
    assert!(Encoding::O200k.count("<|endoftext|>") > 1);
}

#[test]
fn a_model_has_its_encoding_under_every_name() {
    for (model, expected) in [
        ("gpt-4o", Some(Encoding::O200k)),
        ("gpt-4o-mini-2024-07-18", Some(Encoding::O200k)),
        ("openai/gpt-4.1", Some(Encoding::O200k)),
        ("openrouter/openai/gpt-4o:extended", Some(Encoding::O200k)),
        ("openai.gpt-oss-120b-1:0", Some(Encoding::O200k)),
        ("gpt-5.1-codex", Some(Encoding::O200k)),
        ("o3-mini-2025-01-31", Some(Encoding::O200k)),
        ("gpt-4-0613", Some(Encoding::Cl100k)),
        ("azure/gpt-35-turbo-16k", Some(Encoding::Cl100k)),
        ("ft:gpt-3.5-turbo:me:x:1", Some(Encoding::Cl100k)),
        ("text-davinci-003", Some(Encoding::P50k)),
        ("code-davinci-edit-001", Some(Encoding::P50k)),
        ("davinci", Some(Encoding::R50k)),
        ("mistral-large-2411", None),
        ("", None),
    ] {
        assert_eq!(Encoding::for_model(model), expected, "{model}");
    }
}

#[test]
fn a_cut_between_words_does_not_change_the_count() {
    let line = "It's 12 345 o'clock,  «déjà vu»: we'll\n\n  meet\u{a0}again  \n\t{\"a\": [1, 2]} // ok 雨 сегодня ! ";
    let text = line.repeat(600);
    assert!(pieces(&text).count() > 7);
    assert_eq!(pieces(&text).collect::<String>(), text);
    for encoding in ALL {
        let whole = reference(encoding).count_ordinary(&text) as u64;
        check(encoding, &text, whole);
    }
}

#[test]
fn a_text_without_gaps_is_cut_too() {
    for unit in ["a", " ", "\n", "雨", "!", "1", "\u{1f600}", " \n"] {
        let text = unit.repeat((256 << 10) / unit.len());
        assert!(pieces(&text).all(|piece| piece.len() <= PIECE_BYTES));
        assert_eq!(pieces(&text).map(str::len).sum::<usize>(), text.len());
        let whole = reference(Encoding::Cl100k).count_ordinary(&text) as u64;
        let counted = Encoding::Cl100k.count(&text);
        let cuts = text.len().div_ceil(PIECE_BYTES) as u64;
        assert!(
            counted.abs_diff(whole) <= 2 * cuts,
            "{unit:?}: {counted}, {whole}"
        );
    }
}

#[test]
fn a_million_spaces_do_not_overflow() {
    assert_eq!(Encoding::O200k.count(&" ".repeat(1 << 20)), 1 << 13);
}

#[track_caller]
fn prompt(request: &Value, expected: u64) {
    let prompt = Prompt::from_request(request);
    let encoding = Encoding::for_response(&Metadata::default(), &prompt);
    assert_eq!(prompt.tokens(&encoding), Some(expected), "{encoding:?}");
}

/// These messages, and what the server charged for them, are from the page "How to count tokens with tiktoken".
#[test]
fn messages_cost_what_the_server_charged() {
    let messages = json!([
        { "role": "system", "content": "You are a helpful, pattern-following assistant that translates corporate jargon into plain English." },
        { "role": "system", "name": "example_user", "content": "New synergies will help drive top-line growth." },
        { "role": "system", "name": "example_assistant", "content": "Things working well together will increase revenue." },
        { "role": "system", "name": "example_user", "content": "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage." },
        { "role": "system", "name": "example_assistant", "content": "Let's talk later when we're less busy about how to do better." },
        { "role": "user", "content": "This late pivot means we don't have time to boil the ocean for the client deliverable." },
    ]);
    for (model, tokens) in [
        ("gpt-3.5-turbo", 129),
        ("gpt-4", 129),
        ("gpt-4o", 124),
        ("gpt-4o-mini", 124),
    ] {
        prompt(&json!({ "model": model, "messages": messages }), tokens);
    }
}

#[test]
fn functions_cost_what_the_server_charged() {
    let function = json!({
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": { "type": "string", "description": "The city and state, e.g. San Francisco, CA" },
                "unit": { "type": "string", "description": "The unit of temperature to return", "enum": ["celsius", "fahrenheit"] },
            },
            "required": ["location"],
        },
    });
    let messages = json!([
        { "role": "system", "content": "You are a helpful assistant that can answer to questions about the weather." },
        { "role": "user", "content": "What's the weather like in San Francisco?" },
    ]);
    let tools = json!([{ "type": "function", "function": function }]);
    for (model, tokens) in [
        ("gpt-3.5-turbo", 105),
        ("gpt-4", 105),
        ("gpt-4o", 101),
        ("gpt-4o-mini", 101),
    ] {
        prompt(
            &json!({ "model": model, "messages": messages, "tools": tools }),
            tokens,
        );
    }
}
