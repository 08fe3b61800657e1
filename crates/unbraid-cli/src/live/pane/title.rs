//! The title of a pane: the index and the end always, and as much more as fits.

use std::time::Duration;

use ratatui::{style::Style, text::Line};
use unbraid::ChoiceEnd;

use super::{Pane, PaneStyle, State};
use crate::{
    live::{
        fit::{Part, fit},
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
        match &self.state {
            State::Ended(end) => parts.push(end_part(end, pane_style.palette, color)),
            // What it is doing shows in its text, too.
            state => parts.push(Part::new(state.name(), color, 2)),
        }
        if let Some(rate) = self.rate.per_second(pane_style.now) {
            parts.push(Part::new(format!(" {rate:.0} tokens/s"), Style::new(), 1));
        }
        if let Some(first) = self
            .rate
            .first()
            .filter(|_| pane_style.now > Duration::ZERO)
        {
            let first = format!(" first delta {:.2} s", first.as_secs_f64());
            parts.push(Part::new(first, style::DIM, 3));
        }
        let mut line = fit(parts, " ", width.saturating_sub(2));
        line.spans.insert(0, " ".into());
        line.spans.push(" ".into());
        line
    }
}

fn end_part(end: &ChoiceEnd, palette: Palette, otherwise: Style) -> Part {
    let text = format!("{} {}", Notice::mark(end), printable(Notice::name(end)));
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
