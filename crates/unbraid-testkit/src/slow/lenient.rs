//! JSON that servers send although it is none.

use serde_json::Value;

/// Parses `json` as it is, and if that fails once more with the known faults mended: halves of surrogate pairs (C14),
/// raw control characters in strings (J2), and `NaN` and the infinities, which become null (M8).
pub(super) fn parse(json: &str) -> Option<Value> {
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&mend(json)))
        .ok()
}

/// Whether `json` is the beginning of a value, by the same measure.
pub(super) fn begins(json: &str) -> bool {
    serde_json::from_str::<Value>(&mend(json)).is_err_and(|error| error.is_eof())
}

fn mend(json: &str) -> String {
    let mut mended = String::new();
    let mut rest = json;
    let mut in_string = false;
    while let Some(first) = rest.chars().next() {
        let (piece, taken) = if in_string {
            in_text(rest, first)
        } else {
            outside(rest, first)
        };
        in_string ^= first == '"';
        mended.push_str(&piece);
        rest = &rest[taken..];
    }
    mended
}

/// The next piece outside strings, and how many bytes of the input it stands for.
fn outside(rest: &str, first: char) -> (String, usize) {
    let word = ["NaN", "Infinity", "-Infinity"]
        .into_iter()
        .find(|word| rest.starts_with(word));
    word.map_or_else(
        || (first.to_string(), first.len_utf8()),
        |word| ("null".to_owned(), word.len()),
    )
}

/// The next piece of a string: an escape, two escapes that belong together, or a character.
fn in_text(rest: &str, first: char) -> (String, usize) {
    if first < ' ' {
        return (format!("\\u{:04x}", u32::from(first)), 1);
    }
    if first != '\\' {
        return (first.to_string(), first.len_utf8());
    }
    match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (rest[..12].to_owned(), 12),
        (Some(half @ 0xd800..=0xdfff), _) => (stand_in(half).to_string(), 6),
        _ => {
            let escape: String = rest.chars().take(2).collect();
            let taken = escape.len();
            (escape, taken)
        }
    }
}

/// The UTF-16 unit of a `\uXXXX` at the start of `rest`.
fn escaped_unit(rest: &str) -> Option<u32> {
    let digits = rest.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// A `char` cannot be half a surrogate pair, so that each half is carried by a character of the last private plane,
/// which no server sends.
fn stand_in(half: u32) -> char {
    char::from_u32(STAND_INS + (half - 0xd800)).expect("0x10f000 to 0x10f7ff are characters")
}

fn half(character: char) -> Option<u32> {
    u32::from(character)
        .checked_sub(STAND_INS)
        .filter(|half| *half < 0x800)
}

/// Joins the halves that stand side by side in the whole text of a field; the others become U+FFFD.
pub(super) fn join_halves(text: &str) -> String {
    let mut joined = String::new();
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let Some(first) = half(character) else {
            joined.push(character);
            continue;
        };
        let second = rest.peek().and_then(|next| half(*next));
        match (first, second) {
            (0..=0x3ff, Some(low @ 0x400..=0x7ff)) => {
                rest.next();
                let scalar = 0x10000 + (first << 10) + (low - 0x400);
                joined
                    .push(char::from_u32(scalar).expect("a high and a low half make a character"));
            }
            _ => joined.push(char::REPLACEMENT_CHARACTER),
        }
    }
    joined
}

/// The character that stands for the half 0xd800; the others follow.
const STAND_INS: u32 = 0x0010_f000;
