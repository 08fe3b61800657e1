//! What one choice has said, block by block: text, reasoning, refusals and calls, in the order in which they began.

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use unbraid::{CallIndex, CallKind, CallStatus};

use super::wrap::{Row, Rows};
use crate::indent::Indenter;

/// The blocks of a choice.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// The block of each call, by its ordinal.
    calls: Vec<usize>,
}

/// A place in the blocks that stays the same when the width changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    block: usize,
    byte: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Content,
    Reasoning,
    Refusal,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    text: String,
    rows: Rows,
}

#[derive(Debug)]
enum Kind {
    Text(Voice),
    Call(Box<Arguments>),
}

#[derive(Debug)]
struct Arguments {
    kind: CallKind,
    /// The block's text begins with so many bytes of mark and name.
    heading: usize,
    raw: String,
    indenter: Indenter,
}

impl Blocks {
    /// Adds to a text; another voice, or text behind a call, begins a block.
    pub(super) fn push(&mut self, voice: Voice, piece: &str) {
        match self.blocks.last_mut() {
            Some(block) if block.speaks(voice) => block.text.push_str(piece),
            _ => self.blocks.push(Block {
                kind: Kind::Text(voice),
                text: format!("{}{piece}", voice.mark()),
                rows: Rows::default(),
            }),
        }
    }

    pub(super) fn start_call(&mut self, name: &str, kind: CallKind) {
        let name = if name.is_empty() { "?" } else { name };
        let text = format!("> {name} ");
        self.calls.push(self.blocks.len());
        self.blocks.push(Block {
            kind: Kind::Call(Box::new(Arguments {
                kind,
                heading: text.len(),
                raw: String::new(),
                indenter: Indenter::new(kind),
            })),
            text,
            rows: Rows::default(),
        });
    }

    pub(super) fn push_arguments(&mut self, call: CallIndex, fragment: &str) {
        if let Some(block) = self.call_mut(call) {
            block.push_arguments(fragment);
        }
    }

    /// The choice has ended: the status is shown where it is worth a word.
    pub(super) fn end_call(&mut self, call: CallIndex, status: CallStatus) {
        let fine = matches!(status, CallStatus::Complete | CallStatus::EmptyAsObject);
        if let Some(block) = self.call_mut(call).filter(|_| !fine) {
            let gap = if block.text.ends_with(' ') { "" } else { " " };
            block.text.extend([gap, "(", status.as_str(), ")"]);
        }
    }

    /// Takes a function call back that was told a second time, in the form of 2023 (T37).
    pub(super) fn drop_repeated_function_call(&mut self) {
        let old = self.blocks.iter().position(|block| block.is_legacy());
        let Some(at) = old else { return };
        let text = self.blocks.get(at).map(|block| block.text.clone());
        let same = |block: &Block| {
            matches!(block.kind, Kind::Call(_))
                && !block.is_legacy()
                && Some(&block.text) == text.as_ref()
        };
        if self.blocks.iter().any(same) {
            self.blocks.remove(at);
            self.calls.clear(); // nothing comes for a call any more
        }
    }

    fn call_mut(&mut self, call: CallIndex) -> Option<&mut Block> {
        let at = *self.calls.get(call.0 as usize)?;
        self.blocks.get_mut(at)
    }

    /// Wraps what is new; how many rows there are at this width.
    pub(super) fn wrap(&mut self, width: usize) -> usize {
        for block in &mut self.blocks {
            block.rows.update(&block.text, width);
        }
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    /// Some rows, as they were wrapped last.
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

    /// The place where a row begins.
    pub(super) fn place(&self, row: usize) -> Place {
        let (block, row) = self.find(row);
        let found = self.blocks.get(block).and_then(|found| found.rows.get(row));
        let byte = found.map_or(0, |row| row.start);
        Place { block, byte }
    }

    /// The row in which a place stands.
    pub(super) fn row_of(&self, place: Place) -> usize {
        let before = self.blocks.iter().take(place.block);
        let before: usize = before.map(|block| block.rows.len()).sum();
        let block = self.blocks.get(place.block);
        before + block.map_or(0, |block| block.rows.row_of(place.byte))
    }

    /// The block of a row, and the row within it.
    fn find(&self, row: usize) -> (usize, usize) {
        let mut rest = row;
        for (at, block) in self.blocks.iter().enumerate() {
            if rest < block.rows.len() {
                return (at, rest);
            }
            rest -= block.rows.len();
        }
        (self.blocks.len(), 0)
    }
}

impl Voice {
    /// As in the lines of a plain output.
    fn mark(self) -> &'static str {
        match self {
            Self::Content => "",
            Self::Reasoning => "~ ",
            Self::Refusal => "! ",
        }
    }
}

impl Block {
    fn speaks(&self, wanted: Voice) -> bool {
        matches!(&self.kind, Kind::Text(voice) if *voice == wanted)
    }

    fn is_legacy(&self) -> bool {
        matches!(&self.kind, Kind::Call(call) if call.kind == CallKind::LegacyFunction)
    }

    fn push_arguments(&mut self, fragment: &str) {
        let Kind::Call(call) = &mut self.kind else {
            return;
        };
        call.raw.push_str(fragment);
        let was_raw = call.indenter.is_raw();
        call.indenter.push(fragment, &mut self.text);
        if call.indenter.is_raw() && !was_raw {
            self.text.truncate(call.heading);
            self.text.push_str(&call.raw);
            self.rows.forget();
        }
    }

    fn line<'r>(&self, row: &'r Row) -> Line<'r> {
        let style = match &self.kind {
            Kind::Text(Voice::Content) => Style::new(),
            Kind::Text(Voice::Reasoning) => Style::new().add_modifier(Modifier::DIM),
            Kind::Text(Voice::Refusal) => Style::new().add_modifier(Modifier::BOLD),
            Kind::Call(call) if row.start < call.heading => {
                Style::new().add_modifier(Modifier::BOLD)
            }
            Kind::Call(_) => Style::new(),
        };
        Line::styled(row.text.as_str(), style)
    }
}
