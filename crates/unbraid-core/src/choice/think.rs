//! Separates reasoning in `<think>…</think>` from the answer around it (C18, R7).
//!
//! A tag may be cut anywhere, so text that may start one is held back until the next delta decides. At most a tag's length
//! minus one byte is held back. It is delivered at the finish reason or the end of the choice.

use std::{borrow::Cow, mem};

use super::{ChoiceMachine, text::push_text};
use crate::{
    ReasoningSource, ThinkTags, Update,
    event::Position,
    limits::DELTA_COST,
    transcript::{Kind, Transcript},
};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// What a text that starts with `<` is.
enum Mark {
    Tag(&'static str),
    /// The start of a tag, cut by the end of the text.
    Cut(&'static str),
    Text,
}

/// The state of one choice's content between the tags.
#[derive(Debug)]
pub(super) struct ThinkSplitter {
    inside: bool,
    /// Whether the last input was a tag, or the start of a choice whose tag is in the prompt's template: line breaks that
    /// follow belong to the template's layout.
    after_tag: bool,
    /// Whether any tag separated text so far.
    seen: bool,
    /// Whether a closing tag arrived without an opening tag, and without the option that explains it.
    orphan: bool,
    /// Text that may be the start of a tag.
    held: &'static str,
}

impl ThinkSplitter {
    /// A splitter at the start of a choice, if the option asks for one.
    pub(super) fn new(tags: ThinkTags) -> Option<Self> {
        let inside = match tags {
            ThinkTags::Off => return None,
            ThinkTags::Split => false,
            ThinkTags::SplitOpen => true,
        };
        Some(Self {
            inside,
            after_tag: inside,
            seen: false,
            orphan: false,
            held: "",
        })
    }

    /// Splits the next text of the content, and pushes what is decided, in order.
    pub(super) fn split(&mut self, text: &str, push: &mut impl FnMut(Kind, &str)) {
        let text = match mem::take(&mut self.held) {
            "" => Cow::Borrowed(text),
            held => Cow::Owned([held, text].concat()),
        };
        let mut rest = self.without_layout(&text);
        let mut from = 0;
        while let Some((at, before, tail)) = next_mark(rest, from) {
            match self.mark(tail, at == 0) {
                Mark::Text => from = at + 1,
                Mark::Cut(held) => {
                    self.push(before, push);
                    self.held = held;
                    return;
                }
                Mark::Tag(tag) => {
                    self.push(before, push);
                    self.inside = tag == OPEN;
                    (self.after_tag, self.seen) = (true, true);
                    rest = self.without_layout(tail.get(tag.len()..).unwrap_or(""));
                    from = 0;
                }
            }
        }
        self.push(rest, push);
    }

    /// Pushes the text that was held back: it was not a tag.
    pub(super) fn flush(&mut self, push: &mut impl FnMut(Kind, &str)) {
        let held = mem::take(&mut self.held);
        self.push(held, push);
    }

    /// Whether an orphan closing tag arrived since the last call.
    pub(super) fn take_orphan(&mut self) -> bool {
        mem::take(&mut self.orphan)
    }

    /// Whether all text so far counts as reasoning only because of the option, and no tag confirmed it.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.inside && !self.seen && !self.after_tag
    }

    fn push(&mut self, text: &str, push: &mut impl FnMut(Kind, &str)) {
        if !text.is_empty() {
            self.after_tag = false;
            let kind = if self.inside {
                Kind::Reasoning
            } else {
                Kind::Content
            };
            push(kind, text);
        }
    }

    fn without_layout<'t>(&self, text: &'t str) -> &'t str {
        if self.after_tag {
            text.trim_start_matches(['\n', '\r'])
        } else {
            text
        }
    }

    /// Classifies a text that starts with `<`; `first` if no text before it is still to be pushed.
    fn mark(&mut self, tail: &str, first: bool) -> Mark {
        // With the tag in the template, some models still write it once more.
        let again = first && self.after_tag && !self.seen;
        if !self.inside || again {
            match of_tag(OPEN, tail) {
                Mark::Text => {}
                mark => return mark,
            }
        }
        let mark = of_tag(CLOSE, tail);
        if self.inside {
            return mark;
        }
        self.orphan |= !self.seen && matches!(mark, Mark::Tag(_));
        match mark {
            Mark::Tag(_) | Mark::Text => Mark::Text,
            cut @ Mark::Cut(_) => cut,
        }
    }
}

