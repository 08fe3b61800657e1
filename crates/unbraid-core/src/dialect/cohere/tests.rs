//! The plan and the thinking, which share the lane of reasoning.

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
