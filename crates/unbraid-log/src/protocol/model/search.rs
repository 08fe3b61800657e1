//! A breadth-first search over all states of a world.

use std::{
    collections::{HashSet, VecDeque},
    rc::Rc,
};

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

/// A state, and the step that led to it.
struct Visited {
    world: Rc<World>,
    /// The state before it, and the number of the step there.
    from: Option<(usize, usize)>,
}

/// Visits every state that can be reached.
pub(super) fn explore(start: World) -> Outcome {
    let start = Rc::new(start);
    let mut known = HashSet::from([Rc::clone(&start)]);
    let mut states = vec![Visited {
        world: start,
        from: None,
    }];
    let mut queue = VecDeque::from([0_usize]);
    while let Some(current) = queue.pop_front() {
        let world = Rc::clone(&states[current].world);
        let (steps, is_stuck) = world.steps(false);
        if is_stuck && let Some(what) = world.check_final() {
            return violation(what, &states, current, None);
        }
        for (number, (_, mut next)) in steps.into_iter().enumerate() {
            if let Some(what) = next.violation.take().or_else(|| next.check()) {
                return violation(what, &states, current, Some(number));
            }
            let next = Rc::new(next);
            if !known.insert(Rc::clone(&next)) {
                continue;
            }
            if states.len() >= MAX_STATES {
                return Outcome::TooMany;
            }
            states.push(Visited {
                world: next,
                from: Some((current, number)),
            });
            queue.push_back(states.len() - 1);
        }
    }
    Outcome::Complete {
        states: states.len(),
    }
}

fn violation(
    what: &'static str,
    states: &[Visited],
    mut current: usize,
    last: Option<usize>,
) -> Outcome {
    let name = |state: usize, number: usize| {
        let (steps, _) = states[state].world.steps(true);
        steps[number].0.clone()
    };
    let mut path: Vec<String> = last.map(|last| name(current, last)).into_iter().collect();
    while let Some((previous, number)) = states[current].from {
        path.push(name(previous, number));
        current = previous;
    }
    path.reverse();
    Outcome::Violation { what, path }
}
