//! Numbers as they are written: their length, their exact integers, what serde_json makes of them.

/// The length of the JSON number that a text starts with, or the offset of the byte that spoils it.
pub(crate) fn len(text: &str) -> Result<usize, usize> {
    let byte = |at: usize| text.as_bytes().get(at).copied();
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
    let mut at = digits(start)?;
    if byte(start) == Some(b'0') && at > start + 1 {
        return Err(start + 1);
    }
    if byte(at) == Some(b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = byte(at) {
        let sign = usize::from(matches!(byte(at + 1), Some(b'+' | b'-')));
        at = digits(at + 1 + sign)?;
    }
    Ok(at)
}

/// Sign and magnitude of a JSON number without a fraction; no float between, so none of its 64 bits is rounded.
pub(crate) fn integral(number: &str) -> Option<(bool, u64)> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let fraction = mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len());
    let mut magnitude = 0_u64;
    // Zeros count only once a digit follows them: `5.000` has no fraction.
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

/// Whether serde_json reads this JSON number, which it refuses where its own arithmetic ends in infinity.
///
/// The steps are serde_json's without `float_roundtrip`: 64 bits of digits, the rest a power of ten. The nearest
/// `f64` would not do, for the two disagree in the last digits before the limit.
pub(crate) fn in_range(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = 0_u64;
    let unread = take(&mut digits, whole.trim_start_matches('-')) as i64;
    let read = (fraction.len() - take(&mut digits, fraction)) as i64;
    let exponent = exponent.parse().unwrap_or_else(|_| {
        if exponent.starts_with('-') {
            i64::MIN
        } else {
            i64::MAX
        }
    });
    match exponent.saturating_add(unread - read) {
        // Below this, the largest `u64` stays below the largest `f64`.
        ..=288 => true,
        power @ 289..=308 => format!("1e{power}")
            .parse()
            .is_ok_and(|power: f64| (digits as f64 * power).is_finite()),
        309.. => digits == 0,
    }
}

/// Adds the digits that fit, and tells how many are left.
fn take(value: &mut u64, digits: &str) -> usize {
    for (place, digit) in digits.bytes().enumerate() {
        let Some(next) = value
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit & 0xF)))
        else {
            return digits.len() - place;
        };
        *value = next;
    }
    0
}
