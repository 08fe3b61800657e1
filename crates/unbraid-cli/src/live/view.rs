//! The content of the screen: a title, the panes, and a status line. It depends on neither the terminal nor the clock.

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

/// The visible state of a completion, and the state that keys have changed.
#[derive(Debug)]
pub(super) struct View {
    title: String,
    /// Sorted by the index of the choice.
    panes: Vec<Pane>,
    selected: usize,
    /// Whether the selected pane fills the screen.
    zoomed: bool,
    /// The first visible row of the grid.
    first_row: usize,
    /// The number of visible panes in the last frame.
    visible: usize,
    rate: Rate,
    now: Duration,
    /// The name of the stream's end.
    closed: Option<&'static str>,
    keys: KeyUse,
}

/// Whether keys have been used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyUse {
    /// There is no keyboard.
    Absent,
    Unused,
    Used,
}

/// What the loop must do after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    Quit,
    Redraw,
    Ignore,
}

impl View {
    pub(super) fn new(title: &str, has_keys: bool) -> Self {
        Self {
            title: printable(title),
            panes: Vec::new(),
            selected: 0,
            zoomed: false,
            first_row: 0,
            visible: 0,
            rate: Rate::default(),
            now: Duration::ZERO,
            closed: None,
            keys: if has_keys {
                KeyUse::Unused
            } else {
                KeyUse::Absent
            },
        }
    }

    /// Whether the user has scrolled or selected a pane, and so may still be reading.
    pub(super) fn is_used(&self) -> bool {
        self.keys == KeyUse::Used
    }

    /// Sets the time since the start. It stops when the stream is over.
    pub(super) fn tick(&mut self, now: Duration) {
        if self.closed.is_none() {
            self.now = now;
        }
    }

    /// Applies the next event of a choice or of the stream, which arrived at `now`.
    pub(super) fn apply(&mut self, event: &Sequenced, now: Duration) {
        let Some(index) = event.choice else {
            return; // the summary reports usage and warnings
        };
        if let Event::Content(_)
        | Event::Reasoning(_)
        | Event::Refusal(_)
        | Event::ToolCallStart { .. }
        | Event::ToolCallArguments { .. } = event.event
        {
            self.rate.count(now);
        }
        self.pane(index).apply(&event.event, now);
    }

    /// Ends the stream, with the name of its end.
    pub(super) fn close(&mut self, end: &'static str, now: Duration) {
        self.tick(now);
        self.rate.stop(now);
        self.closed.get_or_insert(end);
    }

    /// Returns the pane of a choice, and inserts it if it is new. The selected choice stays selected.
    fn pane(&mut self, index: ChoiceIndex) -> &mut Pane {
        let found = self.panes.binary_search_by_key(&index, |pane| pane.index);
        let position = match found {
            Ok(position) => position,
            Err(position) => {
                // Before the first key no pane is marked, so the selection stays on the first pane.
                let moves = position <= self.selected && self.is_used();
                self.selected += usize::from(moves);
                self.panes.insert(position, Pane::new(index));
                position
            }
        };
        self.panes
            .get_mut(position)
            .expect("found or inserted above")
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Ignore;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return KeyAction::Quit,
            KeyCode::Char('q') => return KeyAction::Quit,
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
            _ => return KeyAction::Ignore,
        }
        self.keys = KeyUse::Used;
        KeyAction::Redraw
    }

    fn select(&mut self, step: usize) {
        // The first key only shows which pane is selected.
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
            self.first_row = grid.scroll_to(self.first_row, self.selected);
            grid.cells(self.first_row)
        };
        self.visible = cells.len();
        for (position, cell) in cells {
            let selected = position == self.selected && self.is_used();
            if let Some(pane) = self.panes.get_mut(position) {
                pane.draw(frame, cell, selected, self.now);
            }
        }
    }

    fn draw_status(&self, frame: &mut Frame<'_>, area: Rect) {
        let style = Style::new().add_modifier(Modifier::REVERSED);
        frame.buffer_mut().set_style(area, style);
        let help = Line::raw(self.help()).right_aligned();
        let status = Line::raw(self.status());
        // If there is no room for both, the status is more important.
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
            Some(end) => format!(" {all} choice{s}, stream {end}"),
        };
        let visible = match self.visible {
            visible if visible < all => format!("  {visible} shown"),
            _ => String::new(),
        };
        let rate = self.rate.per_second(self.now);
        let rate = rate.map_or_else(String::new, |rate| format!("  {rate:.0} tokens/s"));
        format!("{choices}{visible}{rate}  {:.1} s", self.now.as_secs_f64())
    }

    fn help(&self) -> &'static str {
        match self.keys {
            KeyUse::Absent => "",
            KeyUse::Unused | KeyUse::Used => {
                "tab choice  \u{2191}\u{2193} scroll  enter zoom  q quit "
            }
        }
    }
}

#[cfg(test)]
mod tests;
