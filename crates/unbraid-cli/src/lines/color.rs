//! The styles of choices and of their ends in lines.

use anstyle::{Color, Style};
use unbraid::{ChoiceEnd, ChoiceIndex};

use crate::{outcome::Notice, palette::Palette};

pub(crate) fn style(choice: ChoiceIndex) -> Style {
    colored(Palette::detect().choice(choice))
}

/// The style of an end: amber for one to notice, red for an error.
pub(super) fn end_style(end: &ChoiceEnd) -> Style {
    match Notice::of(end) {
        Notice::None => Style::new(),
        Notice::Warning => colored(Palette::detect().warning()).bold(),
        Notice::Error => colored(Palette::detect().error()).bold(),
    }
}

fn colored(color: Option<Color>) -> Style {
    Style::new().fg_color(color)
}
