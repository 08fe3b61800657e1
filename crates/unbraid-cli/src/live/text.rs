//! The text of one choice in blocks: content, reasoning, refusals and calls, in the order in which they began.

use std::collections::VecDeque;

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use unbraid::{CallIndex, CallKind, CallStatus};

use super::{
    highlight::json_row,
    style::{BOLD, DIM},
    wrap::{Row, Rows},
};
use crate::json::StreamIndenter;

/// How much text the view of one choice keeps. The oldest text goes first, so that an endless stream needs no more memory.
const MAX_BYTES: usize = 1024 * 1024;

/// How many blocks it keeps. A stream may begin a new one with each delta.
const MAX_BLOCKS: usize = 2048;

/// The newest blocks of a choice.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: VecDeque<Block>,
    /// How many older blocks have been dropped.
    dropped: usize,
    /// The bytes of all blocks.
    bytes: usize,
    /// Whether any text has been dropped.
    pub(super) is_cut: bool,
    /// The block of each call, by call index. Blocks are counted from the first one, dropped or not.
    calls: Vec<usize>,
}

/// A position in the text that does not depend on the width.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TextPosition {
    block: usize,
    byte: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Content,
    Reasoning,
    Refusal,
}

#[derive(Debug)]
struct Block {
    kind: BlockKind,
    text: String,
    /// How many bytes of the text have been dropped at its start.
    cut: usize,
    rows: Rows,
}

#[derive(Debug)]
enum BlockKind {
    Text(TextKind),
    Call(Box<Arguments>), // boxed: much larger than a text, and rarer
}

#[derive(Debug)]
struct Arguments {
    kind: CallKind,
    /// The length of the mark and the name at the start of the block's text.
    heading_len: usize,
    raw: String,
    indenter: StreamIndenter,
}

impl Blocks {
    /// Adds a delta. Text of another kind, and text after a call, begins a new block.
    pub(super) fn push(&mut self, kind: TextKind, delta: &str) {
        self.bytes += delta.len();
        match self.blocks.back_mut() {
            Some(block) if block.is_text(kind) => block.text.push_str(delta),
            _ => self.push_block(BlockKind::Text(kind), format!("{}{delta}", kind.mark())),
        }
        self.drop_oldest();
    }

    pub(super) fn start_call(&mut self, name: &str, kind: CallKind) {
        let name = if name.is_empty() { "?" } else { name };
        let text = format!("> {name} ");
        self.bytes += text.len();
        self.calls.push(self.dropped + self.blocks.len());
        let arguments = Arguments {
            kind,
            heading_len: text.len(),
            raw: String::new(),
            indenter: StreamIndenter::new(kind),
        };
        self.push_block(BlockKind::Call(Box::new(arguments)), text);
        self.drop_oldest();
    }

    fn push_block(&mut self, kind: BlockKind, text: String) {
        self.blocks.push_back(Block {
            kind,
            text,
            cut: 0,
            rows: Rows::default(),
        });
    }

    pub(super) fn push_arguments(&mut self, call_index: CallIndex, fragment: &str) {
        if let Some(block) = self.call_mut(call_index) {
            let before = block.text.len();
            block.push_arguments(fragment);
            let after = block.text.len();
            self.bytes = (self.bytes + after).saturating_sub(before);
            self.drop_oldest();
        }
    }

    /// Drops the oldest text if there is more than the view keeps.
    fn drop_oldest(&mut self) {
        while self.blocks.len() > 1
            && (self.bytes > MAX_BYTES || self.blocks.len() > MAX_BLOCKS)
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(oldest.text.len());
            self.dropped += 1;
            self.is_cut = true;
        }
        while self.bytes > MAX_BYTES
            && let Some(block) = self.blocks.front_mut()
        {
            block.drop_half();
            self.bytes = block.text.len();
            self.is_cut = true;
        }
    }

    /// Ends a call, and shows its status if the arguments are not complete as they are.
    pub(super) fn end_call(&mut self, call_index: CallIndex, status: CallStatus) {
        let is_ok = matches!(status, CallStatus::Complete | CallStatus::EmptyAsObject);
        if let Some(block) = self.call_mut(call_index).filter(|_| !is_ok) {
            let gap = if block.text.ends_with(' ') { "" } else { " " };
            block.text.extend([gap, "(", status.as_str(), ")"]);
        }
    }

    /// Removes a legacy function call that repeats a tool call (T37).
    pub(super) fn drop_repeated_function_call(&mut self) {
        let legacy = self.blocks.iter().position(Block::is_legacy);
        let Some(position) = legacy else { return };
        let text = self.blocks.get(position).map(|block| block.text.clone());
        let is_same = |block: &Block| {
            matches!(block.kind, BlockKind::Call(_))
                && !block.is_legacy()
                && Some(&block.text) == text.as_ref()
        };
        if self.blocks.iter().any(is_same) {
            self.blocks.remove(position);
            // The positions in `calls` are no longer right. The choice has ended, so they are not needed either.
            self.calls.clear();
        }
    }

    fn call_mut(&mut self, call_index: CallIndex) -> Option<&mut Block> {
        let position = *self.calls.get(call_index.0 as usize)?;
        self.blocks.get_mut(position.checked_sub(self.dropped)?)
    }

    /// Wraps the new text, and returns the number of rows at this width.
    pub(super) fn wrap(&mut self, width: usize) -> usize {
        for block in &mut self.blocks {
            block.rows.update(&block.text, width);
        }
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    /// Up to `count` rows from `first` on, at the last width. Calls are in the style of the choice.
    pub(super) fn rows(&self, first: usize, count: usize, choice: Style) -> Vec<Line<'_>> {
        let (mut block, mut row) = self.find(first);
        let mut lines = Vec::new();
        while let Some(found) = self.blocks.get(block) {
            if lines.len() == count {
                break;
            }
            match found.rows.get(row) {
                Some(wrapped) => {
                    lines.push(found.line(wrapped, choice));
                    row += 1;
                }
                None => (block, row) = (block + 1, 0),
            }
        }
        lines
    }

    /// The position at which a row begins.
    pub(super) fn position(&self, row: usize) -> TextPosition {
        let (block, row) = self.find(row);
        let found = self.blocks.get(block);
        let byte = found.and_then(|found| Some(found.cut + found.rows.get(row)?.start));
        TextPosition {
            block: self.dropped + block,
            byte: byte.unwrap_or(0),
        }
    }

    /// The row that contains a position, or the first one if the position has been dropped.
    pub(super) fn row_of(&self, position: TextPosition) -> usize {
        let Some(block) = position.block.checked_sub(self.dropped) else {
            return 0;
        };
        let before = self.blocks.iter().take(block);
        let before: usize = before.map(|block| block.rows.len()).sum();
        let block = self.blocks.get(block);
        before
            + block.map_or(0, |block| {
                block.rows.row_of(position.byte.saturating_sub(block.cut))
            })
    }

    /// The block of a row, and the row within it.
    fn find(&self, row: usize) -> (usize, usize) {
        let mut rest = row;
        for (position, block) in self.blocks.iter().enumerate() {
            if rest < block.rows.len() {
                return (position, rest);
            }
            rest -= block.rows.len();
        }
        (self.blocks.len(), 0)
    }
}

