//! The pane of one choice: its title, and the part of its text that fits.

mod title;

use std::time::Duration;

use ratatui::{
    buffer::Buffer,
    layout::{Alignment, Rect},
    style::Modifier,
    text::Line,
    widgets::{Block, Borders, Paragraph, Widget},
};
use unbraid::{ChoiceEnd, ChoiceIndex, Event};

use super::{
    rate::Rate,
    strip::NEW,
    style::{self, DIM},
    text::{Blocks, TextKind, TextPosition},
};
use crate::palette::Palette;

/// The visible state of one choice.
#[derive(Debug)]
pub(super) struct Pane {
    pub(super) index: ChoiceIndex,
    /// What it is called beside its index.
    label: Option<String>,
    blocks: Blocks,
    state: State,
    pub(super) rate: Rate,
    /// When the last delta arrived.
    last_delta: Option<Duration>,
    /// The position of the first visible row, or `None` to follow the end of the text.
    top: Option<TextPosition>,
    /// The number of rows, and the height of the pane, in the last frame.
    rows: usize,
    height: usize,
}

/// What a choice is producing.
#[derive(Debug, Clone, PartialEq)]
enum State {
    Waiting,
    Reasoning,
    Writing,
    Refusing,
    Calling,
    Ended(ChoiceEnd),
}

/// How a pane is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaneStyle {
    pub(super) palette: Palette,
    pub(super) now: Duration,
    /// The selected pane has a bold border.
    pub(super) is_selected: bool,
    /// The only pane has no sides, so that its text can be copied.
    pub(super) is_only: bool,
}

/// How far to scroll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scroll {
    Up,
    Down,
    PageUp,
    PageDown,
    Start,
    /// To the end, which is then followed.
    End,
}

impl Pane {
    pub(super) fn new(index: ChoiceIndex, label: Option<String>) -> Self {
        Self {
            index,
            label,
            blocks: Blocks::default(),
            state: State::Waiting,
            rate: Rate::default(),
            last_delta: None,
            top: None,
            rows: 0,
            height: 0,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }

    /// Applies the next event of the choice, which arrived at `now`.
    pub(super) fn apply(&mut self, event: &Event, now: Duration) {
        match event {
            Event::Content(text) => self.push_text(TextKind::Content, text, now),
            Event::Reasoning(text) => self.push_text(TextKind::Reasoning, text, now),
            Event::Refusal(text) => self.push_text(TextKind::Refusal, text, now),
            Event::ToolCallStart { name, kind, .. } => {
                self.blocks.start_call(name, *kind);
                self.count(State::Calling, now);
            }
            Event::ToolCallArguments { call_index, text } => {
                self.blocks.push_arguments(*call_index, text);
                self.count(State::Calling, now);
            }
            Event::ToolCallDone { call_index, status } => {
                self.blocks.end_call(*call_index, *status)
            }
            Event::End(end) => {
                self.state = State::Ended(end.clone());
                self.blocks.drop_repeated_function_call();
                self.rate.stop(now);
            }
            // Not visible in a pane, or part of the summary.
            _ => {}
        }
    }

    fn push_text(&mut self, kind: TextKind, text: &str, now: Duration) {
        self.blocks.push(kind, text);
        let state = match kind {
            TextKind::Content => State::Writing,
            TextKind::Reasoning => State::Reasoning,
            TextKind::Refusal => State::Refusing,
        };
        self.count(state, now);
    }

    fn count(&mut self, state: State, now: Duration) {
        self.state = state;
        self.last_delta = Some(now);
        self.rate.count(now);
    }

    /// Whether a delta has just arrived.
    pub(super) fn is_active(&self, now: Duration) -> bool {
        self.last_delta
            .is_some_and(|last| now.saturating_sub(last) < NEW)
    }

    /// How many rows the whole text takes in a pane of this width, its border included.
    pub(super) fn full_height(&mut self, width: u16, is_only: bool) -> usize {
        let inner = borders(is_only).inner(Rect::new(0, 0, width, 3));
        self.blocks.wrap(inner.width.max(1).into()).max(1) + 2
    }

    pub(super) fn scroll(&mut self, scroll: Scroll) {
        let last = self.rows.saturating_sub(self.height);
        let top = self.first_row();
        let page = self.height.saturating_sub(1).max(1);
        let row = match scroll {
            Scroll::Up => top.saturating_sub(1),
            Scroll::Down => top + 1,
            Scroll::PageUp => top.saturating_sub(page),
            Scroll::PageDown => top + page,
            Scroll::Start => 0,
            Scroll::End => last,
        };
        // Scrolling to the end follows the text again. If all of it fits, there is no other position than the end.
        let follows_end = row >= last && (scroll != Scroll::Start || last == 0);
        self.top = (!follows_end).then(|| self.blocks.position(row));
    }

    fn first_row(&self) -> usize {
        let last = self.rows.saturating_sub(self.height);
        self.top
            .map_or(last, |position| self.blocks.row_of(position).min(last))
    }

    /// Draws the pane into an area.
    pub(super) fn draw(&mut self, buffer: &mut Buffer, area: Rect, pane_style: PaneStyle) {
        let color = style::choice(pane_style.palette, self.index);
        let border_style = if pane_style.is_selected {
            color.add_modifier(Modifier::BOLD)
        } else {
            color
        };
        let border = borders(pane_style.is_only).border_style(border_style);
        let inner = border.inner(area);
        self.height = inner.height.into();
        self.rows = self.blocks.wrap(inner.width.max(1).into());
        let first = self.first_row();
        let width = inner.width.into();
        let mut border = border.title(self.title(width, pane_style));
        if self.rows > self.height && self.height > 0 {
            let last = (first + self.height).min(self.rows);
            let position = format!(" row {last} of {} ", self.rows);
            if position.len() <= width {
                border = border.title_bottom(Line::raw(position).alignment(Alignment::Right));
            }
        }
        if self.blocks.is_cut && width > 50 {
            border = border.title_bottom(Line::styled(" older text is not kept ", DIM));
        }
        border.render(area, buffer);
        let rows = self.blocks.rows(first, self.height, color);
        Paragraph::new(rows).render(inner, buffer);
    }
}

fn borders(is_only: bool) -> Block<'static> {
    Block::new().borders(if is_only {
        Borders::TOP | Borders::BOTTOM
    } else {
        Borders::ALL
    })
}
