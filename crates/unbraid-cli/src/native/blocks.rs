//! The parts of an answer in the order in which they arrived: texts, reasoning, calls, and the provider's own objects.

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
    Reasoning(String),
    /// The position of a call in the message.
    Call(usize),
    /// An object of one of the lists of the message.
    Object {
        list: List,
        json: String,
    },
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
        Some(Block::Reasoning(text)) => text.push_str(delta),
        _ => blocks.push(Block::Reasoning(delta.to_owned())),
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

/// Adds a citation to the last text.
fn push_citation(blocks: &mut Vec<Block>, entry: String) {
    let last = blocks.iter_mut().rev().find_map(|block| match block {
        Block::Text { citations, .. } => Some(citations),
        _ => None,
    });
    match last {
        Some(citations) => citations.push(entry),
        None => blocks.push(Block::Text {
            text: String::new(),
            citations: vec![entry],
        }),
    }
}

/// Puts an object in the place of the text that it repeats: the end of a text or of reasoning, of which the rest stays.
fn replace_text(blocks: &mut Vec<Block>, repeated: &str, is_reasoning: bool, object: Block) {
    let ends_with = |block: &Block| match block {
        Block::Text { text, .. } => !is_reasoning && text.ends_with(repeated),
        Block::Reasoning(text) => is_reasoning && text.ends_with(repeated),
        Block::Call(_) | Block::Object { .. } => false,
    };
    let Some(at) = blocks.iter().rposition(ends_with) else {
        return blocks.push(object);
    };
    let mut is_empty = false;
    if let Some(Block::Text { text, .. } | Block::Reasoning(text)) = blocks.get_mut(at) {
        text.truncate(text.len() - repeated.len());
        is_empty = text.is_empty();
    }
    blocks.insert(at + 1, object);
    if is_empty {
        blocks.remove(at);
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

        // The text after reasoning may end with the same words.
        let mut blocks = vec![Block::Reasoning("Yes".to_owned()), text("I say: Yes")];
        replace_text(&mut blocks, "Yes", true, object());
        assert_eq!(blocks, [object(), text("I say: Yes")]);
    }
}