impl TextKind {
    /// The mark at the start of the text, the same as in the lines.
    fn mark(self) -> &'static str {
        match self {
            Self::Content => "",
            Self::Reasoning => "~ ",
            Self::Refusal => "! ",
        }
    }
}

impl Block {
    fn is_text(&self, wanted: TextKind) -> bool {
        matches!(&self.kind, BlockKind::Text(kind) if *kind == wanted)
    }

    fn is_legacy(&self) -> bool {
        matches!(&self.kind, BlockKind::Call(call) if call.kind == CallKind::LegacyFunction)
    }

    fn push_arguments(&mut self, fragment: &str) {
        let BlockKind::Call(call) = &mut self.kind else {
            return;
        };
        let was_raw = call.indenter.is_raw();
        if !was_raw {
            call.raw.push_str(fragment);
        }
        call.indenter.push(fragment, &mut self.text);
        // The arguments turned out not to be JSON: show them unchanged from the start, as far as it is kept.
        if call.indenter.is_raw() && !was_raw {
            self.text.truncate(call.heading_len);
            self.text.push_str(&std::mem::take(&mut call.raw));
            self.rows.reset();
        }
    }

    /// Drops the first half of the text.
    fn drop_half(&mut self) {
        let half = self.text.len() / 2;
        let length = (half..=self.text.len()).find(|&end| self.text.is_char_boundary(end));
        let length = length.unwrap_or(0);
        self.text.drain(..length);
        self.cut += length;
        self.rows.reset();
        if let BlockKind::Call(call) = &mut self.kind {
            call.heading_len = 0;
            call.raw = String::new();
        }
    }

    fn line<'r>(&self, row: &'r Row, choice: Style) -> Line<'r> {
        let style = match &self.kind {
            BlockKind::Text(TextKind::Content) => Style::new(),
            BlockKind::Text(TextKind::Reasoning) => DIM,
            BlockKind::Text(TextKind::Refusal) => BOLD,
            BlockKind::Call(call) if call.indenter.is_raw() => choice,
            BlockKind::Call(call) if row.start < call.heading_len => {
                choice.add_modifier(Modifier::BOLD)
            }
            BlockKind::Call(_) => {
                let before = self.text.get(..row.start).unwrap_or_default();
                return json_row(before, &row.text, choice);
            }
        };
        Line::styled(row.text.as_str(), style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_an_endless_text_is_bounded() {
        let mut blocks = Blocks::default();
        for _ in 0..5000 {
            blocks.push(TextKind::Content, &"word ".repeat(200));
            blocks.wrap(80);
        }
        assert!(blocks.is_cut && blocks.bytes <= MAX_BYTES);
        assert!(blocks.blocks[0].text.len() <= MAX_BYTES);
        for k in 0..5000 {
            let kind = [TextKind::Content, TextKind::Reasoning][k % 2];
            blocks.push(kind, "x");
        }
        assert!(blocks.blocks.len() <= MAX_BLOCKS);
        let sum: usize = blocks.blocks.iter().map(|block| block.text.len()).sum();
        assert!(sum <= 3 * MAX_BYTES, "{sum}");
    }

    #[test]
    fn endless_arguments_are_bounded_and_a_dropped_call_takes_no_more() {
        let mut blocks = Blocks::default();
        blocks.start_call("f", CallKind::Function);
        blocks.push_arguments(CallIndex(0), "{\"a\":\"");
        for _ in 0..3000 {
            blocks.push_arguments(CallIndex(0), &"x".repeat(1000));
        }
        assert!(blocks.blocks[0].text.len() <= MAX_BYTES);
        blocks.start_call("g", CallKind::Function);
        blocks.push(TextKind::Content, &"y".repeat(MAX_BYTES));
        blocks.push_arguments(CallIndex(0), "z");
        blocks.push_arguments(CallIndex(1), "{}");
        assert_eq!(blocks.blocks.len(), 1);
    }
}
