//! A reader whose log was away, and does not know the stream when it is back.

use std::time::Duration;

use crate::{
    LogError, LogStatus, Seq,
    protocol::{ReaderAction, ReaderMachine, ReaderRules},
};

const SECOND: Duration = Duration::from_secs(1);

/// How long a call takes while the log is away, and until its failure is known.
const CALL: Duration = Duration::from_secs(2);

/// The longest pause after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// Its producer has the patience to append again, and not longer: the checks are made as soon as the log may be back.
#[test]
fn the_patience_with_a_lost_stream_begins_soon_after_the_outage() {
    let rules = ReaderRules {
        check_every: SECOND,
        patience: 30 * SECOND,
        unknown_patience: 5 * SECOND,
    };
    // It forgets the stream, answers so once, is away for a while, and has forgotten the stream for good.
    let outage = 3 * SECOND..4 * SECOND;
    let mut machine = ReaderMachine::new(rules, Seq::START, Duration::ZERO);
    let (mut now, mut failed) = (Duration::ZERO, None);
    let end = loop {
        match machine.poll(now) {
            // Its stream of records stays silent: it waits for the stream to be written again.
            ReaderAction::Read { .. } => {}
            ReaderAction::Next(until) | ReaderAction::Wait(until) => {
                assert!(until > now);
                now = until;
            }
            ReaderAction::Check | ReaderAction::Status if outage.contains(&now) => {
                now += CALL;
                failed = Some(now);
                machine.checked(Err(LogError::unavailable("away")), now);
            }
            ReaderAction::Check | ReaderAction::Status => {
                machine.checked(Ok(LogStatus::Unknown), now);
            }
            ReaderAction::Done(end) => break end,
        }
    };
    assert_eq!(end, Err(LogError::Unknown));
    let failed = failed.expect("a check fails");
    let patience = 5 * SECOND;
    assert!(
        (failed + patience..=failed + PAUSE + patience).contains(&now),
        "{now:?} after {failed:?}"
    );
}