impl ChoiceMachine {
    /// Delivers text that was held back because it might have been the start of a tag.
    pub(super) fn flush_think(&mut self, position: Position, transcript: &mut Transcript) {
        if let Some(think) = &mut self.think {
            think.flush(&mut |kind, text| push_split_text(transcript, kind, position, text));
        }
    }
}

/// Appends a piece of the content, and records that the reasoning was inside tags.
pub(super) fn push_split_text(
    transcript: &mut Transcript,
    kind: Kind,
    position: Position,
    text: &str,
) {
    if kind == Kind::Reasoning && !text.is_empty() {
        transcript.set_reasoning_source(&ReasoningSource::ThinkTags);
    }
    push_text(transcript, kind, position, 0, text);
}

/// The next `<` from a byte on: its offset, the text before it, and the text from it on.
fn next_mark(text: &str, from: usize) -> Option<(usize, &str, &str)> {
    let at = from + text.get(from..)?.find('<')?;
    let (before, tail) = text.split_at_checked(at)?;
    Some((at, before, tail))
}

fn of_tag(tag: &'static str, tail: &str) -> Mark {
    if tail.starts_with(tag) {
        return Mark::Tag(tag);
    }
    match tag.get(..tail.len()) {
        Some(head) if head == tail => Mark::Cut(head),
        _ => Mark::Text,
    }
}

/// What splitting an update costs beyond the update itself: each tag in it may start a further event.
pub(crate) fn split_cost(tags: ThinkTags, update: &Update<'_>) -> u64 {
    match (&update.content, tags) {
        (None, _) | (_, ThinkTags::Off) => 0,
        (Some(content), ThinkTags::Split | ThinkTags::SplitOpen) => {
            content.text.matches("think>").count() as u64 * DELTA_COST
        }
    }
}

#[cfg(test)]
mod tests {
    use unbraid_testkit::cut::Rng;

    use super::*;

