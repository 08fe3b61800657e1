//! The paths of streamed arguments: `$.a.b[0]` (G09).

use crate::limits::MAX_ARGUMENT_DEPTH;

/// A member of an object, or an item of an array.
pub(super) enum Step {
    Key(String),
    Item(usize),
}

/// The steps of a path: `.name`, `['name']` and `[0]` after `$`.
pub(super) fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = next_step(rest)?;
        steps.push(step);
        rest = after;
        if steps.len() >= MAX_ARGUMENT_DEPTH {
            return None;
        }
    }
    Some(steps).filter(|steps| !steps.is_empty())
}

fn next_step(path: &str) -> Option<(Step, &str)> {
    if let Some(name) = path.strip_prefix('.') {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (name, after) = name.split_at_checked(end)?;
        return (!name.is_empty()).then(|| (Step::Key(name.to_owned()), after));
    }
    let inside = path.strip_prefix('[')?;
    if let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let quoted = inside.get(1..)?;
        let mut name = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, character)) = characters.next() {
            if character == quote {
                let after = quoted.get(at + 1..)?.strip_prefix(']')?;
                return Some((Step::Key(name), after));
            }
            name.push(match character {
                '\\' => characters.next()?.1,
                _ => character,
            });
        }
        return None;
    }
    let (number, after) = inside.split_once(']')?;
    Some((Step::Item(number.parse().ok()?), after))
}
