//! A breadth-first search over all states of a world.

use std::collections::{HashMap, VecDeque};

use super::world::World;

/// More states than this take longer than a test may.
const MAX_STATES: usize = 3_000_000;

pub(super) enum Outcome {
    Complete {
        states: usize,
    },
    /// The shortest path to a state that breaks a rule.
    Violation {
        what: &'static str,
        path: Vec<String>,
    },
    TooMany,
}

/// Visits every state that can be reached.
pub(super) fn explore(start: World) -> Outcome {
    let mut states: Vec<(World, Option<(usize, String)>)> = vec![(start.clone(), None)];
    let mut known: HashMap<World, ()> = HashMap::from([(start, ())]);
    let mut queue = VecDeque::from([0_usize]);
    while let Some(current) = queue.pop_front() {
        let (steps, is_stuck) = states[current].0.steps();
        if is_stuck && let Some(what) = states[current].0.check_final() {
            return violation(what, &states, current, None);
        }
        for (name, next) in steps {
            let mut next = next;
            if let Some(what) = next.violation.take().or_else(|| next.check()) {
                return violation(what, &states, current, Some(name));
            }
            if known.contains_key(&next) {
                continue;
            }
            if states.len() >= MAX_STATES {
                return Outcome::TooMany;
            }
            known.insert(next.clone(), ());
            states.push((next, Some((current, name))));
            queue.push_back(states.len() - 1);
        }
    }
    Outcome::Complete {
        states: states.len(),
    }
}

fn violation(
    what: &'static str,
    states: &[(World, Option<(usize, String)>)],
    mut current: usize,
    last: Option<String>,
) -> Outcome {
    let mut path: Vec<String> = last.into_iter().collect();
    while let Some((previous, name)) = &states[current].1 {
        path.push(name.clone());
        current = *previous;
    }
    path.reverse();
    Outcome::Violation { what, path }
}
