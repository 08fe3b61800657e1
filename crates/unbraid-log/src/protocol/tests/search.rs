//! A breadth-first search over all states of a world.

use std::{
    collections::{HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use super::world::World;

/// More states than this take longer than anybody waits, and their fingerprints more than 4 GB.
const MAX_STATES: usize = 60_000_000;

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

/// How a state was reached: the state before it, and the number of the step there.
type Origin = Option<(u32, u32)>;

/// 128 bits of a state. A state takes a kilobyte, so only those are kept that have not been visited. That two of a hundred
/// million have the same bits has a probability of 10^-22.
fn fingerprint(world: &World) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, world).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    (half(0) << 64) | half(1)
}

/// Visits every state that can be reached.
pub(super) fn explore(start: World) -> Outcome {
    let mut known = HashSet::from([fingerprint(&start)]);
    let mut origins: Vec<Origin> = vec![None];
    let mut queue = VecDeque::from([(0_u32, start.clone())]);
    while let Some((current, world)) = queue.pop_front() {
        let (steps, is_stuck) = world.steps(false);
        if is_stuck && let Some(what) = world.check_final() {
            return violation(what, start, &origins, current, None);
        }
        for (number, (_, mut next)) in (0..).zip(steps) {
            if let Some(what) = next.violation.take().or_else(|| next.check()) {
                return violation(what, start, &origins, current, Some(number));
            }
            if !known.insert(fingerprint(&next)) {
                continue;
            }
            if origins.len() >= MAX_STATES {
                return Outcome::TooMany;
            }
            queue.push_back((u32::try_from(origins.len()).unwrap(), next));
            origins.push(Some((current, number)));
        }
    }
    Outcome::Complete {
        states: origins.len(),
    }
}

fn violation(
    what: &'static str,
    start: World,
    origins: &[Origin],
    mut current: u32,
    last: Option<u32>,
) -> Outcome {
    let mut numbers: Vec<u32> = last.into_iter().collect();
    while let Some((previous, number)) = origins[current as usize] {
        numbers.push(number);
        current = previous;
    }
    let (mut world, mut path) = (start, Vec::new());
    for number in numbers.into_iter().rev() {
        let (mut steps, _) = world.steps(true);
        let (name, next) = steps.swap_remove(number as usize);
        path.push(name);
        world = next;
    }
    Outcome::Violation { what, path }
}
