//! Reads JSON strings and small numbers from bytes, without a parser.

/// The JSON number at the start of the text, and its length.
#[inline]
pub(super) fn number(text: &[u8]) -> Option<(u32, usize)> {
    // Nearly every choice index has one digit.
    if let [digit @ b'0'..=b'9', next, ..] = text
        && !next.is_ascii_digit()
    {
        return Some((u32::from(digit - b'0'), 1));
    }
    let (mut value, mut length) = (0_u32, 0);
    for digit in text.iter().take_while(|byte| byte.is_ascii_digit()) {
        value = value
            .checked_mul(10)?
            .checked_add(u32::from(digit - b'0'))?;
        length += 1;
    }
    let has_leading_zero = length > 1 && text.starts_with(b"0");
    (length > 0 && !has_leading_zero).then_some((value, length))
}

/// The length of a JSON string, and whether it has escapes. The text starts after the opening quote. `None` if the string
/// contains a control character or does not end.
#[inline(always)]
pub(super) fn string(text: &[u8]) -> Option<(usize, bool)> {
    match text.first_chunk().and_then(first_special) {
        Some((offset, b'"')) => Some((offset, false)),
        _ => long_string(text),
    }
}

#[inline(never)]
fn long_string(text: &[u8]) -> Option<(usize, bool)> {
    const LONG: usize = 32; // most deltas are shorter, and steps of eight bytes find their end faster
    let (mut pos, mut has_escapes) = (0, false);
    loop {
        let rest = text.get(pos..)?;
        if pos >= LONG
            && let Some(bytes) = rest.first_chunk()
            && has_no_special(bytes)
        {
            pos += bytes.len();
            continue;
        }
        if let Some(bytes) = rest.first_chunk() {
            let bits = special_bits(u64::from_le_bytes(*bytes));
            pos += (bits.trailing_zeros() / 8) as usize; // eight if there is none
            if bits == 0 {
                continue;
            }
        }
        // Reached at a byte with a meaning or, where fewer than eight bytes are left, at each byte.
        match text.get(pos)? {
            0..=0x1F => return None,
            b'"' => return Some((pos, has_escapes)),
            b'\\' if *text.get(pos + 1)? >= b' ' => {
                has_escapes = true;
                pos += 2;
            }
            b'\\' => return None,
            _ => pos += 1,
        }
    }
}

/// The JSON integer at the start of the text, and its length. A longer one than nineteen digits need not fit.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<(u64, usize)> {
    const MAX_DIGITS: usize = 19;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let (mut value, mut length) = (0_u64, 0);
    for digit in digits.take(MAX_DIGITS + 1) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        length += 1;
    }
    let has_leading_zero = length > 1 && text.starts_with(b"0");
    let fits = (1..=MAX_DIGITS).contains(&length);
    (fits && !has_leading_zero).then_some((value, length))
}

