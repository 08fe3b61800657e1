//! Values that are too many, of another type, or no JSON: each is bounded, replaced or kept, and affects no other.

use serde_json::json;

use crate::{Config, Demux};

/// The aggregate of a stream, and the codes of its warnings.
fn whole(stream: &str) -> (serde_json::Value, Vec<&'static str>) {
    let mut demux = Demux::new(Config::default());
    demux.feed(stream.as_bytes());
    demux.finish();
    let codes = demux
        .warnings()
        .iter()
        .map(|warning| warning.code)
        .collect();
    (demux.aggregate(), codes)
}

fn raw_chunk(rest: &str) -> String {
    format!("data: {{{rest}}}\n\n")
}

#[test]
fn e11_entries_beyond_a_bound_are_skipped_with_one_warning() {
    let entries = vec!["{}"; 5000].join(",");
    let (whole, codes) = whole(&raw_chunk(&format!("\"choices\":[{entries}]")));
    assert_eq!(
        whole["choices"].as_array().map(Vec::len),
        Some(crate::limits::MAX_CHOICES)
    );
    assert!(codes.contains(&"E11"), "{codes:?}");
    let calls = vec!["{\"function\":{\"name\":\"f\"}}"; 5000].join(",");
    let mut demux = Demux::new(Config::default());
    demux.feed(
        raw_chunk(&format!(
            "\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{calls}]}}}}]"
        ))
        .as_bytes(),
    );
    demux.finish();
    assert_eq!(
        demux
            .choices()
            .next()
            .unwrap()
            .end()
            .map(|end| end.as_str()),
        Some("limit_exceeded")
    );
}

#[test]
fn u10_usage_fields_are_bounded_and_merged_in_linear_time() {
    let stream: String = (0..20_000)
        .map(|key| raw_chunk(&format!("\"choices\":[],\"usage\":{{\"k{key}\":1}}")))
        .collect();
    let (whole, _) = whole(&stream);
    assert_eq!(
        whole["usage"].as_object().map(serde_json::Map::len),
        Some(crate::limits::MAX_FIELDS)
    );
}

#[test]
fn c14_u9_one_bad_value_does_not_affect_others() {
    let logprobs =
        r#"{"content":[{"token":"\ud83d","logprob":-1},{"token":"ok","logprob":1e999}]}"#;
    let usage = r#"{"prompt_tokens":5,"completion_tokens":7,"cost":1e999}"#;
    let stream = raw_chunk(&format!(
        r#""big":1e999,"choices":[{{"index":0,"delta":{{"content":"x"}},"logprobs":{logprobs},"finish_reason":"stop"}}],"usage":{usage}"#
    ));
    let (whole, codes) = whole(&stream);
    let tokens = &whole["choices"][0]["logprobs"]["content"];
    assert_eq!(tokens[0]["token"], "\u{FFFD}");
    assert_eq!(
        (&tokens[1]["token"], &tokens[1]["logprob"]),
        (&"ok".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&whole["usage"]["prompt_tokens"], &whole["usage"]["cost"]),
        (&5.into(), &serde_json::Value::Null)
    );
    assert_eq!(whole["big"], serde_json::Value::Null);
    for code in ["M8", "U9"] {
        assert!(codes.contains(&code), "{code} is not in {codes:?}");
    }
}

