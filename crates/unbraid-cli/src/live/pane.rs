//! One choice as it is seen: its title, and as much of its text as fits.

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
    text::{Blocks, Place, Voice},
};
use crate::{printable::printable, watch::color};

/// What is seen of one choice.
#[derive(Debug)]
pub(super) struct Pane {
    pub(super) index: ChoiceIndex,
    blocks: Blocks,
    state: State,
    /// The finish reason, made harmless.
    reason: Option<String>,
    pub(super) rate: Rate,
    /// The place of the first row; `None` follows the end.
    top: Option<Place>,
    /// Rows, and how many of them were seen, when it was drawn last.
    rows: usize,
    height: usize,
}

/// What a choice is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Reasoning,
    Writing,
    Refusing,
    Calling,
    /// By its end's name.
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
    /// To the end, and on with it.
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

    /// Takes the next event of the choice, which was seen at this time.
    pub(super) fn apply(&mut self, event: &Event, at: Duration) {
        match event {
            Event::Content(text) => self.say(Voice::Content, text, at),
            Event::Reasoning(text) => self.say(Voice::Reasoning, text, at),
            Event::Refusal(text) => self.say(Voice::Refusal, text, at),
            Event::ToolCallStart { name, kind, .. } => {
                self.state = State::Calling;
                self.blocks.start_call(name, *kind);
                self.rate.count(at);
            }
            Event::ToolCallArguments {
                call_index: call,
                text,
            } => {
                self.state = State::Calling;
                self.blocks.push_arguments(*call, text);
                self.rate.count(at);
            }
            Event::ToolCallDone {
                call_index: call,
                status,
            } => self.blocks.end_call(*call, *status),
            Event::Finish(reason) => self.reason = Some(printable(reason)),
            Event::End(end) => {
                self.state = State::Ended(end.as_str());
                self.blocks.drop_repeated_function_call();
                self.rate.stop(at);
            }
            // Nothing to be seen here, or told in the summary.
            _ => {}
        }
    }

    fn say(&mut self, voice: Voice, text: &str, at: Duration) {
        self.state = match voice {
            Voice::Content => State::Writing,
            Voice::Reasoning => State::Reasoning,
            Voice::Refusal => State::Refusing,
        };
        self.blocks.push(voice, text);
        self.rate.count(at);
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
        // Whoever has scrolled to the end wants to see what comes; whoever has nothing to scroll does too.
        let follows = row >= last && (scroll != Scroll::Start || last == 0);
        self.top = (!follows).then(|| self.blocks.place(row));
    }

    fn first_row(&self) -> usize {
        let last = self.rows.saturating_sub(self.height);
        self.top
            .map_or(last, |place| self.blocks.row_of(place).min(last))
    }

    /// Draws it into a cell; `selected` says whether the keys are for it.
    pub(super) fn draw(
        &mut self,
        frame: &mut Frame<'_>,
        cell: Rect,
        selected: bool,
        now: Duration,
    ) {
        let frame_style = Style::new().fg(hue(self.index));
        let frame_style = if selected {
            frame_style.add_modifier(Modifier::BOLD)
        } else {
            frame_style
        };
        let border = Block::bordered().border_style(frame_style);
        let inner = border.inner(cell);
        self.height = inner.height.into();
        self.rows = self.blocks.wrap(inner.width.max(1).into());
        let first = self.first_row();
        let mut border = border.title(Line::styled(self.title(now), frame_style));
        if self.rows > self.height {
            let last = (first + self.height).min(self.rows);
            let place = Line::from(Span::raw(format!(" {last}/{} ", self.rows)));
            border = border.title_bottom(place.alignment(Alignment::Right));
        }
        frame.render_widget(border, cell);
        let rows = self.blocks.rows(first, self.height);
        frame.render_widget(Paragraph::new(rows), inner);
    }

    /// Its index, what it does or how it ended, its finish reason, and its tokens a second.
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

/// The colour of a choice, as in the lines of a plain output.
fn hue(choice: ChoiceIndex) -> Color {
    match color(choice) {
        AnsiColor::Green => Color::Green,
        AnsiColor::Magenta => Color::Magenta,
        AnsiColor::Yellow => Color::Yellow,
        AnsiColor::Blue => Color::Blue,
        AnsiColor::Red => Color::Red,
        _ => Color::Cyan,
    }
}
