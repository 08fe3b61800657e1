//! The text of numbers: its length, its exact integer, and whether `serde_json` accepts it.

/// The length of the JSON number at the start of a text, or the offset of the byte that makes it invalid.
pub(crate) fn len(text: &str) -> Result<usize, usize> {
    let byte = |pos: usize| text.as_bytes().get(pos).copied();
    let digits = |from: usize| {
        let rest = text.as_bytes().get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            Err(from)
        } else {
            Ok(from + count)
        }
    };
    let start = usize::from(byte(0) == Some(b'-'));
    let mut pos = digits(start)?;
    if byte(start) == Some(b'0') && pos > start + 1 {
        return Err(start + 1);
    }
    if byte(pos) == Some(b'.') {
        pos = digits(pos + 1)?;
    }
    if let Some(b'e' | b'E') = byte(pos) {
        let sign = usize::from(matches!(byte(pos + 1), Some(b'+' | b'-')));
        pos = digits(pos + 1 + sign)?;
    }
    Ok(pos)
}

/// Sign and magnitude of a JSON number without a fraction. It is computed without floats, so that all 64 bits are
/// exact.
pub(crate) fn integral(number: &str) -> Option<(bool, u64)> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let fraction = mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len());
    let mut magnitude = 0_u64;
    // Zeros count only once another digit follows them, so `5.000` has no fraction.
    let mut zeros = 0_u32;
    for digit in mantissa.chars().filter_map(|char| char.to_digit(10)) {
        zeros = zeros.checked_add(1)?;
        if digit > 0 {
            magnitude = shift(magnitude, zeros)?.checked_add(digit.into())?;
            zeros = 0;
        }
    }
    if magnitude > 0 {
        let exponent: i64 = exponent.parse().ok()?;
        let places = exponent
            .checked_sub_unsigned(fraction as u64)?
            .checked_add(zeros.into())?;
        magnitude = shift(magnitude, u32::try_from(places).ok()?)?;
    }
    Some((number.starts_with('-'), magnitude))
}

fn shift(magnitude: u64, places: u32) -> Option<u64> {
    if magnitude == 0 {
        Some(0)
    } else {
        magnitude.checked_mul(10_u64.checked_pow(places)?)
    }
}

/// Whether `serde_json` accepts this JSON number. It refuses numbers beyond the largest `f64`, and rounds as the
/// standard library does (its feature `float_roundtrip`).
pub(crate) fn in_range(number: &str) -> bool {
    number.parse().is_ok_and(f64::is_finite)
}
