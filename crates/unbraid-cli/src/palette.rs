//! The colours of choices and of their ends, by what the terminal can show.

use std::{env, sync::OnceLock};

use anstyle::{Ansi256Color, AnsiColor, Color};
use unbraid::ChoiceIndex;

/// What the terminal can show. A colour never carries information alone: choices have their index, and ends their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Palette {
    /// No colours, as `NO_COLOR` demands.
    None,
    /// The sixteen colours that each terminal defines for itself.
    Ansi16,
    /// Fixed colours, with a contrast of at least 3 to 1 on black and on white.
    Ansi256,
}

/// Neighbours differ in hue and in lightness, which colour-blind readers see too. Red and yellow are kept for ends.
const CHOICES: [Ansi256Color; 6] = [
    Ansi256Color(33),  // blue
    Ansi256Color(29),  // green
    Ansi256Color(169), // pink
    Ansi256Color(93),  // violet
    Ansi256Color(67),  // steel
    Ansi256Color(164), // magenta
];

/// Without the dark blue, which most terminals show almost black.
const CHOICES_16: [AnsiColor; 4] = [
    AnsiColor::BrightBlue,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Cyan,
];

const AMBER: Ansi256Color = Ansi256Color(136);
const RED: Ansi256Color = Ansi256Color(160);

impl Palette {
    /// The palette for the environment of this process.
    pub(crate) fn detect() -> Self {
        static DETECTED: OnceLock<Palette> = OnceLock::new();
        *DETECTED.get_or_init(|| Self::from_variables(|name| env::var(name).ok()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let has_many = |name, values: &[&str]| {
            variable(name).is_some_and(|text| values.iter().any(|value| text.contains(value)))
        };
        if variable("NO_COLOR").is_some_and(|text| !text.is_empty()) {
            Self::None
        } else if has_many("COLORTERM", &["truecolor", "24bit"])
            || has_many("TERM", &["256color", "direct"])
            || variable("WT_SESSION").is_some()
        {
            Self::Ansi256
        } else {
            Self::Ansi16
        }
    }

    /// The colour of a choice.
    pub(crate) fn choice(self, choice: ChoiceIndex) -> Option<Color> {
        let position = choice.0 as usize;
        match self {
            Self::None => None,
            Self::Ansi16 => CHOICES_16
                .get(position % CHOICES_16.len())
                .map(|&color| color.into()),
            Self::Ansi256 => CHOICES
                .get(position % CHOICES.len())
                .map(|&color| color.into()),
        }
    }

    /// The colour of an end that the reader should notice, such as `length`.
    pub(crate) fn warning(self) -> Option<Color> {
        self.pick(AnsiColor::Yellow, AMBER)
    }

    /// The colour of an error.
    pub(crate) fn error(self) -> Option<Color> {
        self.pick(AnsiColor::Red, RED)
    }

    fn pick(self, few: AnsiColor, many: Ansi256Color) -> Option<Color> {
        match self {
            Self::None => None,
            Self::Ansi16 => Some(few.into()),
            Self::Ansi256 => Some(many.into()),
        }
    }
}

/// The components of one of the 256 colours that lies in their cube, which is the same in every terminal.
pub(crate) fn cube_rgb(color: Ansi256Color) -> Option<[u8; 3]> {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let position = color.0.checked_sub(16).filter(|&position| position < 216)?;
    let level = |digit: u8| LEVELS.get(usize::from(digit % 6)).copied();
    Some([
        level(position / 36)?,
        level(position / 6)?,
        level(position)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast to a background of this luminance, as WCAG 2 defines it.
    fn contrast(color: Ansi256Color, background: f64) -> f64 {
        let linear = |level: u8| match f64::from(level) / 255.0 {
            low if low <= 0.04045 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = cube_rgb(color).unwrap().map(linear);
        let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        let (low, high) = (luminance.min(background), luminance.max(background));
        (high + 0.05) / (low + 0.05)
    }

    #[test]
    fn every_colour_is_readable_on_black_and_on_white() {
        for color in CHOICES.into_iter().chain([AMBER, RED]) {
            assert!(contrast(color, 0.0) >= 3.0, "{color:?} on black");
            assert!(contrast(color, 1.0) >= 3.0, "{color:?} on white");
        }
    }

    #[test]
    fn the_environment_selects_the_palette() {
        let palette = |variables: &[(&str, &str)]| {
            Palette::from_variables(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(palette(&[("TERM", "xterm")]), Palette::Ansi16);
        assert_eq!(palette(&[("TERM", "xterm-256color")]), Palette::Ansi256);
        assert_eq!(palette(&[("COLORTERM", "truecolor")]), Palette::Ansi256);
        let off = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
        assert_eq!(palette(&off), Palette::None);
        assert_eq!(palette(&[("NO_COLOR", "")]), Palette::Ansi16);
        assert_eq!(Palette::None.choice(ChoiceIndex(1)), None);
    }

    #[test]
    fn no_choice_has_the_colour_of_an_end() {
        for palette in [Palette::Ansi16, Palette::Ansi256] {
            for choice in 0..64 {
                let color = palette.choice(ChoiceIndex(choice));
                assert!(color != palette.error() && color != palette.warning());
                assert_ne!(color, Some(AnsiColor::Blue.into()));
            }
        }
    }
}
