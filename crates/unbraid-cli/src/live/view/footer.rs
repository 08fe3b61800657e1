//! The last rows of the screen: the numbers, and the keys.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::Line,
    widgets::Widget,
};
use unicode_width::UnicodeWidthStr;

use super::{
    super::{
        fit::{Part, fit},
        style::BOLD,
    },
    KeyUse, View,
    layout::plural,
};

const NORMAL: Style = Style::new();

/// The least height at which the keys have a row of their own.
const MIN_HEIGHT: u16 = 10;

/// The gap between two parts.
const GAP: &str = "  ";

impl View {
    /// How many rows the numbers and the keys take.
    pub(super) fn footer_height(&self, area: Rect) -> u16 {
        let status = fit(self.status(), GAP, usize::MAX).width();
        let keys = fit(self.hints(), GAP, usize::MAX).width();
        let fits = status + keys + GAP.len() + 2 <= area.width.into();
        let two = keys > 0 && !fits && area.height >= MIN_HEIGHT;
        (1 + u16::from(two)).min(area.height)
    }

    pub(super) fn draw_footer(&self, buffer: &mut Buffer, area: Rect) {
        let width = usize::from(area.width);
        let mut rows = area.rows();
        let Some(first) = rows.next() else { return };
        let reversed = NORMAL.add_modifier(Modifier::REVERSED);
        buffer.set_style(first, reversed);
        let second = rows.next();
        // In one row, the most important key stays visible in any case.
        let least = self.hints().last().map_or(0, |part| part.text.width());
        let reserved = if second.is_some() || least == 0 {
            0
        } else {
            least.min(width / 3) + GAP.len() + 1
        };
        let status = fit(self.status(), GAP, width.saturating_sub(reserved + 1));
        let room = width.saturating_sub(status.width() + GAP.len() + 2);
        draw_padded(status, buffer, first);
        match second {
            Some(second) => {
                let keys = fit(self.hints(), GAP, width.saturating_sub(1));
                draw_padded(keys, buffer, second);
            }
            None if least > 0 && least <= room => {
                let mut keys = fit(self.hints(), GAP, room);
                keys.spans.push(" ".into());
                keys.right_aligned().render(first, buffer);
            }
            None => {}
        }
    }

    pub(super) fn status(&self) -> Vec<Part> {
        let all = self.panes.len();
        let open = self.panes.iter().filter(|pane| pane.is_open()).count();
        let choices = match self.closed {
            None => format!("{open} of {all} {} open", plural(all, "choice")),
            Some(end) => format!("{all} {}, stream {end}", plural(all, "choice")),
        };
        let mut parts = Vec::new();
        if self.is_paused() && self.closed.is_none() {
            parts.push(Part::new("paused", BOLD, 0));
        }
        parts.push(Part::new(choices, NORMAL, 0));
        if self.visible < all {
            parts.push(Part::new(format!("{} shown", self.visible), NORMAL, 3));
        }
        if let Some(rate) = self.rate.per_second(self.now) {
            parts.push(Part::new(format!("{rate:.0} tokens/s"), NORMAL, 2));
        }
        if !self.now.is_zero() {
            let elapsed = format!("elapsed {:.1} s", self.now.as_secs_f64());
            parts.push(Part::new(elapsed, NORMAL, 1));
        }
        if let Some(first) = self.rate.first().filter(|_| !self.now.is_zero()) {
            let first = format!("first delta {:.2} s", first.as_secs_f64());
            parts.push(Part::new(first, NORMAL, 4));
        }
        if let Some(playback) = self.playback.as_ref().filter(|_| self.closed.is_none()) {
            let speed = format!("speed {}x", playback.speed());
            parts.push(Part::new(speed, NORMAL, 5));
        }
        parts
    }

    /// The keys, in the order of their rows in the documentation. Their numbers say which of them goes first.
    fn hints(&self) -> Vec<Part> {
        if self.keys == KeyUse::Absent {
            return Vec::new();
        }
        let mut keys = vec![
            ("tab choice", 1),
            ("\u{2191}\u{2193} scroll", 3),
            ("enter zoom", 2),
            ("e raw events", 5),
        ];
        if self.closed.is_none() {
            keys.push((
                if self.is_paused() {
                    "space play"
                } else {
                    "space pause"
                },
                4,
            ));
            if self.playback.is_some() {
                keys.push(("+/- speed", 6));
            }
        }
        keys.push(("q quit", 0));
        let parts = keys.into_iter();
        parts
            .map(|(text, priority)| Part::new(text, NORMAL, priority))
            .collect()
    }
}

/// Draws a line after one space.
fn draw_padded(mut line: Line<'_>, buffer: &mut Buffer, area: Rect) {
    line.spans.insert(0, " ".into());
    line.render(area, buffer);
}
