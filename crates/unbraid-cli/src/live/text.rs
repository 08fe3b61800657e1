//! The text of one choice in blocks: content, reasoning, refusals and calls, in the order in which they began.

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use unbraid::{CallIndex, CallKind, CallStatus};

use super::wrap::{Row, Rows};
use crate::json::StreamIndenter;

/// The blocks of a choice.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// The block of each call, by call index.
    calls: Vec<usize>,
}

/// A position in the blocks that does not depend on the width.
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
        match self.blocks.last_mut() {
            Some(block) if block.is_text(kind) => block.text.push_str(delta),
            _ => self.blocks.push(Block {
                kind: BlockKind::Text(kind),
                text: format!("{}{delta}", kind.mark()),
                rows: Rows::default(),
            }),
        }
    }

    pub(super) fn start_call(&mut self, name: &str, kind: CallKind) {
        let name = if name.is_empty() { "?" } else { name };
        let text = format!("> {name} ");
        self.calls.push(self.blocks.len());
        self.blocks.push(Block {
            kind: BlockKind::Call(Box::new(Arguments {
                kind,
                heading_len: text.len(),
                raw: String::new(),
                indenter: StreamIndenter::new(kind),
            })),
            text,
            rows: Rows::default(),
        });
    }

    pub(super) fn push_arguments(&mut self, call_index: CallIndex, fragment: &str) {
        if let Some(block) = self.call_mut(call_index) {
            block.push_arguments(fragment);
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
        let legacy = self.blocks.iter().position(|block| block.is_legacy());
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
        self.blocks.get_mut(position)
    }

    /// Wraps the new text, and returns the number of rows at this width.
    pub(super) fn wrap(&mut self, width: usize) -> usize {
        for block in &mut self.blocks {
            block.rows.update(&block.text, width);
        }
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    /// Up to `count` rows from `first` on, at the last width.
    pub(super) fn rows(&self, first: usize, count: usize) -> Vec<Line<'_>> {
        let (mut block, mut row) = self.find(first);
        let mut lines = Vec::new();
        while let Some(found) = self.blocks.get(block) {
            if lines.len() == count {
                break;
            }
            match found.rows.get(row) {
                Some(wrapped) => {
                    lines.push(found.line(wrapped));
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
        let found = self.blocks.get(block).and_then(|found| found.rows.get(row));
        let byte = found.map_or(0, |row| row.start);
        TextPosition { block, byte }
    }

    /// The row that contains a position.
    pub(super) fn row_of(&self, position: TextPosition) -> usize {
        let before = self.blocks.iter().take(position.block);
        let before: usize = before.map(|block| block.rows.len()).sum();
        let block = self.blocks.get(position.block);
        before + block.map_or(0, |block| block.rows.row_of(position.byte))
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
        call.raw.push_str(fragment);
        let was_raw = call.indenter.is_raw();
        call.indenter.push(fragment, &mut self.text);
        // The arguments turned out not to be JSON: show them unchanged from the start.
        if call.indenter.is_raw() && !was_raw {
            self.text.truncate(call.heading_len);
            self.text.push_str(&call.raw);
            self.rows.reset();
        }
    }

    fn line<'r>(&self, row: &'r Row) -> Line<'r> {
        let style = match &self.kind {
            BlockKind::Text(TextKind::Content) => Style::new(),
            BlockKind::Text(TextKind::Reasoning) => Style::new().add_modifier(Modifier::DIM),
            BlockKind::Text(TextKind::Refusal) => Style::new().add_modifier(Modifier::BOLD),
            BlockKind::Call(call) if row.start < call.heading_len => {
                Style::new().add_modifier(Modifier::BOLD)
            }
            BlockKind::Call(_) => Style::new(),
        };
        Line::styled(row.text.as_str(), style)
    }
}
