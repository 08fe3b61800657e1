//! A log that refuses events, and goes on answering.

use std::time::Duration;

use crate::{
    Appended, LogError, Seq,
    protocol::{ProducerAction, ProducerMachine, ProducerRules},
};

const LEASE: Duration = Duration::from_secs(3);

/// How long a call takes.
const CALL: Duration = Duration::from_millis(20);

#[test]
fn renewals_do_not_wait_for_the_next_attempt_to_append() {
    let rules = ProducerRules {
        degrades: true,
        renew_every: LEASE / 3,
        lease: LEASE,
    };
    let full = LogError::unavailable("the log is full");
    let mut machine = ProducerMachine::new(rules, true, Duration::ZERO);
    machine.receive(Seq(2));
    let (mut now, mut renewed, mut attempts) = (Duration::ZERO, Duration::ZERO, 0);
    let end = 20 * LEASE;
    while now < end {
        match machine.poll(now) {
            ProducerAction::Form { first } => machine.formed(first),
            // The first record is appended before the log is full.
            ProducerAction::Append(span) if span.first == Seq(1) => {
                now += CALL;
                let appended = match attempts {
                    0 => Appended::New,
                    _ => Appended::Duplicate,
                };
                machine.appended(Ok(appended), now);
            }
            ProducerAction::Append(_) => {
                now += CALL;
                attempts += 1;
                machine.appended(Err(&full), now);
            }
            ProducerAction::Renew => {
                assert!(now - renewed <= LEASE / 2, "{:?}", now - renewed);
                renewed = now;
                now += CALL;
                machine.renewed(Ok(()), now);
            }
            ProducerAction::Wait(Some(until)) => {
                assert!(until > now, "it would be asked without a pause");
                now = until;
            }
            action => panic!("{action:?}"),
        }
    }
    assert!(end - renewed < LEASE);
    assert!(machine.is_degraded());
    // Each attempt sends a record: the pauses between them grow to a third of the lease, although renewals succeed.
    assert!((55..70).contains(&attempts), "{attempts}");
}

#[test]
fn renewals_that_fail_have_the_pauses_of_other_calls() {
    let rules = ProducerRules {
        degrades: true,
        renew_every: LEASE / 3,
        lease: LEASE,
    };
    let down = LogError::unavailable("connection refused");
    let mut machine = ProducerMachine::new(rules, true, Duration::ZERO);
    machine.receive(Seq(1));
    let (mut now, mut attempts) = (Duration::ZERO, 0);
    while now < 20 * LEASE {
        match machine.poll(now) {
            ProducerAction::Form { first } => machine.formed(first),
            ProducerAction::Append(_) => {
                attempts += 1;
                machine.appended(Err(&down), now);
            }
            ProducerAction::Renew => {
                attempts += 1;
                machine.renewed(Err(&down), now);
            }
            ProducerAction::Wait(Some(until)) => {
                assert!(until > now, "it would be asked without a pause");
                now = until;
            }
            action => panic!("{action:?}"),
        }
    }
    assert!((55..70).contains(&attempts), "{attempts}");
}
