use std::time::Duration;

use unbraid_core::{CallStatus, ChoiceOutcome, Config, Demux};

use super::{ANSWERS, MAX_TOKENS, pieces, words};
use crate::{args::SLOWEST_DEMO, demo::client::PATIENCE};

/// The scenario as a strict reader finds it: which choice ended when, and what of.
fn read() -> (Demux, Vec<ChoiceOutcome>) {
    let options = Config::default().with_strict(true);
    let mut demux = Demux::new(options);
    for piece in pieces() {
        demux.feed(piece.data.as_bytes());
    }
    let indices: Vec<_> = demux.choices().map(|choice| choice.index()).collect();
    let finished = indices
        .iter()
        .map(|index| demux.result(*index).unwrap().unwrap())
        .collect();
    (demux, finished)
}

#[test]
fn every_choice_finishes_in_its_own_way() {
    let (demux, finished) = read();
    assert!(matches!(demux.closed(), Some(Ok(()))), "ended by [DONE]");
    assert_eq!(demux.warnings(), []);
    let ends: Vec<(u32, &str, usize)> = finished
        .iter()
        .map(|choice| {
            let reason = choice.finish_reason.as_ref().unwrap();
            (
                choice.choice.0,
                reason.as_str(),
                choice.message.tool_calls.len(),
            )
        })
        .collect();
    let expected = [
        (2, "length", 0),
        (0, "stop", 0),
        (3, "tool_calls", 2),
        (1, "stop", 0),
    ];
    assert_eq!(ends, expected, "in order of appearance");
}

#[test]
fn the_texts_and_calls_come_whole() {
    let (_, finished) = read();
    for choice in &finished {
        let answer = &ANSWERS[choice.choice.0 as usize];
        assert_eq!(answer.index, choice.choice.0);
        if choice.choice.0 == 2 {
            assert!(answer.text.starts_with(&choice.message.content));
            assert_ne!(answer.text, choice.message.content);
        } else {
            assert_eq!(choice.message.content, answer.text);
        }
        for call in &choice.message.tool_calls {
            assert_eq!(call.status, Some(CallStatus::Complete), "{}", call.name);
        }
    }
}

#[test]
fn the_usage_is_what_was_sent() {
    let (demux, _) = read();
    let usage = demux.usage();
    let deltas = pieces().len() as u64;
    // Beside the tokens there are a role and a finish a choice, the usage itself, and `[DONE]`.
    assert_eq!(usage.completion_tokens, Some(deltas - 2 * 4 - 2));
    assert!(ANSWERS.iter().all(|answer| answer.tokens() <= MAX_TOKENS));
    assert!(usage.total_tokens > usage.completion_tokens);
}

#[test]
fn it_takes_some_seconds_without_long_pauses_and_one_choice_ends_late() {
    let times: Vec<Duration> = pieces().iter().map(|piece| piece.at).collect();
    assert!(times.is_sorted());
    let last = times.last().unwrap().as_secs_f64();
    assert!((4.0..6.0).contains(&last), "{last}");
    let longest = times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap();
    assert!(longest.div_f64(SLOWEST_DEMO) < PATIENCE / 2, "{longest:?}");
    let mut ends = ANSWERS
        .iter()
        .map(|answer| answer.chunks().last().unwrap().0);
    let late = ends.nth(1).unwrap();
    assert!(ends.all(|end| end + 700 < late), "{late}");
}

#[test]
fn words_add_up_to_their_text() {
    let pieces: Vec<&str> = words("A b.\n\n  c").collect();
    assert_eq!(pieces, ["A", " b.", "\n\n  c"]);
}
