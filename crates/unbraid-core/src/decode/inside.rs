//! The insides of JSON strings, and small numbers, read without a parser.

/// The whole JSON number that a text begins with, and its length.
#[inline]
pub(super) fn number(text: &[u8]) -> Option<(u32, usize)> {
    if let [digit @ b'0'..=b'9', behind, ..] = text
        && !behind.is_ascii_digit()
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
    let padded = length > 1 && text.starts_with(b"0");
    (length > 0 && !padded).then_some((value, length))
}

/// The length of a JSON string whose opening quote stands before the text, and whether it has escapes; `None` if a
/// control character is in it.
#[inline(always)]
pub(super) fn string(text: &[u8]) -> Option<(usize, bool)> {
    match text.first_chunk().and_then(special) {
        Some((at, b'"')) => Some((at, false)),
        _ => long_string(text),
    }
}

#[inline(never)]
fn long_string(text: &[u8]) -> Option<(usize, bool)> {
    let (mut escaped, mut escapes) = (false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            0..=0x1F => return None,
            _ if escaped => escaped = false,
            b'\\' => (escaped, escapes) = (true, true),
            b'"' => return Some((at, escapes)),
            _ => {}
        }
    }
    None
}

/// The first of sixteen bytes that means something inside a JSON string: most pieces of text are shorter.
#[inline]
fn special(bytes: &[u8; 16]) -> Option<(usize, u8)> {
    let text = u128::from_le_bytes(*bytes);
    let found = u128::from(marks(text as u64)) | (u128::from(marks((text >> 64) as u64)) << 64);
    let at = (found.trailing_zeros() / 8) as usize;
    bytes.get(at).map(|byte| (at, *byte))
}

/// The top bit of each byte that means something inside a JSON string. A borrow can set wrong ones, but only behind a
/// right one.
#[inline]
pub(super) fn marks(text: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    let below = |text: u64, bound| text.wrapping_sub(each(bound));
    let found = below(text, 0x20) | below(text ^ each(b'"'), 1) | below(text ^ each(b'\\'), 1);
    found & !text & each(0x80)
}

/// The text of a string's inside; `None` where the slower decoders have to look: half a surrogate pair is theirs.
pub(super) fn unescape<'o>(mut inside: &str, out: &'o mut String) -> Option<&'o str> {
    out.clear();
    while let Some(at) = memchr::memchr(b'\\', inside.as_bytes()) {
        out.push_str(inside.get(..at)?);
        let kind = *inside.as_bytes().get(at + 1)?;
        inside = inside.get(at + 2..)?;
        out.push(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => unit(&mut inside)?,
            _ => return None,
        });
    }
    out.push_str(inside);
    Some(out)
}

/// The character of one `\u`, or of two that are a pair.
fn unit(inside: &mut &str) -> Option<char> {
    let first = hex(inside)?;
    let second = if (0xD800..0xDC00).contains(&first) {
        *inside = inside.strip_prefix("\\u")?;
        Some(hex(inside)?)
    } else {
        None
    };
    char::decode_utf16([first].into_iter().chain(second))
        .next()?
        .ok()
        .filter(|_| second.is_none_or(|second| (0xDC00..0xE000).contains(&second)))
}

fn hex(inside: &mut &str) -> Option<u16> {
    let (digits, rest) = inside.split_at_checked(4)?;
    *inside = rest;
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| all)
}
