//! The plan and the thinking, which share the lane of reasoning; contents in parts; halves of characters.

use crate::{ChoiceIndex, Config, Demux};

/// The reasoning and the number of warnings of pieces of the plan (`true`) and of the thinking.
fn read_reasoning(pieces: &[(bool, &str)]) -> (String, usize) {
    let mut demux = Demux::new(Config::default());
    let mut feed = |event: String| demux.feed(format!("data: {event}\n\n").as_bytes());
    feed(r#"{"type":"message-start","id":"m","delta":{"message":{"role":"assistant"}}}"#.into());
    for (is_plan, piece) in pieces {
        feed(match is_plan {
            true => format!(
                r#"{{"type":"tool-plan-delta","delta":{{"message":{{"tool_plan":"{piece}"}}}}}}"#
            ),
            false => format!(
                r#"{{"type":"content-delta","index":0,"delta":{{"message":{{"content":{{"thinking":"{piece}"}}}}}}}}"#
            ),
        });
    }
    feed(r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}"#.into());
    demux.finish();
    let choice = demux.choice(ChoiceIndex(0)).unwrap();
    let warnings = choice.warnings().len();
    (choice.message().reasoning, warnings)
}

#[test]
fn c14_h04_h05_halves_of_the_plan_and_of_the_thinking_are_joined_separately() {
    const HIGH: &str = "\\ud83d";
    const LOW: &str = "\\ude00";
    let (plan, thinking) = (format!("P{HIGH}"), format!("T{HIGH}"));
    type Row<'a> = (&'a [(bool, &'a str)], &'a str, usize);
    let rows: [Row<'_>; 4] = [
        (
            &[(true, &plan), (false, &thinking), (true, LOW), (false, LOW)],
            "PT😀😀",
            0,
        ),
        (&[(true, &plan), (true, LOW), (false, "t")], "P😀t", 0),
        (&[(false, &thinking), (true, "p"), (false, LOW)], "Tp😀", 0),
        (&[(true, &plan), (true, "q")], "P\u{FFFD}q", 1),
    ];
    for (pieces, expected, warnings) in rows {
        assert_eq!(
            read_reasoning(pieces),
            (expected.to_owned(), warnings),
            "{pieces:?}"
        );
    }
}

/// The choice after these values of `delta.message.content`.
fn read_contents(contents: &[&str]) -> crate::Message {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"type\":\"message-start\",\"id\":\"m\",\"delta\":{}}\n\n");
    for content in contents {
        let event = format!(
            r#"data: {{"type":"content-delta","index":0,"delta":{{"message":{{"content":{content}}}}}}}"#
        );
        demux.feed(format!("{event}\n\n").as_bytes());
    }
    demux.finish();
    demux.choice(ChoiceIndex(0)).unwrap().message()
}

#[test]
fn c11_a_text_may_be_a_list_of_parts() {
    let message = read_contents(&[
        r#"{"text":["He",{"type":"text","text":"l\ud83d"}]}"#,
        r#"{"type":"text","text":[{"type":"text","text":"\ude00o"},{"type":"image_url","image_url":"x"}]}"#,
        r#"{"thinking":["Hm",{"text":"."}]}"#,
        r#"{"text":[{"thinking":"?"}]}"#,
        r#"{"text":[]}"#,
        r#"{"text":" end"}"#,
    ]);
    assert_eq!(message.content, "Hel😀o end");
    assert_eq!(message.reasoning, "Hm.?");
    let [(key, raw)] = &*message.extra else {
        panic!("{:?}", message.extra);
    };
    assert_eq!(&**key, "content_parts");
    assert_eq!(&**raw, r#"[{"type":"image_url","image_url":"x"}]"#);
}

#[test]
fn c14_m06_halves_of_the_text_of_log_probabilities_are_joined() {
    let joined = |texts: &[&str]| {
        let mut demux = Demux::new(Config::default());
        for text in texts {
            let event = format!(
                r#"data: {{"type":"content-delta","index":0,"delta":{{"message":{{"content":{{"text":"a"}}}}}},"logprobs":{{"token_ids":[1],"text":{text},"logprobs":[-0.5]}}}}"#
            );
            demux.feed(format!("{event}\n\n").as_bytes());
        }
        demux.feed(
            b"data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\"}}\n\n",
        );
        demux.finish();
        demux.aggregate()["choices"][0]["logprobs"].clone()
    };
    let pieces = ["\"a\\ud83d\"", "\"\"", "\"\\ude00b\""];
    let expected = serde_json::json!({ "token_ids": [1, 1, 1], "text": "a😀b", "logprobs": [-0.5, -0.5, -0.5] });
    assert_eq!(joined(&pieces), expected);
    for (pieces, text) in [
        (&["\"a\\ud83d\"", "\"b\""][..], "a\u{FFFD}b"),
        (&["\"a\\ud83d\"", "null"], "a\u{FFFD}"),
        (&["\"\\ude00b\""], "\u{FFFD}b"),
    ] {
        assert_eq!(joined(pieces)["text"], text, "{pieces:?}");
    }
}