/// Whether none of the bytes has a meaning inside a JSON string.
#[inline]
fn has_no_special(bytes: &[u8; 32]) -> bool {
    // Without an early exit, the compiler vectorizes this loop.
    let special = |byte: &u8| (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    !bytes.iter().fold(false, |any, byte| any | special(byte))
}

/// The length of the JSON integer at the start of the text, of up to nineteen digits.
#[inline]
pub(super) fn integer_length(text: &[u8]) -> Option<usize> {
    if let Some(bytes) = text.first_chunk() {
        let length = (other_than_digits(u64::from_le_bytes(*bytes)).trailing_zeros() / 8) as usize;
        let has_leading_zero = length > 1 && text.starts_with(b"0");
        if (1..8).contains(&length) {
            return (!has_leading_zero).then_some(length);
        }
    }
    integer(text).map(|(_, length)| length)
}

/// Sets the top bit of each byte that is not a digit.
#[inline]
fn other_than_digits(text: u64) -> u64 {
    const fn repeat(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // Digits become 0 to 9. No byte exceeds 0xF5 after the addition, so none carries into the next one.
    let values = text ^ repeat(b'0');
    let above_nine = (values & repeat(0x7F)) + repeat(0x80 - 10);
    (above_nine | values) & repeat(0x80)
}

/// The first of sixteen bytes that has a meaning inside a JSON string, and its offset. Most deltas are shorter than that.
#[inline]
pub(super) fn first_special(bytes: &[u8; 16]) -> Option<(usize, u8)> {
    let text = u128::from_le_bytes(*bytes);
    let low = special_bits(text as u64);
    let high = special_bits((text >> 64) as u64);
    let bits = u128::from(low) | (u128::from(high) << 64);
    let offset = (bits.trailing_zeros() / 8) as usize;
    bytes.get(offset).map(|byte| (offset, *byte))
}

/// Sets the top bit of each byte that has a meaning inside a JSON string: a quote, a backslash or a control character.
///
/// A subtraction that borrows from the next byte may set a wrong bit there, but only after a right one. Callers use the
/// first bit alone, which is always right.
#[inline]
pub(super) fn special_bits(text: u64) -> u64 {
    const fn repeat(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    let below = |text: u64, bound| text.wrapping_sub(repeat(bound));
    let bits = below(text, 0x20) | below(text ^ repeat(b'"'), 1) | below(text ^ repeat(b'\\'), 1);
    bits & !text & repeat(0x80)
}

/// Decodes the inside of a string, which is UTF-8 afterwards if it was so before. `None` if that is left to the slower paths:
/// an invalid escape, or half a surrogate pair, whose other half may be in the next delta.
pub(super) fn unescape(inside: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let mut rest = inside;
    while !rest.is_empty() {
        copy_run(&mut rest, out);
        let [b'\\', escape @ ..] = rest else {
            continue;
        };
        let (kind, after) = escape.split_first()?;
        rest = after;
        out.push(match kind {
            b'"' | b'\\' | b'/' => *kind,
            b'b' => 0x8,
            b'f' => 0xC,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let character = unicode_escape(&mut rest)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            _ => return None,
        });
    }
    Some(())
}

/// Moves the bytes before the next backslash.
#[inline]
fn copy_run(rest: &mut &[u8], out: &mut Vec<u8>) {
    while let Some(block) = rest.first_chunk() {
        let run = first_backslash(block);
        // A copy of constant size is faster than one of the run alone, which is short in most texts with escapes.
        let length = out.len() + run;
        out.extend_from_slice(block);
        out.truncate(length);
        *rest = rest.get(run..).unwrap_or_default();
        if run < block.len() {
            return;
        }
    }
    let run = rest.iter().take_while(|byte| **byte != b'\\').count();
    if let Some((start, after)) = rest.split_at_checked(run) {
        out.extend_from_slice(start);
        *rest = after;
    }
}

/// The offset of the first backslash in sixteen bytes; sixteen if there is none.
#[inline]
fn first_backslash(bytes: &[u8; 16]) -> usize {
    const BACKSLASHES: u128 = u128::from_ne_bytes([b'\\'; 16]);
    const ONES: u128 = u128::from_ne_bytes([1; 16]);
    const TOP_BITS: u128 = u128::from_ne_bytes([0x80; 16]);
    // Only the first bit is right, as in `special_bits`.
    let text = u128::from_le_bytes(*bytes) ^ BACKSLASHES;
    let bits = text.wrapping_sub(ONES) & !text & TOP_BITS;
    (bits.trailing_zeros() / 8) as usize
}

/// The character of one `\u` escape, or of two that are a surrogate pair.
fn unicode_escape(inside: &mut &[u8]) -> Option<char> {
    let first = hex_digits(inside)?;
    let second = if (0xD800..0xDC00).contains(&first) {
        *inside = inside.strip_prefix(b"\\u")?;
        Some(hex_digits(inside)?)
    } else {
        None
    };
    char::decode_utf16([first].into_iter().chain(second))
        .next()?
        .ok()
        .filter(|_| second.is_none_or(|second| (0xDC00..0xE000).contains(&second)))
}

fn hex_digits(inside: &mut &[u8]) -> Option<u16> {
    let (digits, rest) = inside.split_first_chunk::<4>()?;
    *inside = rest;
    digits.iter().try_fold(0, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(16 * value + u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_integer_is_that_of_its_digits() {
        let digits = "1234567890".repeat(3);
        for length in 0..=digits.len() {
            for after in [
                "",
                ",",
                ":",
                "/",
                "}    ",
                ".5,      ",
                "\u{e9}       ",
                "x1234567",
            ] {
                for start in ["", "0"] {
                    let text = format!("{start}{}{after}", &digits[..length]);
                    let expected = integer(text.as_bytes()).map(|(_, length)| length);
                    assert_eq!(integer_length(text.as_bytes()), expected, "{text}");
                }
            }
        }
        for byte in 0..=u8::MAX {
            let text = [b'7', byte, b'1', b',', b',', b',', b',', b','];
            let expected = integer(&text).map(|(_, length)| length);
            assert_eq!(integer_length(&text), expected, "{byte}");
        }
    }

    #[test]
    fn a_string_ends_at_its_quote_wherever_that_is() {
        for length in 0..200 {
            let ordinary = "a\u{e9} ".repeat(60);
            let ordinary = &ordinary.as_bytes()[..length];
            let text = |parts: &[&[u8]]| parts.concat();
            let tail = &b"\",\"more\": 1, \\ and so on, for more than a step"[..];
            assert_eq!(
                string(&text(&[ordinary, tail])),
                Some((length, false)),
                "{length}"
            );
            assert_eq!(
                string(&text(&[ordinary, b"\""])),
                Some((length, false)),
                "{length}"
            );
            let escaped = text(&[ordinary, b"\\\"", ordinary, tail]);
            assert_eq!(string(&escaped), Some((2 * length + 2, true)), "{length}");
            for control in [0, b'\n', 0x1F] {
                assert_eq!(
                    string(&text(&[ordinary, &[control], tail])),
                    None,
                    "{length}"
                );
            }
            assert_eq!(string(ordinary), None, "{length}");
        }
    }

    #[test]
    fn escapes_are_decoded_wherever_they_are() {
        for before in 0..40 {
            for between in 0..20 {
                let (one, other) = ("é".repeat(before / 2), "b".repeat(between));
                let escaped =
                    format!(r#"{one}\n{other}\u00e9\\{other}\"\ud83d\ude00{other}\/{one}"#);
                let expected = format!("{one}\n{other}é\\{other}\"😀{other}/{one}");
                let mut out = b"earlier".to_vec();
                assert_eq!(unescape(escaped.as_bytes(), &mut out), Some(()));
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
        for invalid in [
            r"\x",
            r"\",
            r"\u12",
            r"\u+123",
            r"\ud83d",
            r"\ud83d\n0000",
            r"\ude00",
            r"\ud83d\ud83d",
        ] {
            for start in ["", "a text of more than one step"] {
                let text = format!("{start}{invalid}");
                assert_eq!(unescape(text.as_bytes(), &mut Vec::new()), None, "{text}");
            }
        }
    }
}
