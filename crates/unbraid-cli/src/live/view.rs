//! The content of the screen: a title, the strip, the panes, and a status line. It depends on neither the terminal nor the
//! clock.

mod footer;
mod layout;
mod picture;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use unbraid::{ChoiceIndex, Event, Sequenced};

pub(super) use self::picture::PictureSize;
use super::{
    event_log::EventLog,
    pane::{Pane, Scroll},
    rate::Rate,
    strip::Strip,
};
use crate::{input::Playback, labels::Labels, palette::Palette, printable::printable};

/// The visible state of a completion, and the state that keys have changed.
#[derive(Debug)]
pub(super) struct View {
    title: String,
    palette: Palette,
    labels: Labels,
    /// The clock of a replay, which keys control.
    playback: Option<Playback>,
    strip: Strip,
    /// Sorted by the index of the choice.
    panes: Vec<Pane>,
    /// The events of each pane, in the same order.
    logs: Vec<EventLog>,
    event_count: u64,
    selected: usize,
    /// Whether the selected pane fills the screen.
    zoomed: bool,
    /// Whether raw events are shown: beside the grid, and beside the selected pane while it is zoomed.
    events_in_grid: bool,
    events_in_zoom: bool,
    /// Whether a live stream is not shown further. A replay is stopped at its source.
    frozen: bool,
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
    pub(super) fn new(title: &str, has_keys: bool, palette: Palette) -> Self {
        Self {
            title: printable(title),
            palette,
            labels: Labels::default(),
            playback: None,
            strip: Strip::default(),
            panes: Vec::new(),
            logs: Vec::new(),
            event_count: 0,
            selected: 0,
            zoomed: false,
            events_in_grid: false,
            events_in_zoom: true,
            frozen: false,
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

    /// Lets keys control this replay.
    pub(super) fn with_playback(mut self, playback: Option<Playback>) -> Self {
        self.playback = playback;
        self
    }

    /// Shows these labels in the titles of the panes.
    pub(super) fn with_labels(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    pub(super) fn set_has_keys(&mut self, has_keys: bool) {
        if !has_keys {
            self.keys = KeyUse::Absent;
        }
    }

    pub(super) fn choice_count(&self) -> usize {
        self.panes.len()
    }

    /// Whether the stream or its display stands still.
    pub(super) fn is_paused(&self) -> bool {
        self.frozen || self.playback.as_ref().is_some_and(Playback::is_paused)
    }

    /// Whether events must not be applied until the user goes on.
    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Ends a pause of either kind: nobody can do it with a key any more.
    pub(super) fn resume(&mut self) {
        self.frozen = false;
        if let Some(playback) = &self.playback
            && playback.is_paused()
        {
            playback.toggle_pause();
        }
    }

    pub(super) fn unfreeze(&mut self) {
        self.frozen = false;
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
        self.strip.push(event, now);
        let position = self.position(index);
        self.event_count += 1;
        if let Some(log) = self.logs.get_mut(position) {
            log.push(self.event_count, event);
        }
        if let Some(pane) = self.panes.get_mut(position) {
            pane.apply(&event.event, now);
        }
    }

    /// Ends the stream, with the name of its end.
    pub(super) fn close(&mut self, end: &'static str, now: Duration) {
        self.tick(now);
        self.rate.stop(now);
        self.closed.get_or_insert(end);
    }

    /// Ends the stream at the time of its last event.
    pub(super) fn close_now(&mut self, end: &'static str) {
        self.close(end, self.now);
    }

    /// Returns the position of a choice, and inserts its pane if it is new. The selected choice stays selected.
    fn position(&mut self, index: ChoiceIndex) -> usize {
        let found = self.panes.binary_search_by_key(&index, |pane| pane.index);
        found.unwrap_or_else(|position| {
            // Before the first key no pane is marked, so the selection stays on the first pane.
            let moves = position <= self.selected && self.is_used();
            self.selected += usize::from(moves);
            let label = self.labels.text(index);
            self.panes.insert(position, Pane::new(index, label));
            self.logs.insert(position, EventLog::default());
            position
        })
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
            KeyCode::Char(' ') => return self.toggle_pause(),
            KeyCode::Char('+' | '=') => return self.multiply_speed(2.0),
            KeyCode::Char('-' | '_') => return self.multiply_speed(0.5),
            KeyCode::Up | KeyCode::Char('k') => self.scroll(Scroll::Up),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(Scroll::Down),
            KeyCode::PageUp => self.scroll(Scroll::PageUp),
            KeyCode::PageDown => self.scroll(Scroll::PageDown),
            KeyCode::Home => self.scroll(Scroll::Start),
            KeyCode::End => self.scroll(Scroll::End),
            KeyCode::Tab | KeyCode::Right => self.select(1),
            KeyCode::BackTab | KeyCode::Left => self.select(self.panes.len().saturating_sub(1)),
            KeyCode::Enter => self.zoomed = !self.zoomed,
            KeyCode::Esc => self.zoomed = false,
            KeyCode::Char('e') if self.zoomed => self.events_in_zoom = !self.events_in_zoom,
            KeyCode::Char('e') => self.events_in_grid = !self.events_in_grid,
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

    fn toggle_pause(&mut self) -> KeyAction {
        match &self.playback {
            _ if self.closed.is_some() => return KeyAction::Ignore,
            Some(playback) => playback.toggle_pause(),
            None => self.frozen = !self.frozen,
        }
        KeyAction::Redraw
    }

    /// Changes the speed of a replay. A live stream has its own.
    fn multiply_speed(&self, factor: f64) -> KeyAction {
        match &self.playback {
            Some(playback) if self.closed.is_none() => playback.multiply_speed(factor),
            _ => return KeyAction::Ignore,
        }
        KeyAction::Redraw
    }
}

#[cfg(test)]
mod tests;
