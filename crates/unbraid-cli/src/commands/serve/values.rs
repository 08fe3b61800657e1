//! Durations, sizes and numbers.

use std::{str::FromStr, time::Duration};

/// Parses `500ms`, `15s`, `2m`, `1h` or `0`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let milliseconds: u64 = match unit {
        "" if number == "0" => 1,
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DURATION.into()),
    };
    let number: u64 = number.parse().map_err(|_| DURATION)?;
    let milliseconds = number.checked_mul(milliseconds).ok_or(DURATION)?;
    Ok(Duration::from_millis(milliseconds))
}

/// Parses a duration, or `never`.
pub(super) fn duration_or_never(text: &str) -> Result<OrNever, String> {
    match text {
        "never" => Ok(OrNever(None)),
        text => duration(text).map(|duration| OrNever(Some(duration))),
    }
}

/// Parses `64KiB`, `32MiB`, `1GiB` or a number of bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let bytes: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(SIZE.into()),
    };
    let number: u64 = number.parse().map_err(|_| SIZE)?;
    number.checked_mul(bytes).ok_or_else(|| SIZE.into())
}

/// Parses the variable of an option that has no value. An empty variable is like none.
pub(super) fn flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("it is true or false".into()),
    }
}

/// Parses a number.
pub(super) fn number<T>(text: &str) -> Result<T, String>
where
    T: FromStr<Err: ToString>,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Parses like another parser what must not be zero.
pub(super) fn non_zero<T: Default + PartialEq>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let value = parse(text)?;
        (value != T::default())
            .then_some(value)
            .ok_or_else(|| ZERO.into())
    }
}

/// A duration that may not end. clap takes a field of type `Option` as an argument that may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrNever(pub(super) Option<Duration>);

fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

const DURATION: &str = "a duration is a number with a unit: 500ms, 15s, 5m, 1h";
const ZERO: &str = "it must not be zero";
const SIZE: &str = "a size is a number with a unit: 64KiB, 32MiB, 1GiB";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, milliseconds) in [
            ("0", 0),
            ("500ms", 500),
            ("15s", 15_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                duration(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "15",
            "s",
            "1.5s",
            "-1s",
            "1 s",
            "1S",
            "99999999999999999999s",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration_or_never("never"), Ok(OrNever(None)));
        assert_eq!(duration_or_never("0"), Ok(OrNever(Some(Duration::ZERO))));
    }

    #[test]
    fn a_flag_is_true_false_or_not_set() {
        for (text, value) in [("1", true), ("Yes", true), ("", false), ("0", false)] {
            assert_eq!(flag(text), Ok(value), "{text}");
        }
        assert!(flag("maybe").is_err());
    }

    #[test]
    fn sizes_have_binary_units() {
        for (text, bytes) in [
            ("64KiB", 65_536),
            ("32MiB", 32 << 20),
            ("1GiB", 1 << 30),
            ("7", 7),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "1KB", "1kib", "-1", "99999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
