//! Parsers for the values of arguments.

use std::ops::RangeInclusive;

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::input::Input;

pub(crate) fn input() -> impl TypedValueParser<Value = Input> {
    OsStringValueParser::new().map(Input::from)
}

pub(crate) fn events_per_second(text: &str) -> Result<f64, String> {
    number(text, 0.01..=1_000_000.0)
}

/// Parses a number within a range. The range also excludes NaN, which compares with nothing.
pub(crate) fn number(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let (min, max) = (range.start(), range.end());
    text.parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("not a number from {min} to {max}"))
}
