//! Slow references for the scanner, based on `serde_json`.

use crate::{CallStatus, depth::is_deeper_than, limits::MAX_ARGUMENT_DEPTH};

/// Does what `check` does, with `serde_json` and in several passes.
pub(super) fn slow_check(text: &str) -> CallStatus {
    if text.trim().is_empty() {
        return CallStatus::EmptyAsObject;
    }
    if is_deeper_than(text, MAX_ARGUMENT_DEPTH) {
        return CallStatus::Invalid;
    }
    match count_values(text) {
        Values::One if has_lone_surrogate(text) => CallStatus::Repaired,
        Values::One => CallStatus::Complete,
        Values::PlaceholderAndOne => CallStatus::Repaired,
        Values::Many => CallStatus::Concatenated,
        Values::Cut | Values::Wrong => judge_repaired(text),
    }
}

/// Whether a string contains a raw control character, which JSON forbids and models write (J1 to J3).
fn judge_repaired(text: &str) -> CallStatus {
    match count_values(&escape_controls(text)) {
        Values::One | Values::PlaceholderAndOne => CallStatus::Repaired,
        Values::Many => CallStatus::Concatenated,
        Values::Cut => CallStatus::Truncated,
        Values::Wrong => CallStatus::Invalid,
    }
}

/// Whether a text is JSON by its grammar, but has a string that `serde_json` refuses (J17).
fn has_lone_surrogate(value: &str) -> bool {
    let error = serde_json::from_str::<serde_json::Value>(value).err();
    error.is_some_and(|error| !error.to_string().contains("number out of range"))
}

enum Values {
    One,
    PlaceholderAndOne,
    Many,
    Cut,
    Wrong,
}

fn count_values(text: &str) -> Values {
    let mut values = 0_usize;
    let mut placeholder = false;
    let stream =
        serde_json::Deserializer::from_str(text).into_iter::<&serde_json::value::RawValue>();
    for value in stream {
        match value {
            Ok(value) => {
                placeholder |= values == 0 && value.get() == "{}";
                values += 1;
            }
            Err(error) if error.is_eof() && (values == 0 || placeholder && values == 1) => {
                return Values::Cut;
            }
            Err(_) => return Values::Wrong,
        }
    }
    match values {
        1 => Values::One,
        2 if placeholder => Values::PlaceholderAndOne,
        _ => Values::Many,
    }
}

/// The text with every control character inside a string escaped, and everything else unchanged.
///
/// A backslash before a raw control character is escaped as well, so that both are kept (J3).
pub(super) fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string && c < ' ' {
            if escaped {
                out.push('\\');
            }
            push_escape(&mut out, c);
            escaped = false;
            continue;
        }
        match c {
            '"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && c == '\\' && !escaped;
        out.push(c);
    }
    out
}

fn push_escape(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c => {
            let digit = |n: u32| char::from_digit(n, 16).unwrap_or('0');
            out.push_str("\\u00");
            out.push(digit(c as u32 >> 4));
            out.push(digit(c as u32 & 15));
        }
    }
}
