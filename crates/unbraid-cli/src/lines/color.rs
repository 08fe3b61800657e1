//! The colours of choices.

use anstyle::{AnsiColor, Style};
use unbraid::ChoiceIndex;

pub(crate) fn style(choice: ChoiceIndex) -> Style {
    color(choice).on_default()
}

/// The colour of a choice. Neighbours differ, and all six are readable on dark and light backgrounds.
pub(crate) fn color(choice: ChoiceIndex) -> AnsiColor {
    match choice.0 % 6 {
        0 => AnsiColor::Cyan,
        1 => AnsiColor::Green,
        2 => AnsiColor::Magenta,
        3 => AnsiColor::Yellow,
        4 => AnsiColor::Blue,
        _ => AnsiColor::Red,
    }
}
