//! The pane of one choice: its title, and the part of its text that fits.

use std::time::Duration;

use anstyle::AnsiColor;
use ratatui::{
    Frame,
    layout::{Alignment, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Paragraph},
};
use unbraid::{ChoiceIndex, Event};

use super::{
    rate::Rate,
    text::{Blocks, TextKind, TextPosition},
};
use crate::{lines::color, printable::printable};

/// The visible state of one choice.
#[derive(Debug)]
pub(super) struct Pane {
    pub(super) index: ChoiceIndex,
    blocks: Blocks,
    state: State,
    /// The finish reason, in printable characters.
    reason: Option<String>,
    pub(super) rate: Rate,
    /// The position of the first visible row, or `None` to follow the end of the text.
    top: Option<TextPosition>,
    /// The number of rows, and the height of the pane, in the last frame.
    rows: usize,
    height: usize,
}

/// What a choice is producing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Reasoning,
    Writing,
    Refusing,
    Calling,
    /// The name of its end.
    Ended(&'static str),
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
    pub(super) fn new(index: ChoiceIndex) -> Self {
        Self {
            index,
            blocks: Blocks::default(),
            state: State::Waiting,
            reason: None,
            rate: Rate::default(),
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
                self.state = State::Calling;
                self.blocks.start_call(name, *kind);
                self.rate.count(now);
            }
            Event::ToolCallArguments { call_index, text } => {
                self.state = State::Calling;
                self.blocks.push_arguments(*call_index, text);
                self.rate.count(now);
            }
            Event::ToolCallDone { call_index, status } => {
                self.blocks.end_call(*call_index, *status)
            }
            Event::Finish(reason) => self.reason = Some(printable(reason)),
            Event::End(end) => {
                self.state = State::Ended(end.as_str());
                self.blocks.drop_repeated_function_call();
                self.rate.stop(now);
            }
            // Not visible in a pane, or part of the summary.
            _ => {}
        }
    }

    fn push_text(&mut self, kind: TextKind, text: &str, now: Duration) {
        self.state = match kind {
            TextKind::Content => State::Writing,
            TextKind::Reasoning => State::Reasoning,
            TextKind::Refusal => State::Refusing,
        };
        self.blocks.push(kind, text);
        self.rate.count(now);
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

    /// Draws the pane into an area. The border of the selected pane is bold.
    pub(super) fn draw(
        &mut self,
        frame: &mut Frame<'_>,
        area: Rect,
        selected: bool,
        now: Duration,
    ) {
        let style = Style::new().fg(ratatui_color(self.index));
        let style = if selected {
            style.add_modifier(Modifier::BOLD)
        } else {
            style
        };
        let border = Block::bordered().border_style(style);
        let inner = border.inner(area);
        self.height = inner.height.into();
        self.rows = self.blocks.wrap(inner.width.max(1).into());
        let first = self.first_row();
        let mut border = border.title(Line::styled(self.title(now), style));
        if self.rows > self.height {
            let last = (first + self.height).min(self.rows);
            let position = Line::from(Span::raw(format!(" {last}/{} ", self.rows)));
            border = border.title_bottom(position.alignment(Alignment::Right));
        }
        frame.render_widget(border, area);
        let rows = self.blocks.rows(first, self.height);
        frame.render_widget(Paragraph::new(rows), inner);
    }

    /// The index, the state, the finish reason, and the tokens per second.
    fn title(&self, now: Duration) -> String {
        let reason = self.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let rate = self.rate.per_second(now);
        let rate = rate.map_or_else(String::new, |rate| format!(" {rate:.0}/s"));
        format!(" [{}] {}{reason}{rate} ", self.index, self.state.name())
    }
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Reasoning => "reasoning",
            Self::Writing => "writing",
            Self::Refusing => "refusing",
            Self::Calling => "calling",
            Self::Ended(end) => end,
        }
    }
}

/// The colour of a choice, the same as in the lines.
fn ratatui_color(choice: ChoiceIndex) -> Color {
    match color(choice) {
        AnsiColor::Green => Color::Green,
        AnsiColor::Magenta => Color::Magenta,
        AnsiColor::Yellow => Color::Yellow,
        AnsiColor::Blue => Color::Blue,
        AnsiColor::Red => Color::Red,
        _ => Color::Cyan,
    }
}