#[test]
fn c11_content_of_any_type_is_kept() {
    for (delta, kept) in [
        (r#"{"content":5}"#, "content_parts"),
        (r#"{"content":true}"#, "content_parts"),
        (
            r#"{"content":[{"type":"image_url","n":1},{"type":"image_url","n":2}]}"#,
            "content_parts",
        ),
        (r#""hey""#, "delta"),
    ] {
        let (whole, codes) = whole(&raw_chunk(&format!(
            "\"choices\":[{{\"index\":0,\"delta\":{delta}}}]"
        )));
        let choice = &whole["choices"][0];
        let kept = choice.get(kept).or_else(|| choice["message"].get(kept));
        assert!(kept.is_some(), "{delta}: {whole}");
        assert_eq!(
            codes.contains(&"C11"),
            !delta.contains("image_url"),
            "{delta}: {codes:?}"
        );
    }
    let (whole, codes) = whole(&raw_chunk(
        r#""choices":[{"index":0,"delta":{"content":{"text":"q"}}}]"#,
    ));
    assert_eq!(whole["choices"][0]["message"]["content"], "q");
    assert!(codes.is_empty());
}

#[test]
fn x03_an_error_of_zero_is_not_an_error() {
    let (whole, _) = whole(&raw_chunk(
        r#""error":0,"choices":[{"index":0,"delta":{"content":"x"}}]"#,
    ));
    assert_eq!(whole["choices"][0]["message"]["content"], "x");
}

#[test]
fn s19_padding_that_is_not_utf_8_causes_a_warning_in_every_chunk() {
    let chunk = |padding: &[u8]| {
        let head =
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"obfuscation\":\"";
        [&head[..], padding, b"\"}\n\n"].concat()
    };
    let mut demux = Demux::new(Config::default());
    for padding in [&b"xyz"[..], b"zyx", b"x\xFFz"] {
        demux.feed(&chunk(padding));
    }
    demux.finish();
    let codes: Vec<&str> = demux
        .warnings()
        .iter()
        .map(|warning| warning.code)
        .collect();
    assert_eq!(codes, ["S19"]);
}

/// Groq sends the seed in the first chunk and the usage in the last one, Azure the results of its filters one after the other.
#[test]
fn e24_objects_whose_fields_come_in_several_chunks_are_merged() {
    let stream = [
        r#""choices":[{"index":0,"delta":{"content":"a","provider":{"a":1}},"content_filter_results":{"hate":{"filtered":false}}}],"x_groq":{"id":"r","seed":7}"#,
        r#""choices":[{"index":0,"delta":{"provider":{"b":2}},"content_filter_results":{"protected_material_text":{"detected":false}},"finish_reason":"stop"}],"x_groq":{"id":"s","usage":{"prompt_tokens":1}}"#,
        r#""choices":[{"index":0,"delta":{},"content_filter_results":{}}],"x_groq":{"seed":null}"#,
    ];
    let stream: String = stream.iter().map(|rest| raw_chunk(rest)).collect();
    let (whole, codes) = whole(&stream);
    assert_eq!(
        whole["x_groq"],
        json!({"id": "s", "seed": 7, "usage": {"prompt_tokens": 1}})
    );
    let choice = &whole["choices"][0];
    assert_eq!(
        choice["content_filter_results"],
        json!({"hate": {"filtered": false}, "protected_material_text": {"detected": false}})
    );
    assert_eq!(choice["message"]["provider"], json!({"a": 1, "b": 2}));
    assert_eq!(codes, [""; 0]);
}

/// A server can send an object with ever new fields.
#[test]
fn e24_the_fields_of_a_merged_object_are_bounded() {
    let stream: String = (0..20_000)
        .map(|key| {
            raw_chunk(&format!(
                "\"choices\":[{{\"index\":0,\"delta\":{{}},\"y\":{{\"k{key}\":1}}}}],\"x\":{{\"k{key}\":1}}"
            ))
        })
        .collect();
    let (whole, _) = whole(&stream);
    let count = |value: &serde_json::Value| value.as_object().map(serde_json::Map::len);
    let counts = [count(&whole["x"]), count(&whole["choices"][0]["y"])];
    assert!(counts.iter().all(|count| *count < Some(1000)), "{counts:?}");
}

/// Entries of a list may come without it: each is an object of its own.
#[test]
fn e24_single_entries_in_place_of_a_list_are_not_merged() {
    let stream: String = [
        r#"{"type":"image_url","image_url":{"url":"a"}}"#,
        r#"{"type":"image","data":"b"}"#,
    ]
    .map(|entry| {
        raw_chunk(&format!(
            "\"choices\":[{{\"index\":0,\"delta\":{{\"images\":{entry}}}}}]"
        ))
    })
    .concat();
    let (whole, _) = whole(&stream);
    assert_eq!(
        whole["choices"][0]["message"]["images"],
        json!({"type": "image", "data": "b"})
    );
}
