//! Reasoning between tags in the content (C18), found in the complete content at its end.

use crate::fixture::SplitThink;

/// Separates reasoning and answer. `thoughts` is reasoning with its own field name, each with the length of the content
/// before it.
pub(super) fn separate(
    content: &str,
    thoughts: &[(usize, String)],
    from: SplitThink,
) -> (String, String) {
    let mut reasoning: Vec<(usize, String)> = thoughts.to_vec();
    let mut answer = String::new();
    for (offset, character, side) in sides(content, from) {
        match side {
            Side::Reasoning => reasoning.push((offset, character.to_string())),
            Side::Answer => answer.push(character),
            Side::Layout => {}
        }
    }
    reasoning.sort_by_key(|(offset, _)| *offset); // stable: reasoning with its own field precedes the content of its delta
    let reasoning = reasoning.into_iter().map(|(_, text)| text).collect();
    (reasoning, answer)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Reasoning,
    Answer,
    /// A tag, or a line break directly after one.
    Layout,
}

/// The side of each character.
fn sides(content: &str, from: SplitThink) -> Vec<(usize, char, Side)> {
    let mut sides = Vec::new();
    let mut thinks = from == SplitThink::AtStart;
    let mut at_start = thinks;
    let mut after_tag = thinks;
    let mut tag_ends = 0;
    for (offset, character) in content.char_indices() {
        let rest = &content[offset..];
        let is_tag = |tag: &str| offset >= tag_ends && rest.starts_with(tag);
        // The chat template has opened the tag, and the model repeats it.
        let opens = is_tag("<think>") && (!thinks || at_start);
        let closes = is_tag("</think>") && thinks;
        if opens || closes {
            thinks = opens;
            tag_ends = offset
                + if opens {
                    "<think>".len()
                } else {
                    "</think>".len()
                };
            (after_tag, at_start) = (true, false);
        }
        let side = match (offset < tag_ends, character) {
            (true, _) => Side::Layout,
            (false, '\n' | '\r') if after_tag => Side::Layout,
            (false, _) => {
                (after_tag, at_start) = (false, false);
                if thinks {
                    Side::Reasoning
                } else {
                    Side::Answer
                }
            }
        };
        sides.push((offset, character, side));
    }
    sides
}
