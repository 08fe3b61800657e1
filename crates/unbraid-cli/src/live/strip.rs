//! The strip above the panes: the deltas of all choices in the order in which they arrived.

use std::{collections::VecDeque, time::Duration};

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Widget,
};
use unbraid::{ChoiceIndex, Event, Position, Sequenced};
use unicode_width::UnicodeWidthStr;

use super::{fit::shorten, style};
use crate::{outcome::Notice, palette::Palette, printable::printable};

/// How many of the first and of the last deltas are kept. They fill several rows of any terminal.
const HEAD: usize = 256;
const TAIL: usize = 1024;

/// The longest text of one delta. A server may send its whole answer as one.
const MAX_WIDTH: usize = 40;

/// How long a delta counts as new.
pub(super) const NEW: Duration = Duration::from_millis(250);

/// How late an event may be applied after a later one of another choice.
const RACE: Duration = Duration::from_millis(20);

/// The first and the last deltas of a stream.
#[derive(Debug, Default)]
pub(super) struct Strip {
    head: Vec<Delta>,
    tail: VecDeque<Delta>,
    /// The number of deltas that arrived.
    count: usize,
    /// Whether `tail` no longer has all deltas.
    dropped: bool,
    /// The width at which `tail` begins with a row.
    width: usize,
}

#[derive(Debug, Clone)]
struct Delta {
    position: Position,
    choice: ChoiceIndex,
    text: String,
    kind: Kind,
    arrived: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Content,
    Reasoning,
    Refusal,
    Call,
    End(Notice),
}

impl Strip {
    /// Adds the delta of an event, if it has one. Ends are shown too, but do not count as deltas.
    pub(super) fn push(&mut self, event: &Sequenced, arrived: Duration) {
        let Some(choice) = event.choice else { return };
        let (kind, text) = match &event.event {
            Event::Content(text) => (Kind::Content, visible(text)),
            Event::Reasoning(text) => (Kind::Reasoning, visible(text)),
            Event::Refusal(text) => (Kind::Refusal, visible(text)),
            Event::ToolCallStart { name, .. } => (Kind::Call, format!("> {}", visible(name))),
            Event::ToolCallArguments { text, .. } => (Kind::Call, visible(text)),
            Event::End(end) => {
                let text = format!("{} {}", Notice::mark(end), visible(Notice::name(end)));
                (Kind::End(Notice::of(end)), text)
            }
            _ => return,
        };
        let delta = Delta {
            position: event.position,
            choice,
            text: shorten(&text, MAX_WIDTH),
            kind,
            arrived,
        };
        if !matches!(kind, Kind::End(_)) {
            self.count += 1;
        }
        // The logs of the choices are read one after the other, so an event may come shortly after a later one of another choice.
        // Only just now: the positions of two sources, as in a fan-out, cannot be compared.
        let is_later = |other: &&Delta| {
            other.position > delta.position && arrived.saturating_sub(other.arrived) < RACE
        };
        if self.head.len() < HEAD {
            let later = self.head.iter().rev().take_while(is_later).count();
            self.head.insert(self.head.len() - later, delta.clone());
        }
        let later = self.tail.iter().rev().take_while(is_later).count();
        self.tail.insert(self.tail.len() - later, delta);
        if self.tail.len() > TAIL {
            self.drop_rows();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Drops whole rows, so that those after them stay as they are.
    fn drop_rows(&mut self) {
        let rows = rows(self.tail.iter(), self.width.max(1));
        let mut dropped = 0;
        for row in rows {
            if self.tail.len() - dropped <= TAIL / 2 {
                break;
            }
            dropped += row.len();
        }
        self.tail.drain(..dropped);
        self.dropped = true;
    }

    /// Draws the newest deltas, in as many rows as fit.
    pub(super) fn draw(
        &mut self,
        buffer: &mut Buffer,
        area: Rect,
        now: Duration,
        palette: Palette,
    ) {
        self.width = area.width.into();
        let rows = rows(self.tail.iter(), self.width);
        let first = rows.len().saturating_sub(area.height.into());
        for (row, y) in rows.into_iter().skip(first).zip(area.y..) {
            let line = line(&row, self.width, now, palette);
            line.render(Rect::new(area.x, y, area.width, 1), buffer);
        }
    }

    /// The rows of a still: all deltas if they fit, else the first and the last ones, and how many are between them.
    pub(super) fn still(
        &self,
        width: usize,
        height: usize,
        palette: Palette,
    ) -> Vec<Line<'static>> {
        let styled = |row: &Row<'_>| line(row, width, Duration::MAX, palette);
        let last = rows(self.tail.iter(), width);
        if !self.dropped && last.len() <= height {
            return last.iter().map(styled).collect();
        }
        let first = rows(self.head.iter(), width);
        let shown_first = height.saturating_sub(2).clamp(1, first.len().max(1));
        let shown_last = height.saturating_sub(shown_first + 1).min(last.len());
        let first = first.get(..shown_first).unwrap_or_default();
        let last = last.get(last.len() - shown_last..).unwrap_or_default();
        let deltas = |rows: &[Row<'_>]| {
            let all = rows.iter().flatten();
            all.filter(|delta| !matches!(delta.kind, Kind::End(_)))
                .count()
        };
        let between = self.count.saturating_sub(deltas(first) + deltas(last));
        let gap = Line::styled(
            format!("\u{22ef} {between} more deltas \u{22ef}"),
            style::DIM,
        );
        let mut lines: Vec<Line<'static>> = first.iter().map(styled).collect();
        lines.push(gap);
        lines.extend(last.iter().map(styled));
        lines
    }
}

type Row<'d> = Vec<&'d Delta>;

/// Fills rows from the left. A row that is full never changes, so that it can be read while new ones arrive.
fn rows<'d>(deltas: impl Iterator<Item = &'d Delta>, width: usize) -> Vec<Row<'d>> {
    let mut rows: Vec<Row<'d>> = Vec::new();
    let mut used = 0;
    for delta in deltas {
        let columns = delta.columns();
        match rows.last_mut() {
            Some(row) if used + 1 + columns <= width => {
                row.push(delta);
                used += 1 + columns;
            }
            _ => {
                rows.push(vec![delta]);
                used = columns;
            }
        }
    }
    rows
}

