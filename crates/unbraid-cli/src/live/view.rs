//! The whole picture: a title, the choices, and a status line. It knows neither the terminal nor the clock.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
};
use unbraid::{ChoiceIndex, Event, Sequenced};

use super::{
    grid::Grid,
    pane::{Pane, Scroll},
    rate::Rate,
};
use crate::printable::printable;

/// What is seen of a completion, and what was asked for by keys.
#[derive(Debug)]
pub(super) struct View {
    title: String,
    /// By index.
    panes: Vec<Pane>,
    selected: usize,
    /// The selected choice has all the room.
    zoomed: bool,
    /// The first row of the grid that is shown.
    first: usize,
    /// Choices that were shown when it was drawn last.
    shown: usize,
    rate: Rate,
    now: Duration,
    /// How the stream closed.
    closed: Option<&'static str>,
    keys: Keys,
}

/// What keys have done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// There are none.
    Absent,
    Untouched,
    Used,
}

/// What a key means to whoever shows the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressed {
    Quit,
    Seen,
    Unknown,
}

impl View {
    pub(super) fn new(title: &str, keys: bool) -> Self {
        Self {
            title: printable(title),
            panes: Vec::new(),
            selected: 0,
            zoomed: false,
            first: 0,
            shown: 0,
            rate: Rate::default(),
            now: Duration::ZERO,
            closed: None,
            keys: if keys { Keys::Untouched } else { Keys::Absent },
        }
    }

    /// Whether somebody scrolled or chose, and so may be reading.
    pub(super) fn is_used(&self) -> bool {
        self.keys == Keys::Used
    }

    /// So much time has passed.
    pub(super) fn tick(&mut self, now: Duration) {
        if self.closed.is_none() {
            self.now = now;
        }
    }

    /// Takes the next event of a choice or of the stream, which was seen at this time.
    pub(super) fn apply(&mut self, stamped: &Sequenced, at: Duration) {
        let Some(index) = stamped.choice else {
            return; // usage and warnings are told in the summary
        };
        if let Event::Content(_)
        | Event::Reasoning(_)
        | Event::Refusal(_)
        | Event::ToolCallStart { .. }
        | Event::ToolCallArguments { .. } = stamped.event
        {
            self.rate.count(at);
        }
        self.pane(index).apply(&stamped.event, at);
    }

    /// The stream is over; it closed like this.
    pub(super) fn close(&mut self, how: &'static str, at: Duration) {
        self.tick(at);
        self.rate.stop(at);
        self.closed.get_or_insert(how);
    }

    /// The choice with this index, in its place among the others; the selected choice stays selected.
    fn pane(&mut self, index: ChoiceIndex) -> &mut Pane {
        let at = match self.panes.binary_search_by_key(&index, |pane| pane.index) {
            Ok(at) => at,
            Err(at) => {
                let moves = at <= self.selected && self.is_used();
                self.selected += usize::from(moves);
                self.panes.insert(at, Pane::new(index));
                at
            }
        };
        self.panes.get_mut(at).expect("found or inserted above")
    }

    /// Does what a key asks for.
    pub(super) fn press(&mut self, key: KeyEvent) -> Pressed {
        if key.kind == KeyEventKind::Release {
            return Pressed::Unknown;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Pressed::Quit,
            KeyCode::Char('q') => return Pressed::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.scroll(Scroll::Up),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(Scroll::Down),
            KeyCode::PageUp => self.scroll(Scroll::PageUp),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(Scroll::PageDown),
            KeyCode::Home => self.scroll(Scroll::Start),
            KeyCode::End => self.scroll(Scroll::End),
            KeyCode::Tab | KeyCode::Right => self.select(1),
            KeyCode::BackTab | KeyCode::Left => self.select(self.panes.len().saturating_sub(1)),
            KeyCode::Enter => self.zoomed = !self.zoomed,
            KeyCode::Esc => self.zoomed = false,
            _ => return Pressed::Unknown,
        }
        self.keys = Keys::Used;
        Pressed::Seen
    }

    fn select(&mut self, step: usize) {
        // The first key shows which choice is selected.
        if self.is_used() && !self.panes.is_empty() {
            self.selected = (self.selected + step) % self.panes.len();
        }
    }

    fn scroll(&mut self, scroll: Scroll) {
        if let Some(pane) = self.panes.get_mut(self.selected) {
            pane.scroll(scroll);
        }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let title = u16::from(!self.title.is_empty());
        let parts = [
            Constraint::Length(title),
            Constraint::Min(0),
            Constraint::Length(1),
        ];
        let [top, middle, bottom] = Layout::vertical(parts).areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(Line::styled(self.title.as_str(), bold), top);
        self.draw_choices(frame, middle);
        self.draw_status(frame, bottom);
    }

    fn draw_choices(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let cells = if self.zoomed && !self.panes.is_empty() {
            vec![(self.selected, area)]
        } else {
            let grid = Grid::new(area, self.panes.len());
            self.first = grid.scrolled(self.first, self.selected);
            grid.cells(self.first)
        };
        self.shown = cells.len();
        for (at, cell) in cells {
            let selected = at == self.selected && self.is_used();
            if let Some(pane) = self.panes.get_mut(at) {
                pane.draw(frame, cell, selected, self.now);
            }
        }
    }

    fn draw_status(&self, frame: &mut Frame<'_>, area: Rect) {
        let style = Style::new().add_modifier(Modifier::REVERSED);
        frame.buffer_mut().set_style(area, style);
        let help = Line::raw(self.help()).right_aligned();
        let status = Line::raw(self.status());
        // The help is what can be done without.
        if status.width() + help.width() < area.width.into() {
            frame.render_widget(help, area);
        }
        frame.render_widget(status, area);
    }

    fn status(&self) -> String {
        let all = self.panes.len();
        let open = self.panes.iter().filter(|pane| pane.is_open()).count();
        let s = if all == 1 { "" } else { "s" };
        let choices = match self.closed {
            None => format!(" {open} of {all} choice{s} open"),
            Some(how) => format!(" {all} choice{s}, stream {how}"),
        };
        let shown = match self.shown {
            shown if shown < all => format!("  {shown} shown"),
            _ => String::new(),
        };
        let rate = self.rate.per_second(self.now);
        let rate = rate.map_or_else(String::new, |rate| format!("  {rate:.0} tokens/s"));
        format!("{choices}{shown}{rate}  {:.1} s", self.now.as_secs_f64())
    }

    fn help(&self) -> &'static str {
        match self.keys {
            Keys::Absent => "",
            Keys::Untouched | Keys::Used => {
                "tab choice  \u{2191}\u{2193} scroll  enter zoom  q quit "
            }
        }
    }
}

#[cfg(test)]
mod tests;
