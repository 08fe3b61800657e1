use std::time::Duration;

use unbraid_core::{CallStatus, ChoiceOutcome, Config, Demux};

use super::{ANSWERS, CHOICES, MIN_SPEED, events, words};
use crate::commands::demo::client::TIMEOUT;

/// Reads the scenario strictly, and returns the outcomes in order of appearance.
fn read() -> (Demux, Vec<ChoiceOutcome>) {
    read_choices(CHOICES)
}

fn read_choices(choices: u32) -> (Demux, Vec<ChoiceOutcome>) {
    let config = Config::default().with_strict(true);
    let mut demux = Demux::new(config);
    for event in events(choices) {
        demux.feed(event.data.as_bytes());
    }
    let indices: Vec<_> = demux.choices().map(|choice| choice.index()).collect();
    let outcomes = indices
        .iter()
        .map(|index| demux.result(*index).unwrap().unwrap())
        .collect();
    (demux, outcomes)
}

#[test]
fn each_choice_finishes_with_its_own_reason() {
    let (demux, outcomes) = read();
    assert!(matches!(demux.closed(), Some(Ok(()))), "ended by [DONE]");
    assert_eq!(demux.warnings(), []);
    let ends: Vec<(u32, &str, usize)> = outcomes
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
fn texts_and_calls_arrive_complete() {
    let (_, outcomes) = read();
    for choice in &outcomes {
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

#[cfg(feature = "tokens")]
#[test]
fn the_counts_of_the_choices_add_up_to_the_usage() {
    let (demux, _) = read();
    let usage = crate::usage::estimated(&demux, &unbraid_core::Prompt::default());
    let sum: u64 = usage.per_choice.iter().map(|(_, tokens)| tokens).sum();
    assert_eq!(usage.completion_tokens, Some(sum), "{:?}", usage.per_choice);
    assert_eq!(usage.total_tokens, Some(super::PROMPT_TOKENS + sum));
    assert_eq!(
        usage.counted, None,
        "the server reports no less than arrives"
    );
    for (choice, tokens) in usage.per_choice {
        // The cut answer is as long as the request allows, and all others are shorter.
        assert_eq!(
            tokens >= super::MAX_TOKENS,
            choice.0 == 2,
            "{choice}: {tokens}"
        );
    }
}

#[test]
fn the_stream_takes_seconds_without_long_pauses_and_one_choice_ends_late() {
    let times: Vec<Duration> = events(CHOICES).iter().map(|event| event.time).collect();
    assert!(times.is_sorted());
    let last = times.last().unwrap().as_secs_f64();
    assert!((4.0..6.0).contains(&last), "{last}");
    let longest = times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap();
    assert!(longest.div_f64(MIN_SPEED) < TIMEOUT / 2, "{longest:?}");
    let mut ends = ANSWERS
        .iter()
        .map(|answer| answer.chunks().last().unwrap().0);
    let late = ends.nth(1).unwrap();
    assert!(ends.all(|end| end + 700 < late), "{late}");
}

#[test]
fn a_request_may_ask_for_any_number_of_choices() {
    for choices in [1, 3, 9] {
        let (demux, outcomes) = read_choices(choices);
        let mut indices: Vec<u32> = outcomes.iter().map(|outcome| outcome.choice.0).collect();
        indices.sort_unstable();
        assert!(indices.into_iter().eq(0..choices));
        assert_eq!(demux.warnings(), []);
        let tokens: u64 = (0..choices).map(|index| super::answer(index).tokens).sum();
        let reported = demux.usage().completion_tokens;
        assert_eq!(reported, Some(tokens));
    }
    assert_eq!(read_choices(0).1.len(), 1);
    assert_eq!(read_choices(u32::MAX).1.len(), 128);
}

#[test]
fn words_add_up_to_their_text() {
    let words: Vec<&str> = words("A b.\n\n  c").collect();
    assert_eq!(words, ["A", " b.", "\n\n  c"]);
}