impl Delta {
    fn badge(&self) -> String {
        format!("[{}]", self.choice)
    }

    fn columns(&self) -> usize {
        self.badge().width() + self.text.width()
    }
}

fn line(row: &[&Delta], width: usize, now: Duration, palette: Palette) -> Line<'static> {
    let mut spans = Vec::new();
    for delta in row {
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        let color = style::choice(palette, delta.choice);
        let is_new = now.saturating_sub(delta.arrived) < NEW;
        let text_style = match delta.kind {
            Kind::Content => color,
            Kind::Reasoning => color.add_modifier(Modifier::ITALIC),
            Kind::Refusal => color.add_modifier(Modifier::BOLD),
            Kind::Call => color.add_modifier(Modifier::UNDERLINED),
            Kind::End(notice) => style::notice(palette, notice, color.add_modifier(Modifier::BOLD)),
        };
        let new = if is_new { style::BOLD } else { Style::new() };
        let badge = delta.badge();
        let room = width.saturating_sub(badge.width());
        spans.push(Span::styled(badge, color.add_modifier(Modifier::BOLD)));
        spans.push(Span::styled(
            shorten(&delta.text, room),
            text_style.patch(new),
        ));
    }
    Line::from(spans)
}

/// The text of a delta on one line: its line ends are visible, and its control characters escaped.
fn visible(text: &str) -> String {
    const MAX_CHARS: usize = 200; // far more than are shown
    let mut out = String::new();
    for c in text.chars().take(MAX_CHARS) {
        match c {
            '\n' => out.push('\u{21b5}'),
            '\t' => out.push('\u{21e5}'),
            '\r' => {}
            c => out.push_str(&printable(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use unbraid::EventIndex;

    use super::*;

    /// The delta of one choice in an event of the stream.
    fn content(event: usize, choice: u32, text: &str) -> Sequenced {
        let position = Position::new(EventIndex(event as u64), 0);
        let event = Event::Content(text.into());
        Sequenced::new(Some(ChoiceIndex(choice)), 0, position, event)
    }

    #[test]
    fn deltas_are_in_the_order_of_the_stream() {
        let mut strip = Strip::default();
        for (event, choice) in [(0, 0), (2, 1), (3, 1), (1, 0), (4, 0)] {
            let delta = content(event, choice, &format!(" t{event}"));
            strip.push(&delta, Duration::ZERO);
        }
        let rows = text(&strip.still(60, 2, Palette::None));
        assert_eq!(rows, ["[0] t0 [0] t1 [1] t2 [1] t3 [0] t4"]);
    }

    fn strip(deltas: usize) -> Strip {
        let mut strip = Strip {
            width: 30,
            ..Strip::default()
        };
        for k in 0..deltas {
            let text = format!(" t{k}");
            strip.push(&content(k, k as u32 % 3, &text), Duration::ZERO);
        }
        strip
    }

    fn text(lines: &[Line<'_>]) -> Vec<String> {
        let text = |line: &Line<'_>| {
            line.spans
                .iter()
                .map(|span| span.content.as_ref())
                .collect()
        };
        lines.iter().map(text).collect()
    }

    #[test]
    fn a_still_shows_all_deltas_or_the_first_and_the_last() {
        let rows = text(&strip(5).still(30, 3, Palette::None));
        assert_eq!(rows, ["[0] t0 [1] t1 [2] t2 [0] t3", "[1] t4"]);
        let rows = text(&strip(5000).still(30, 3, Palette::None));
        assert_eq!(rows[0], "[0] t0 [1] t1 [2] t2 [0] t3");
        assert!(rows[1].ends_with(" more deltas \u{22ef}"), "{rows:?}");
        assert!(rows[2].ends_with("[1] t4999"), "{rows:?}");
    }

    #[test]
    fn the_memory_of_an_endless_stream_is_bounded() {
        let strip = strip(100_000);
        assert_eq!(strip.count(), 100_000);
        assert!(strip.head.len() <= HEAD && strip.tail.len() <= TAIL);
    }

    #[test]
    fn one_delta_stays_on_one_line() {
        assert_eq!(
            visible("a\r\n\tb\u{1b}[2J\u{9b}"),
            "a\u{21b5}\u{21e5}b\\u{1b}[2J\\u{9b}"
        );
        let mut strip = Strip::default();
        let event = content(0, 0, &"x".repeat(1 << 20));
        strip.push(&event, Duration::ZERO);
        assert_eq!(strip.tail[0].text.width(), MAX_WIDTH);
        assert!(text(&strip.still(12, 1, Palette::None))[0].width() <= 12);
    }
}
