//! Halves of characters where no event shows them: after the end of a choice, and in the names of calls (C14).

use crate::{ChoiceIndex, Config, Demux, Message};

/// The message of choice 0, whose end is followed by these deltas.
fn after_the_end(deltas: &[&str]) -> Message {
    let mut demux = Demux::new(Config::default());
    let mut feed = |choice: &str| {
        demux.feed(format!("data: {{\"choices\":[{choice}]}}\n\n").as_bytes());
    };
    feed(
        r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}"#,
    );
    feed(r#"{"index":1,"delta":{"content":"ends choice 0"}}"#);
    for delta in deltas {
        feed(&format!("{{\"index\":0,\"delta\":{delta}}}"));
    }
    demux.finish();
    let choice = demux.choice(ChoiceIndex(0)).unwrap();
    let mut discarded = choice.clone();
    discarded.discard();
    assert!(discarded.message().content.is_empty());
    choice.message()
}

#[test]
fn c14_f06_half_a_character_after_the_end_is_replaced_in_the_message() {
    let message = after_the_end(&[
        r#"{"content":"L\ud83d","reasoning_content":"\ud83d"}"#,
        r#"{"refusal":"N\ud83d"}"#,
        r#"{"refusal":"\ude00"}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":" \ud83d"}}]}"#,
    ]);
    assert_eq!(message.content, "L\u{FFFD}");
    assert_eq!(message.reasoning, "\u{FFFD}");
    assert_eq!(message.refusal, "N😀");
    assert_eq!(message.tool_calls[0].arguments, "{} \u{FFFD}");
}

#[test]
fn c14_f06_halves_after_the_end_are_joined() {
    let message = after_the_end(&[
        r#"{"content":"L\ud83d"}"#,
        r#"{"content":"\ude00!"}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"\ud83d"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"\ude00"}}]}"#,
    ]);
    assert_eq!(message.content, "L😀!");
    assert_eq!(message.tool_calls[0].arguments, "{}😀");
}

#[test]
fn c14_f06_m11_halves_in_a_transcript_after_the_end_are_joined() {
    let transcript = |deltas: &[&str]| {
        let audio = after_the_end(deltas).audio;
        audio.map(|audio| audio.transcript)
    };
    let [first, second] = [
        r#"{"audio":{"transcript":"L\ud83d"}}"#,
        r#"{"audio":{"transcript":"\ude00!"}}"#,
    ];
    assert_eq!(transcript(&[first, second]).as_deref(), Some("L😀!"));
    assert_eq!(transcript(&[first]).as_deref(), Some("L\u{FFFD}"));
    assert_eq!(transcript(&[second]).as_deref(), Some("\u{FFFD}!"));
}

#[test]
fn c14_halves_in_a_name_are_replaced_with_a_warning() {
    let names = |body: &str| {
        let mut demux = Demux::new(Config::default());
        demux.feed(body.as_bytes());
        demux.finish();
        let warnings = demux.warnings();
        assert!(warnings.iter().all(|warning| warning.code == "C14"));
        let choice = demux.choice(ChoiceIndex(0)).unwrap();
        let calls = choice.message().tool_calls;
        let names: Vec<_> = calls.iter().map(|call| call.name.to_string()).collect();
        (names, warnings.len())
    };
    let chunk =
        |delta: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let pieces = chunk(r#"{"tool_calls":[{"index":0,"function":{"name":"f\ud83d"}}]}"#)
        + &chunk(r#"{"tool_calls":[{"index":0,"function":{"name":"\ude00g","arguments":"{}"}}]}"#);
    assert_eq!(names(&pieces), (vec!["f\u{FFFD}\u{FFFD}g".to_owned()], 2));
    let legacy = chunk(r#"{"function_call":{"name":"\ud83d","arguments":"{}"}}"#);
    assert_eq!(names(&legacy), (vec!["\u{FFFD}".to_owned()], 1));
}
