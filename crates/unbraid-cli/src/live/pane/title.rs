//! The title of a pane: the index and the end always, and as much more as fits.

use std::time::Duration;

use ratatui::{style::Style, text::Line};
use unbraid::ChoiceEnd;
use unicode_width::UnicodeWidthStr;

use super::{Pane, PaneStyle, State};
use crate::{
    live::{
        fit::{Part, fit, shorten},
        style,
    },
    outcome::Notice,
    palette::Palette,
    printable::printable,
};

impl Pane {
    pub(super) fn title(&self, width: usize, pane_style: PaneStyle) -> Line<'static> {
        let color = style::choice(pane_style.palette, self.index);
        let mut parts = vec![Part::new(
            format!("[{}]", self.index),
            color.patch(style::BOLD),
            0,
        )];
        if let Some(label) = self.label_part(width) {
            parts.push(label);
        }
        match &self.state {
            State::Ended(end) => parts.push(end_part(end, pane_style.palette, color)),
            // What it is doing shows in its text, too.
            state => parts.push(Part::new(state.name(), color, 3)),
        }
        if let Some(rate) = self.rate.per_second(pane_style.now) {
            parts.push(Part::new(format!(" {rate:.0} tokens/s"), Style::new(), 2));
        }
        if let Some(first) = self
            .rate
            .first()
            .filter(|_| pane_style.now > Duration::ZERO)
        {
            let first = format!(" first delta {:.2} s", first.as_secs_f64());
            parts.push(Part::new(first, style::DIM, 4));
        }
        let mut line = fit(parts, " ", width.saturating_sub(2));
        line.spans.insert(0, " ".into());
        line.spans.push(" ".into());
        line
    }
}

impl Pane {
    /// The label, shortened so that the index and the end stay readable.
    fn label_part(&self, width: usize) -> Option<Part> {
        const MIN_WIDTH: usize = 6;
        let label = self.label.as_ref()?;
        let end = match &self.state {
            State::Ended(end) => end_text(end).width() + 1,
            _ => 0,
        };
        let index = self.index.to_string().len() + "[] ".len();
        let room = width.saturating_sub(index + end + 2);
        (room >= MIN_WIDTH).then(|| Part::new(shorten(label, room), Style::new(), 1))
    }
}

fn end_text(end: &ChoiceEnd) -> String {
    format!("{} {}", Notice::mark(end), printable(Notice::name(end)))
}

fn end_part(end: &ChoiceEnd, palette: Palette, otherwise: Style) -> Part {
    let text = end_text(end);
    let style = style::notice(palette, Notice::of(end), otherwise.patch(style::BOLD));
    Part::new(text, style, 0)
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Reasoning => "reasoning",
            Self::Writing => "writing",
            Self::Refusing => "refusing",
            Self::Calling => "calling",
            Self::Ended(end) => end.as_str(),
        }
    }
}
