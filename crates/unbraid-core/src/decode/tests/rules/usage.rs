//! The usage of chunks.

use super::{super::choice_of, by_every_path};

#[test]
fn u9_a_number_beyond_the_range_of_f64_is_kept_with_a_warning() {
    let chunk = r#"{"choices":[],"usage":{"prompt_tokens":5,"cost":1e400}}"#;
    let updates = by_every_path(&[chunk]);
    let codes: Vec<&str> = updates[0].warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["U9"]);
    assert_eq!(
        updates[0].usage.as_deref(),
        Some(r#"{"prompt_tokens":5,"cost":1e400}"#)
    );
}

#[test]
fn u6_usage_inside_of_x_groq_counts_beside_none_on_every_path() {
    let usage = |envelope: &str| {
        let chunk =
            format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}}}}],{envelope}}}"#);
        let updates = by_every_path(&[&chunk]);
        let usage = updates.iter().find_map(|update| update.usage.clone());
        usage.map(|usage| usage.into_owned())
    };
    let inner = r#""x_groq":{"id":"r","usage":{"prompt_tokens":1}}"#;
    let found = Some(r#"{"prompt_tokens":1}"#);
    assert_eq!(usage(inner).as_deref(), found);
    for null in [
        format!(r#""usage":null,{inner}"#),
        format!(r#"{inner},"usage":null"#),
    ] {
        assert_eq!(usage(&null).as_deref(), found);
    }
    let envelope = r#""usage":{"prompt_tokens":2}"#;
    for both in [format!("{envelope},{inner}"), format!("{inner},{envelope}")] {
        assert_eq!(usage(&both).as_deref(), Some(r#"{"prompt_tokens":2}"#));
    }
    let escaped = inner.replace("usage", "us\\u0061ge");
    assert_eq!(usage(&escaped).as_deref(), found);
    for (none, kept) in [
        (r#""x_groq":{"id":"r"}"#, true),
        (r#""x_groq":{"usage":[{"prompt_tokens":1}]}"#, true),
        (r#""x_groq":["usage",{"prompt_tokens":1}]"#, true),
        (r#""x_groq":{"a":{"usage":{"prompt_tokens":1}}}"#, true),
        (r#""x_groq":null"#, false),
    ] {
        assert_eq!(usage(none), None, "{none}");
        let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{{}}}}],{none}}}"#);
        let updates = by_every_path(&[&chunk]);
        assert_eq!(
            updates.iter().any(|update| !update.metadata.is_empty()),
            kept
        );
    }
}

/// A template of a chunk with `x_groq` would take its later values for unknown fields.
#[test]
fn u6_usage_inside_of_x_groq_is_found_in_each_chunk() {
    let chunk = |inner: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}}}}],"x_groq":{{"usage":{inner}}}}}"#
        )
    };
    let chunks = [
        "null",
        "5",
        r#"{"prompt_tokens":1}"#,
        r#"{"prompt_tokens":2}"#,
    ]
    .map(chunk);
    let updates = by_every_path(&chunks.each_ref().map(|chunk| &**chunk));
    let found = updates.iter().filter_map(|update| update.usage.as_deref());
    let found: Vec<&str> = found.collect();
    assert_eq!(found, [r#"{"prompt_tokens":1}"#, r#"{"prompt_tokens":2}"#]);
}

#[test]
fn u02_u05_usage_without_any_value_is_absent_and_hides_no_other() {
    let none = r#"{"prompt_tokens":null,"5m_tokens": null,"prompt_tokens_details":{"cached_tokens":null}}"#;
    for none in ["{}", "{ }", none, r#"{"a\":1":null}"#] {
        let groq = format!(
            r#"{{"choices":[],"usage":{none},"x_groq":{{"id":"r","usage":{{"prompt_tokens":3}}}}}}"#
        );
        let updates = by_every_path(&[&groq]);
        assert_eq!(
            updates[0].usage.as_deref(),
            Some(r#"{"prompt_tokens":3}"#),
            "{none}"
        );
        let choice = choice_of(&format!(r#""delta":{{"content":"a"}},"usage":{none}"#));
        assert_eq!(by_every_path(&[&choice, &choice])[1].usage, None, "{none}");
    }
    for some in [
        r#"{"a":0}"#,
        r#"{"a" : 1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":{"b":-1}}"#,
        r#"{"a":[]}"#,
    ] {
        let chunk = format!(r#"{{"choices":[],"usage":{some}}}"#);
        assert_eq!(by_every_path(&[&chunk])[0].usage.as_deref(), Some(some));
    }
}