    /// The pieces that the deltas are split into, marked `r` for reasoning and `c` for content.
    fn split(tags: ThinkTags, deltas: &[&str]) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut push = |kind: Kind, text: &str| {
            let lane = if kind == Kind::Content { "c" } else { "r" };
            pieces.push(format!("{lane}:{text}"));
        };
        let mut splitter = ThinkSplitter::new(tags).expect("the option is on");
        for delta in deltas {
            splitter.split(delta, &mut push);
        }
        splitter.flush(&mut push);
        pieces
    }

    #[track_caller]
    fn check(tags: ThinkTags, deltas: &[&str], expected: &[&str]) {
        assert_eq!(split(tags, deltas), expected, "{tags:?} {deltas:?}");
    }

    /// All reasoning, and all content.
    fn sums(tags: ThinkTags, deltas: &[&str]) -> [String; 2] {
        let pieces = split(tags, deltas);
        ["r:", "c:"].map(|lane| {
            let of_lane = pieces.iter().filter_map(|piece| piece.strip_prefix(lane));
            of_lane.collect()
        })
    }

    #[test]
    fn c18_tags_separate_reasoning_from_content() {
        check(
            ThinkTags::Split,
            &["<think>a", "b</think>c", "d"],
            &["r:a", "r:b", "c:c", "c:d"],
        );
        check(
            ThinkTags::Split,
            &["x<think>y</think>z"],
            &["c:x", "r:y", "c:z"],
        );
        check(
            ThinkTags::Split,
            &["<think>a</think><think>b</think>c"],
            &["r:a", "r:b", "c:c"],
        );
    }

    #[test]
    fn c18_a_tag_that_is_cut_is_held_back() {
        check(
            ThinkTags::Split,
            &["<", "th", "ink>a<", "/think", ">b"],
            &["r:a", "c:b"],
        );
        check(
            ThinkTags::Split,
            &["a <thi", "s> b"],
            &["c:a ", "c:<this> b"],
        );
        check(
            ThinkTags::Split,
            &["a <", "<think>b"],
            &["c:a ", "c:<", "r:b"],
        );
    }

    #[test]
    fn c18_text_that_is_held_back_at_the_end_is_delivered() {
        check(ThinkTags::Split, &["a<thin"], &["c:a", "c:<thin"]);
        check(ThinkTags::Split, &["<think>a</thin"], &["r:a", "r:</thin"]);
    }

    #[test]
    fn c18_text_before_a_closing_tag_is_reasoning_if_the_template_opened_it() {
        check(
            ThinkTags::SplitOpen,
            &["a", "</thi", "nk>\n\nb"],
            &["r:a", "c:b"],
        );
        check(ThinkTags::SplitOpen, &["</think>b"], &["c:b"]);
        check(
            ThinkTags::SplitOpen,
            &["\n", "<think>\na</think>b"],
            &["r:a", "c:b"],
        );
        check(
            ThinkTags::SplitOpen,
            &["a<think>b</think>c"],
            &["r:a<think>b", "c:c"],
        );
    }

    #[test]
    fn c18_an_orphan_closing_tag_stays_text() {
        check(
            ThinkTags::Split,
            &["a</th", "ink>b"],
            &["c:a", "c:</think>b"],
        );
        let mut splitter = ThinkSplitter::new(ThinkTags::Split).expect("the option is on");
        splitter.split("a</think>", &mut |_, _| {});
        assert!(splitter.take_orphan());
        splitter.split("<think>b</think>c</think>", &mut |_, _| {});
        assert!(
            !splitter.take_orphan(),
            "after a separated block it is the answer's own text"
        );
    }

    #[test]
    fn c18_only_line_breaks_directly_after_a_tag_are_dropped() {
        check(
            ThinkTags::Split,
            &["<think>\n", "\n a\n</think>\r\n", "\n  b\n"],
            &["r: a\n", "c:  b\n"],
        );
        check(ThinkTags::Split, &["\na"], &["c:\na"]);
        check(ThinkTags::SplitOpen, &["\n\na"], &["r:a"]);
    }

    #[test]
    fn c18_tags_of_another_case_or_with_white_space_are_text() {
        check(ThinkTags::Split, &["<THINK>a"], &["c:<THINK>a"]);
        check(ThinkTags::Split, &["<think >a"], &["c:<think >a"]);
        check(
            ThinkTags::Split,
            &["<think>a<think>b</think>c"],
            &["r:a<think>b", "c:c"],
        );
    }

    #[test]
    fn each_tag_costs_as_much_as_a_delta_where_texts_are_split() {
        let cost = |tags, text: &'static str| {
            let update = Update {
                content: Some(text.into()),
                ..Update::default()
            };
            split_cost(tags, &update)
        };
        assert_eq!(cost(ThinkTags::Split, "a"), 0);
        assert_eq!(cost(ThinkTags::Split, "<think>a</think>b"), 2 * DELTA_COST);
        assert_eq!(cost(ThinkTags::SplitOpen, "a</think>b"), DELTA_COST);
        assert_eq!(cost(ThinkTags::Off, "a</think>b"), 0);
    }

    #[test]
    fn c18_the_cuts_between_deltas_change_nothing() {
        const PARTS: [&str; 9] = [
            "<think>", "</think>", "<", "</", "think>", "\n", "é", "text ", "<thi",
        ];
        for seed in 0..2000 {
            let rng = &mut Rng::new(seed);
            let text: String = (0..rng.below(12)).map(|_| PARTS[rng.below(9)]).collect();
            for tags in [ThinkTags::Split, ThinkTags::SplitOpen] {
                let whole = sums(tags, &[&text]);
                let mut deltas = Vec::new();
                let mut rest = text.as_str();
                while let Some(first) = rest.chars().next() {
                    let length = (1 + rng.below(9)).max(first.len_utf8());
                    let end = (length..).find(|&end| rest.is_char_boundary(end.min(rest.len())));
                    let (delta, tail) = rest.split_at(end.unwrap_or(0).min(rest.len()));
                    deltas.push(delta);
                    rest = tail;
                }
                assert_eq!(sums(tags, &deltas), whole, "{tags:?} {deltas:?}");
            }
        }
    }
}
