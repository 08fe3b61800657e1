//! Reasoning whose deltas arrived between those of other reasoning.

use std::ops::Range;

use super::Block;

/// One delta: the position of its block, and its place there.
pub(super) type Delta = (usize, Range<usize>);

/// The deltas that are a text together, in their order. Of several the first ones count, as in `find_text`.
pub(super) fn find(blocks: &[Block], text: &str) -> Option<Vec<Delta>> {
    /// How many deltas are tried as the first one.
    const MAX_STARTS: usize = 64;
    let deltas: Vec<(Delta, &str)> = blocks.iter().enumerate().flat_map(deltas).collect();
    let starts = (0..deltas.len()).filter_map(|at| deltas.get(at..));
    let begins = |rest: &&[(Delta, &str)]| {
        let first = rest.first();
        first.is_some_and(|(_, delta)| text.starts_with(delta))
    };
    let mut starts = starts.filter(begins).take(MAX_STARTS);
    starts.find_map(|rest| follow(rest, text))
}

/// Puts an object in the place of the first of these deltas, and removes all of them.
pub(super) fn replace(blocks: &mut Vec<Block>, found: &[Delta], mut object: Option<Block>) {
    let Some((first, _)) = found.first() else {
        return blocks.extend(object);
    };
    for (at, block) in (*first..).zip(blocks.split_off(*first)) {
        let mut own = found.iter().filter(|(known, _)| *known == at).peekable();
        if own.peek().is_none() {
            blocks.push(block);
            continue;
        }
        let mut start = 0;
        for (_, delta) in own {
            push(blocks, block.cut(start..delta.start));
            blocks.extend(object.take());
            start = delta.end;
        }
        push(blocks, block.cut(start..));
    }
}

fn deltas((at, block): (usize, &Block)) -> Vec<(Delta, &str)> {
    let Block::Reasoning { text, ends } = block else {
        return Vec::new();
    };
    let starts = [0].into_iter().chain(ends.iter().copied());
    let ranges = starts.zip(ends).map(|(start, end)| start..*end);
    let deltas = ranges.filter_map(|range| Some(((at, range.clone()), text.get(range)?)));
    deltas.filter(|(_, delta)| !delta.is_empty()).collect()
}

/// The deltas that continue a text, each with the next piece of it.
fn follow(deltas: &[(Delta, &str)], text: &str) -> Option<Vec<Delta>> {
    let (mut found, mut rest) = (Vec::new(), text);
    for (place, delta) in deltas {
        if let Some(after) = rest.strip_prefix(delta) {
            found.push(place.clone());
            rest = after;
        }
        if rest.is_empty() {
            return Some(found);
        }
    }
    None
}

/// Adds what remains of a block. Adjacent pieces are one block.
fn push(blocks: &mut Vec<Block>, piece: Option<Block>) {
    match (blocks.last_mut(), piece) {
        (
            Some(Block::Reasoning { text, ends }),
            Some(Block::Reasoning {
                text: more,
                ends: new,
            }),
        ) => {
            ends.extend(new.into_iter().map(|end| text.len() + end));
            text.push_str(&more);
        }
        (_, piece) => blocks.extend(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::push_reasoning, *};
    use crate::native::blocks::List;

    #[test]
    fn objects_replace_texts_whose_deltas_were_interleaved() {
        let object = |json: &str| Block::Object {
            list: List::Reasoning,
            json: json.to_owned(),
        };
        let mut blocks = Vec::new();
        let deltas = ["x", "The", "The", " cat", " dog", " sat.", " ran."];
        for delta in deltas {
            push_reasoning(&mut blocks, delta);
        }
        for (text, json) in [("The cat sat.", "1"), ("The dog ran.", "2")] {
            match find(&blocks, text) {
                Some(deltas) => replace(&mut blocks, &deltas, Some(object(json))),
                None => panic!("{text} in {blocks:?}"),
            }
        }
        let mut expected = Vec::new();
        push_reasoning(&mut expected, "x");
        expected.extend([object("1"), object("2")]);
        assert_eq!(blocks, expected);
        assert_eq!(find(&blocks, "xy"), None);
    }
}
