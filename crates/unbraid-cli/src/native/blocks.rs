//! The parts of an answer in the order in which they arrived: texts, reasoning, calls, and the provider's own objects.

mod interleaved;

use std::{
    ops::{Bound, RangeBounds},
    slice::SliceIndex,
};

use unbraid_core::{Event, ToolCall, Transcript, internal::compact};

use super::{NativeError, json};

/// One part of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Block {
    Text {
        text: String,
        /// What the provider says about its sources.
        citations: Vec<String>,
    },
    Reasoning {
        text: String,
        /// Where its deltas end.
        ends: Vec<usize>,
    },
    /// The position of a call in the message.
    Call(usize),
    /// An object of one of the lists of the message.
    Object { list: List, json: String },
}

/// A list of the message that keeps objects of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Annotations,
    Images,
    Reasoning,
    Parts,
}

impl List {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "annotations" => Self::Annotations,
            "images" => Self::Images,
            "reasoning_details" => Self::Reasoning,
            "content_parts" => Self::Parts,
            _ => return None,
        })
    }
}

/// How a dialect writes its objects.
pub(super) struct BlockRules {
    /// The text that an object repeats, which the stream had as text or as reasoning.
    pub(super) text_of: fn(&str) -> Option<String>,
    /// Whether that text is reasoning.
    pub(super) is_reasoning: fn(&str) -> bool,
    /// Whether a citation belongs to the text before it; otherwise it is an object.
    pub(super) cites_text: bool,
}

/// The parts of a choice.
pub(super) fn blocks(choice: &Transcript, rules: &BlockRules) -> Vec<Block> {
    let mut blocks = Vec::new();
    for event in (0..choice.event_count()).filter_map(|seq| choice.event(seq)) {
        match event.event {
            Event::Content(delta) => push_text(&mut blocks, delta),
            Event::Reasoning(delta) => push_reasoning(&mut blocks, delta),
            Event::ToolCallStart { call_index, .. } => {
                blocks.push(Block::Call(call_index.0 as usize));
            }
            Event::ExtraFields(fields) => {
                for (name, entries) in json::fields(fields) {
                    let Some(list) = List::named(&name) else {
                        continue; // a field of the choice
                    };
                    for entry in json::entries(&entries) {
                        push_object(&mut blocks, list, entry, rules);
                    }
                }
            }
            _ => {}
        }
    }
    blocks
}

fn push_text(blocks: &mut Vec<Block>, delta: &str) {
    match blocks.last_mut() {
        Some(Block::Text { text, .. }) => text.push_str(delta),
        _ => blocks.push(Block::Text {
            text: delta.to_owned(),
            citations: Vec::new(),
        }),
    }
}

fn push_reasoning(blocks: &mut Vec<Block>, delta: &str) {
    match blocks.last_mut() {
        Some(Block::Reasoning { text, ends }) => {
            text.push_str(delta);
            ends.push(text.len());
        }
        _ => blocks.push(Block::Reasoning {
            text: delta.to_owned(),
            ends: vec![delta.len()],
        }),
    }
}

fn push_object(blocks: &mut Vec<Block>, list: List, entry: String, rules: &BlockRules) {
    if list == List::Annotations && rules.cites_text {
        return push_citation(blocks, entry);
    }
    let block = Block::Object { list, json: entry };
    let repeated = match (&block, list) {
        (Block::Object { json, .. }, List::Reasoning) => (rules.text_of)(json),
        _ => None,
    };
    match (repeated.filter(|text| !text.is_empty()), &block) {
        (Some(text), Block::Object { json, .. }) => {
            let is_reasoning = (rules.is_reasoning)(json);
            replace_text(blocks, &text, is_reasoning, block);
        }
        _ => blocks.push(block),
    }
}

/// Adds a citation to the last text, or to the next one if anything stands between: a block may begin with its citations.
fn push_citation(blocks: &mut Vec<Block>, entry: String) {
    match blocks.last_mut() {
        Some(Block::Text { citations, .. }) => citations.push(entry),
        _ => blocks.push(Block::Text {
            text: String::new(),
            citations: vec![entry],
        }),
    }
}

