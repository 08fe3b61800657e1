//! The styles of the view. None of them relies on a colour alone, because a terminal may have none.

use anstyle::Color as AnyColor;
use ratatui::style::{Color, Modifier, Style};
use unbraid::ChoiceIndex;

use crate::{outcome::Notice, palette::Palette};

pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// The style of a choice: its colour, if there are colours.
pub(super) fn choice(palette: Palette, choice: ChoiceIndex) -> Style {
    colored(palette.choice(choice))
}

/// The style of an end: amber for one to notice, red for an error. Both are bold, for terminals without colours.
pub(super) fn notice(palette: Palette, notice: Notice, otherwise: Style) -> Style {
    match notice {
        Notice::None => otherwise,
        Notice::Warning => colored(palette.warning()).add_modifier(Modifier::BOLD),
        Notice::Error => colored(palette.error()).add_modifier(Modifier::BOLD),
    }
}

fn colored(color: Option<AnyColor>) -> Style {
    match color {
        None => Style::new(),
        Some(AnyColor::Ansi(color)) => Style::new().fg(Color::Indexed(color as u8)),
        Some(AnyColor::Ansi256(color)) => Style::new().fg(Color::Indexed(color.0)),
        Some(AnyColor::Rgb(color)) => Style::new().fg(Color::Rgb(color.0, color.1, color.2)),
    }
}
