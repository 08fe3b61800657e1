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
    let (mut pos, mut has_escapes) = (0, false);
    loop {
        let rest = text.get(pos..)?;
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

/// Decodes the inside of a string. `None` if that is left to the slower paths: an invalid escape, or half a surrogate pair,
/// whose other half may be in the next delta.
pub(super) fn unescape<'o>(mut inside: &str, out: &'o mut String) -> Option<&'o str> {
    out.clear();
    while let Some(backslash) = memchr::memchr(b'\\', inside.as_bytes()) {
        out.push_str(inside.get(..backslash)?);
        let kind = *inside.as_bytes().get(backslash + 1)?;
        inside = inside.get(backslash + 2..)?;
        out.push(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => unicode_escape(&mut inside)?,
            _ => return None,
        });
    }
    out.push_str(inside);
    Some(out)
}

/// The character of one `\u` escape, or of two that are a surrogate pair.
fn unicode_escape(inside: &mut &str) -> Option<char> {
    let first = hex_digits(inside)?;
    let second = if (0xD800..0xDC00).contains(&first) {
        *inside = inside.strip_prefix("\\u")?;
        Some(hex_digits(inside)?)
    } else {
        None
    };
    char::decode_utf16([first].into_iter().chain(second))
        .next()?
        .ok()
        .filter(|_| second.is_none_or(|second| (0xDC00..0xE000).contains(&second)))
}

fn hex_digits(inside: &mut &str) -> Option<u16> {
    let (digits, rest) = inside.split_at_checked(4)?;
    *inside = rest;
    // `from_str_radix` also accepts a sign.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}
