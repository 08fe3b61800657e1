//! Reasoning, and the names of its field.

use std::sync::Arc;

use super::{super::choice_of, by_every_path, by_every_path_with};
use crate::{Update, decode::Decoder, limits::MAX_JSON_DEPTH};

#[test]
fn r4_halves_of_a_character_join_across_reasoning_details() {
    let details = |list: &str| choice_of(&format!("\"delta\":{{\"reasoning_details\":{list}}}"));
    let one = by_every_path(&[&details(r#"[{"text":"A\ud83d"},{"summary":"\ude42B"}]"#)]);
    let fragment = one[0].reasoning.as_ref().expect("reasoning");
    assert_eq!(fragment.text, "A🙂B");
    let two = by_every_path(&[&details(r#"[{"text":"A\ud83d"}]"#)]);
    let fragment = two[0].reasoning.as_ref().expect("reasoning");
    assert_eq!((&*fragment.text, fragment.high), ("A", Some(0xD83D)));
}

/// Such a part is kept for its signature, and repeats text of the answer.
#[test]
fn r4_a_signed_part_of_gemini_does_not_count_as_reasoning() {
    let list = r#"[{"text":"32","thoughtSignature":"s"}]"#;
    let chunk = choice_of(&format!(
        r#""delta":{{"content":"32","reasoning_details":{list}}}"#
    ));
    let updates = by_every_path(&[&chunk, &chunk]);
    assert_eq!(updates.len(), 2);
    for update in &updates {
        assert_eq!(update.reasoning, None);
        assert_eq!(update.content.as_ref().map(|text| &*text.text), Some("32"));
    }
}

#[test]
fn r5_reasoning_keys_are_configurable_and_ranked() {
    let keys = |names: &[&str]| {
        names
            .iter()
            .map(|name| Arc::from(*name))
            .collect::<Vec<_>>()
    };
    let chunk =
        choice_of(r#""delta":{"reasoning":"a","deliberation":"b","notes":"","content":"c"}"#);
    let reasoning = |names: &[&str]| {
        let updates = by_every_path_with(&[&chunk, &chunk], &keys(names));
        let update = updates.last().expect("one").clone();
        let text = update.reasoning.map(|fragment| fragment.text.into_owned());
        let extra: Vec<String> = update.metadata.iter().map(|(k, _)| k.to_string()).collect();
        (text.unwrap_or_default(), extra.join(" "))
    };
    let result = |text: &str, extra: &str| (text.to_owned(), extra.to_owned());
    assert_eq!(
        reasoning(&["deliberation", "reasoning"]),
        result("b", "notes")
    );
    assert_eq!(
        reasoning(&["reasoning", "deliberation"]),
        result("a", "notes")
    );
    assert_eq!(
        reasoning(&["notes", "deliberation"]),
        result("b", "reasoning")
    );
    assert_eq!(reasoning(&[]), result("", "reasoning deliberation notes"));
    assert_eq!(reasoning(&["content"]).0, "", "it has a meaning of its own");
    let many: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let with_late_names = [&many[..], &["reasoning", "deliberation"]].concat();
    assert_eq!(reasoning(&with_late_names), result("a", "notes"));
}

#[test]
fn r5_a_template_reads_reasoning_under_a_configured_key() {
    let keys = [Arc::from("deliberation")];
    let chunk = |text: &str| choice_of(&format!("\"delta\":{{\"deliberation\":\"{text}\"}}"));
    let mut decoder = Decoder::new(false, MAX_JSON_DEPTH).with_reasoning_keys(&keys);
    let mut texts = Vec::new();
    for text in ["a", "b", "c"] {
        let data = chunk(text);
        let frame = crate::frame::Frame::of_data(data.as_bytes(), 0);
        let mut sink = |update: &Update<'_>| {
            texts.extend(
                update
                    .reasoning
                    .as_ref()
                    .map(|fragment| fragment.text.to_string()),
            );
        };
        decoder.decode(frame, &mut sink).expect("lenient");
    }
    assert_eq!(texts, ["a", "b", "c"]);
    assert_eq!(decoder.template_hits(), 2);
}