/// Puts an object in the place of the text that it repeats, of which the rest stays. Usually a text ends with it. Where the
/// blocks of the stream were interleaved, or one had no stop, other text follows it or comes in between.
fn replace_text(blocks: &mut Vec<Block>, repeated: &str, is_reasoning: bool, object: Block) {
    let last = blocks.last().and_then(|block| text_of(block, is_reasoning));
    let last = last.filter(|text| text.ends_with(repeated));
    let found = match last {
        Some(text) => Some((blocks.len() - 1, text.len() - repeated.len())),
        None => find_text(blocks, repeated, is_reasoning),
    };
    let Some((first, mut start)) = found else {
        return match interleaved::find(blocks, repeated).filter(|_| is_reasoning) {
            Some(deltas) => interleaved::replace(blocks, &deltas, Some(object)),
            None => blocks.push(object),
        };
    };
    let (mut missing, mut object) = (repeated.len(), Some(object));
    for block in blocks.split_off(first) {
        let text = text_of(&block, is_reasoning).filter(|text| missing > 0 && start < text.len());
        let Some(text) = text else {
            start = start.saturating_sub(text_of(&block, is_reasoning).map_or(0, str::len));
            blocks.push(block);
            continue;
        };
        let end = text.len().min(start + missing);
        missing -= end - start;
        let (before, after) = (block.cut(..start), block.cut(end..));
        start = 0;
        blocks.extend(before.into_iter().chain(object.take()).chain(after));
    }
}

/// Removes reasoning whose deltas may be between those of other reasoning; false if it is not there.
pub(super) fn remove_reasoning(blocks: &mut Vec<Block>, text: &str) -> bool {
    let found = interleaved::find(blocks, text);
    if let Some(deltas) = &found {
        interleaved::replace(blocks, deltas, None);
    }
    found.is_some()
}

/// The block near the end in which a text begins, and its place there. Of several the first counts, because objects are in the order
/// of their texts. The text may be spread over several blocks.
fn find_text(blocks: &[Block], text: &str, is_reasoning: bool) -> Option<(usize, usize)> {
    /// How far back it is looked for: what arrives between the deltas of one block.
    const MAX_BLOCKS: usize = 64;
    const MAX_BYTES: usize = 64 * 1024;
    let (mut window, mut first) = (String::new(), blocks.len());
    for (at, block) in blocks.iter().enumerate().rev().take(MAX_BLOCKS) {
        if window.len() > text.len() + MAX_BYTES {
            break;
        }
        first = at;
        window.insert_str(0, text_of(block, is_reasoning).unwrap_or_default());
    }
    Some((first, window.find(text)?))
}

fn text_of(block: &Block, is_reasoning: bool) -> Option<&str> {
    match block {
        Block::Text { text, .. } if !is_reasoning => Some(text),
        Block::Reasoning { text, .. } if is_reasoning => Some(text),
        Block::Text { .. } | Block::Reasoning { .. } | Block::Call(_) | Block::Object { .. } => {
            None
        }
    }
}

impl Block {
    /// A part of a text, with its citations if it is the first one; `None` if it is empty.
    fn cut(&self, range: impl SliceIndex<str, Output = str> + RangeBounds<usize>) -> Option<Self> {
        let is_first = range.contains(&0);
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let part = |text: &str| {
            text.get(range)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
        };
        match self {
            Self::Text { text, citations } => {
                let citations = if is_first {
                    citations.clone()
                } else {
                    Vec::new()
                };
                Some(Self::Text {
                    text: part(text)?,
                    citations,
                })
            }
            Self::Reasoning { text, ends } => {
                let text = part(text)?;
                let inner = ends.iter().filter_map(|end| end.checked_sub(start));
                let inner = inner.filter(|end| (1..text.len()).contains(end));
                let ends = inner.chain([text.len()]).collect();
                Some(Self::Reasoning { text, ends })
            }
            Self::Call(_) | Self::Object { .. } => None,
        }
    }
}

