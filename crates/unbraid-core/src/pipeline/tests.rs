use std::time::Duration;

use crate::{ChoiceIndex, Config, Demux, StreamError, TimedOut, Timeout, TransportError};

const FIRST: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
const SECOND: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}";

fn lost() -> StreamError {
    StreamError::Transport(TransportError::new(7, "reset").into())
}

fn late() -> StreamError {
    StreamError::TimedOut(TimedOut {
        timeout: Timeout::Idle,
        after: Duration::from_secs(1),
    })
}

/// Checks the text and end of choice 0 after these bytes and an error.
#[track_caller]
fn check(strict: bool, bytes: &str, error: StreamError, text: &str, end: &str) {
    let mut demux = Demux::new(Config {
        strict,
        ..Config::default()
    });
    demux.feed(bytes.as_bytes());
    demux.abort(error);
    let choice = demux.choice(ChoiceIndex(0)).unwrap();
    let content = choice.message().content;
    let seen = (content.as_str(), choice.end().unwrap().as_str());
    assert_eq!(seen, (text, end), "{bytes}");
}

#[test]
fn x14_an_event_without_its_blank_line_is_delivered_before_the_error() {
    for line_end in ["", "\n", "\r\n"] {
        for strict in [false, true] {
            let bytes = format!("{FIRST}{SECOND}{line_end}");
            check(strict, &bytes, lost(), "ab", "transport");
            check(strict, &bytes, late(), "ab", "timed_out");
            // A caller who cancels wants no further event.
            check(strict, &bytes, StreamError::Cancelled, "a", "cancelled");
            check(strict, &bytes, StreamError::Lost, "a", "lost");
        }
    }
}

#[test]
fn x14_an_error_in_a_cut_event_is_superseded() {
    for strict in [false, true] {
        let bytes = format!("{FIRST}data: {{\"choi");
        check(strict, &bytes, lost(), "a", "transport");
    }
}

#[test]
fn x14_an_end_mark_without_its_line_end_counts() {
    let finish = SECOND.replace("}}]}", "},\"finish_reason\":\"stop\"}]}");
    let bytes = format!("{FIRST}{finish}\n\ndata: [DONE]");
    check(false, &bytes, lost(), "ab", "finished");
    let bytes = format!("{FIRST}{finish}");
    check(false, &bytes, lost(), "ab", "finished");
}
