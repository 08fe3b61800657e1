//! Reasoning between tags in the content (C18), found in the whole content at its end.

use crate::fixture::SplitThink;

/// Reasoning and content, where `thoughts` came under a name of their own: each with how much content came before it.
pub(super) fn separate(
    content: &str,
    thoughts: &[(usize, String)],
    from: SplitThink,
) -> (String, String) {
    let mut reasoning: Vec<(usize, String)> = thoughts.to_vec();
    let mut answer = String::new();
    for (at, character, side) in sides(content, from) {
        match side {
            Side::Reasoning => reasoning.push((at, character.to_string())),
            Side::Answer => answer.push(character),
            Side::Layout => {}
        }
    }
    reasoning.sort_by_key(|(at, _)| *at); // stable: a thought of its own comes before the content of its delta
    let reasoning = reasoning.into_iter().map(|(_, text)| text).collect();
    (reasoning, answer)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Reasoning,
    Answer,
    /// A tag, or a line break right behind one.
    Layout,
}

/// On which side each character stands.
fn sides(content: &str, from: SplitThink) -> Vec<(usize, char, Side)> {
    let mut sides = Vec::new();
    let mut thinks = from == SplitThink::AtStart;
    let mut at_start = thinks;
    let mut after_tag = thinks;
    let mut tag_ends = 0;
    for (at, character) in content.char_indices() {
        let rest = &content[at..];
        let is_tag = |tag: &str| at >= tag_ends && rest.starts_with(tag);
        // The template opened the tag, and the model did once more.
        let opens = is_tag("<think>") && (!thinks || at_start);
        let closes = is_tag("</think>") && thinks;
        if opens || closes {
            thinks = opens;
            tag_ends = at
                + if opens {
                    "<think>".len()
                } else {
                    "</think>".len()
                };
            (after_tag, at_start) = (true, false);
        }
        let side = match (at < tag_ends, character) {
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
        sides.push((at, character, side));
    }
    sides
}