/// The arguments of a call as a JSON value: a provider's own form has no place for any other text.
pub(super) fn arguments(
    choice: &Transcript,
    position: usize,
    call: &ToolCall,
) -> Result<String, NativeError> {
    let arguments = match call.arguments.trim() {
        "" => "{}",
        arguments => arguments,
    };
    match serde_json::from_str::<serde::de::IgnoredAny>(arguments) {
        // The output is indented anew.
        Ok(_) => Ok(compact(arguments).into_owned()),
        Err(_) => Err(NativeError::Arguments {
            choice: choice.index(),
            call: position,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Block {
        Block::Text {
            text: text.to_owned(),
            citations: Vec::new(),
        }
    }

    fn reasoning(text: &str) -> Block {
        let mut blocks = Vec::new();
        push_reasoning(&mut blocks, text);
        blocks.remove(0)
    }

    #[test]
    fn a_citation_is_in_the_block_in_which_it_came() {
        let cited = |text: &str, citations: &[&str]| Block::Text {
            text: text.to_owned(),
            citations: citations.iter().map(|entry| (*entry).to_owned()).collect(),
        };
        let mut blocks = vec![text("I search.")];
        push_citation(&mut blocks, "1".to_owned());
        blocks.push(Block::Call(0));
        push_citation(&mut blocks, "2".to_owned());
        push_text(&mut blocks, "Found.");
        push_citation(&mut blocks, "3".to_owned());
        let expected = [
            cited("I search.", &["1"]),
            Block::Call(0),
            cited("Found.", &["2", "3"]),
        ];
        assert_eq!(blocks, expected);
    }

    #[test]
    fn reasoning_between_other_reasoning_is_removed() {
        let mut blocks = Vec::new();
        for delta in ["p", "T", "q", "U"] {
            push_reasoning(&mut blocks, delta);
        }
        assert!(!remove_reasoning(&mut blocks, "x"));
        assert!(remove_reasoning(&mut blocks, "pq"));
        assert_eq!(text_of(&blocks[0], true), Some("TU"));
        assert_eq!(blocks.len(), 1);
    }

    #[test]
    fn an_object_replaces_the_end_of_the_text_that_it_repeats() {
        let object = || Block::Object {
            list: List::Reasoning,
            json: "{}".to_owned(),
        };
        let mut blocks = vec![text("ab"), Block::Call(0)];
        replace_text(&mut blocks, "b", false, object());
        assert_eq!(blocks, [text("a"), object(), Block::Call(0)]);
        replace_text(&mut blocks, "a", false, object());
        assert_eq!(blocks, [object(), object(), Block::Call(0)]);
        replace_text(&mut blocks, "unknown", false, object());
        assert_eq!(blocks.len(), 4);

        // Objects that come late are in the order of their texts.
        let mut blocks = vec![reasoning("OK.Yes. OK."), text("Hi")];
        for thought in ["OK.", "Yes. OK."] {
            replace_text(&mut blocks, thought, true, object());
        }
        assert_eq!(blocks, [object(), object(), text("Hi")]);

        // Text of another block follows, or comes in between.
        let mut blocks = vec![reasoning("TU")];
        replace_text(&mut blocks, "T", true, object());
        assert_eq!(blocks, [object(), reasoning("U")]);
        let mut blocks = vec![reasoning("aT"), text("hi"), reasoning("V"), text("b")];
        replace_text(&mut blocks, "TV", true, object());
        assert_eq!(blocks, [reasoning("a"), object(), text("hi"), text("b")]);

        // The text after reasoning may end with the same words.
        let mut blocks = vec![reasoning("Yes"), text("I say: Yes")];
        replace_text(&mut blocks, "Yes", true, object());
        assert_eq!(blocks, [object(), text("I say: Yes")]);
    }
}
