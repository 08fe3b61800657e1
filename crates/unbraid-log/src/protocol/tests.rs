//! Every order of events in a small world: a producer in one gateway, a log that loses, delays and forgets, and two
//! readers, one of which moves to the other gateway when the first one dies.
//!
//! The machines are those of the library. The search visits every state that the bounds allow, and checks each of them; a
//! rule that is broken on purpose must be found.

mod broker;
mod refused;
mod search;
mod world;

use search::{Outcome, explore};
use world::{Bounds, Broken, World};

/// Explores a world, and expects that no rule is broken in it.
#[track_caller]
fn check(bounds: Bounds) {
    match explore(World::new(bounds, None)) {
        Outcome::Complete { states } => {
            println!("{states} states of {bounds:?}");
            assert!(states > 1000, "{states} states are no world");
        }
        Outcome::Violation { what, path } => panic!("{what}:\n{}", path.join("\n")),
        Outcome::TooMany => panic!("the world is too large"),
    }
}

/// Explores a world in which a rule is broken, and expects that this is found.
#[track_caller]
fn check_broken(bounds: Bounds, broken: Broken, expected: &str) {
    match explore(World::new(bounds, Some(broken))) {
        Outcome::Violation { what, path } => assert_eq!(what, expected, "{}", path.join("\n")),
        Outcome::Complete { .. } | Outcome::TooMany => panic!("{broken:?} is not found"),
    }
}

const HEALTHY: Bounds = Bounds {
    degrades: true,
    events: 2,
    timeouts: 0,
    losses: 0,
    expiries: 1,
    crashes: 1,
    ticks: 1,
    sleeps: 0,
};

#[test]
fn a_log_that_answers_is_read_once_and_completely() {
    check(HEALTHY);
}

#[test]
fn lost_and_late_answers_change_nothing() {
    let bounds = Bounds {
        events: 2,
        timeouts: 2,
        ticks: 0,
        ..HEALTHY
    };
    check(bounds);
    check(Bounds {
        degrades: false,
        ..bounds
    });
}

#[test]
fn a_log_that_forgets_is_repaired() {
    let bounds = Bounds {
        events: 2,
        losses: 1,
        expiries: 0,
        ticks: 0,
        ..HEALTHY
    };
    check(bounds);
    let slow = Bounds {
        timeouts: 1,
        crashes: 0,
        ..bounds
    };
    check(slow);
    check(Bounds {
        degrades: false,
        ..slow
    });
    // The probe after a renewal finds the loss.
    check(Bounds {
        crashes: 0,
        ticks: 1,
        ..bounds
    });
}

#[test]
fn a_producer_that_sleeps_past_its_lease_delivers_nothing_that_the_log_refuses() {
    let bounds = Bounds {
        sleeps: 1,
        expiries: 0,
        crashes: 0,
        ..HEALTHY
    };
    check(bounds);
    check(Bounds {
        degrades: false,
        ..bounds
    });
    check(Bounds {
        timeouts: 1,
        ticks: 0,
        ..bounds
    });
    check(Bounds {
        sleeps: 2,
        ..bounds
    });
}

#[test]
fn a_call_that_was_slept_through_and_is_taken_for_a_failure_is_found() {
    let bounds = Bounds {
        sleeps: 1,
        expiries: 0,
        crashes: 0,
        ..HEALTHY
    };
    check_broken(
        bounds,
        Broken::TrustsSleep,
        "a stream is degraded although its log answers",
    );
}

#[test]
#[ignore = "it takes minutes"]
fn a_larger_world_keeps_the_rules() {
    check(Bounds {
        losses: 1,
        timeouts: 1,
        ..HEALTHY
    });
    check(Bounds {
        losses: 2,
        crashes: 0,
        expiries: 0,
        ..HEALTHY
    });
}

#[test]
fn delivery_before_the_acknowledgement_is_found() {
    check_broken(
        HEALTHY,
        Broken::DeliversEarly,
        "a reader has what the log does not have",
    );
}

#[test]
fn an_end_before_events_that_the_log_may_have_is_found() {
    let bounds = Bounds {
        degrades: false,
        timeouts: 1,
        expiries: 0,
        crashes: 0,
        ..HEALTHY
    };
    check_broken(
        bounds,
        Broken::EndsBeforeDoubt,
        "an end has another number in memory than in the log",
    );
}

#[test]
fn a_log_that_does_not_fence_is_found() {
    check_broken(
        HEALTHY,
        Broken::NoFence,
        "readers with the same end have different events",
    );
}

#[test]
fn a_log_that_accepts_a_gap_is_found() {
    let bounds = Bounds {
        losses: 1,
        ..HEALTHY
    };
    check_broken(bounds, Broken::AcceptsGaps, "a reader found a gap");
}

#[test]
fn a_seal_over_a_loss_is_found() {
    let bounds = Bounds {
        losses: 1,
        expiries: 0,
        crashes: 0,
        ..HEALTHY
    };
    check_broken(
        bounds,
        Broken::SealsOverLoss,
        "a live producer has lost events",
    );
}

#[test]
fn a_reader_that_does_not_trim_is_found() {
    let bounds = Bounds {
        timeouts: 1,
        ..HEALTHY
    };
    check_broken(bounds, Broken::NoTrim, "a reader got an event twice");
}

#[test]
fn an_end_that_is_not_compared_with_the_logs_end_is_found() {
    check_broken(HEALTHY, Broken::OwnEnd, "readers got different ends");
}
