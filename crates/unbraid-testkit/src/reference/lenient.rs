//! Parses the invalid JSON that servers send.

use serde_json::Value;

/// Parses `json`, if necessary after repairing the known faults: lone surrogate halves (C14), raw control characters in
/// strings (J2), and `NaN`, the infinities and numbers outside the range of `f64`, which become null (M8).
///
/// Arguments that are not a string become one first, because a `Value` would not keep their numbers (T20).
pub(crate) fn parse(json: &str) -> Option<Value> {
    let json = &values_as_text(json);
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&repair(json)))
        .ok()
}

/// Replaces every value of a key `arguments` that is an object, an array, a number or a boolean by a string of its text,
/// without the white space between its tokens. An empty object stays, because it is a placeholder.
fn values_as_text(json: &str) -> String {
    const KEY: &str = "\"arguments\"";
    let tokens = tokens(json);
    let mut out = String::new();
    let mut index = 0;
    while index < tokens.len() {
        out.push_str(tokens[index]);
        let is_key = tokens[index] == KEY && tokens.get(index + 1) == Some(&":");
        index += 1;
        if !is_key {
            continue;
        }
        out.push(':');
        index += 1;
        let value = value_length(&tokens[index..]);
        let text = tokens[index..index + value].concat();
        if value > 0 && text != "{}" && text != "null" && !text.starts_with('"') {
            out.push_str(&Value::from(text).to_string());
            index += value;
        }
    }
    out
}

/// The number of tokens of the first value; 0 if the value is cut off.
fn value_length(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "[" => depth += 1,
            "}" | "]" if depth == 0 => return 0,
            "}" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    0
}

/// The tokens of JSON: punctuation, strings and words, without white space.
fn tokens(json: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = json.trim_start_matches(SPACE);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(DELIMITERS).unwrap_or(rest.len()),
        };
        let (token, remaining) = rest.split_at(length);
        tokens.push(token);
        rest = remaining.trim_start_matches(SPACE);
    }
    tokens
}

const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];
const DELIMITERS: [char; 11] = [' ', '\n', '\r', '\t', '"', '{', '}', '[', ']', ',', ':'];

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether `json` is the beginning of a value, after the same repairs.
pub(super) fn begins(json: &str) -> bool {
    serde_json::from_str::<Value>(&repair(json)).is_err_and(|error| error.is_eof())
}

fn repair(json: &str) -> String {
    let mut repaired = String::new();
    let mut rest = json;
    let mut in_string = false;
    while let Some(first) = rest.chars().next() {
        let (replacement, taken) = if in_string {
            in_text(rest, first)
        } else {
            outside(rest, first)
        };
        in_string ^= first == '"';
        repaired.push_str(&replacement);
        rest = &rest[taken..];
    }
    repaired
}

/// The replacement of the next token outside strings, and the length of that token.
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
    let replacement = if too_large { "null" } else { number };
    (replacement.to_owned(), number.len())
}

/// The replacement of the next unit in a string, and its length: an escape, a pair of escapes, or a character.
fn in_text(rest: &str, first: char) -> (String, usize) {
    if first < ' ' {
        return (format!("\\u{:04x}", u32::from(first)), 1);
    }
    if first != '\\' {
        return (first.to_string(), first.len_utf8());
    }
    match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (rest[..12].to_owned(), 12),
        (Some(half @ 0xd800..=0xdfff), _) => (encode_half(half).to_string(), 6),
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

/// Encodes a surrogate half as a character of the last private use plane, because a `char` cannot be a surrogate. No
/// server sends these characters.
fn encode_half(half: u32) -> char {
    char::from_u32(ENCODED_HALVES + (half - 0xd800)).expect("0x10f000 to 0x10f7ff are characters")
}

fn half(character: char) -> Option<u32> {
    u32::from(character)
        .checked_sub(ENCODED_HALVES)
        .filter(|half| *half < 0x800)
}

/// Whether a character encodes the first half of a pair.
pub(crate) fn is_high_half(character: char) -> bool {
    half(character).is_some_and(|half| half < 0x400)
}

/// Joins adjacent halves in the whole text of a field. The others become U+FFFD.
pub(crate) fn join_halves(text: &str) -> String {
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

/// Replaces each character that UTF-16 has as a pair by its encoded halves, so that texts that were cut in it can be compared.
pub(crate) fn split_halves(text: &str) -> String {
    let halves = |character: char| {
        let units = character.encode_utf16(&mut [0; 2]).to_vec();
        match (&*units, half(character)) {
            (&[high, low], None) => [high, low].map(|unit| encode_half(u32::from(unit))).into(),
            _ => vec![character],
        }
    };
    text.chars().flat_map(halves).collect()
}

/// The encoding of the half 0xd800; the others follow it.
const ENCODED_HALVES: u32 = 0x0010_f000;
