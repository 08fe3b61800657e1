//! JSON that servers send although it is none.

use serde_json::Value;

/// Parses `json` as it is, and if that fails once more with the known faults mended: halves of surrogate pairs (C14),
/// raw control characters in strings (J2), and `NaN`, the infinities and numbers beyond every `f64`, which become null (M8).
///
/// Arguments that are no string become one first, since a `Value` would not keep their numbers (T20).
pub(super) fn parse(json: &str) -> Option<Value> {
    let json = &values_as_text(json);
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&mend(json)))
        .ok()
}

/// The same JSON with every value of a key `arguments` that is an object, a list, a number or a truth value replaced by
/// a string of its text, without the white space between its tokens. An empty object stays: it only keeps the place.
fn values_as_text(json: &str) -> String {
    const KEY: &str = "\"arguments\"";
    let tokens = tokens(json);
    let mut out = String::new();
    let mut at = 0;
    while at < tokens.len() {
        out.push_str(tokens[at]);
        let is_key = tokens[at] == KEY && tokens.get(at + 1) == Some(&":");
        at += 1;
        if !is_key {
            continue;
        }
        out.push(':');
        at += 1;
        let value = value_length(&tokens[at..]);
        let text = tokens[at..at + value].concat();
        if value > 0 && text != "{}" && text != "null" && !text.starts_with('"') {
            out.push_str(&Value::from(text).to_string());
            at += value;
        }
    }
    out
}

/// How many tokens the first value of a text takes; 0 where it is cut off.
fn value_length(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "[" => depth += 1,
            "}" | "]" if depth == 0 => return 0,
            "}" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    0
}

/// Marks, strings and words of JSON, without what stands between them.
fn tokens(json: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = json.trim_start_matches(SPACE);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(DELIMITERS).unwrap_or(rest.len()),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind.trim_start_matches(SPACE);
    }
    tokens
}

const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];
const DELIMITERS: [char; 11] = [' ', '\n', '\r', '\t', '"', '{', '}', '[', ']', ',', ':'];

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
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
    if let Some(word) = word {
        return ("null".to_owned(), word.len());
    }
    if first != '-' && !first.is_ascii_digit() {
        return (first.to_string(), first.len_utf8());
    }
    let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let number = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
    let too_large = number.parse().is_ok_and(f64::is_infinite);
    let piece = if too_large { "null" } else { number };
    (piece.to_owned(), number.len())
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
