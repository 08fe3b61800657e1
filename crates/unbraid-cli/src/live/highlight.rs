//! Colours the arguments of a call: keys in the colour of the choice, values bold, punctuation dimmed.

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::style::{BOLD, DIM};

/// How far back a row looks for the start of its line. Beyond it, a string may be coloured as something else.
const MAX_BYTES: usize = 64 * 1024;

/// Styles one wrapped row of indented JSON, which continues a line of this text.
pub(super) fn json_row<'r>(before: &str, row: &'r str, key: Style) -> Line<'r> {
    let mut in_string = ends_in_string(before);
    let mut spans = Vec::new();
    let mut rest = row;
    while !rest.is_empty() {
        let (length, style) = if in_string {
            let end = string_end(rest);
            let is_key = end.is_some_and(|end| is_before_colon(rest, end));
            in_string = end.is_none();
            (end.unwrap_or(rest.len()), string_style(is_key, key))
        } else if let Some(inner) = rest.strip_prefix('"') {
            let end = string_end(inner).map(|end| end + 1);
            let is_key = end.is_some_and(|end| is_before_colon(rest, end));
            in_string = end.is_none();
            (end.unwrap_or(rest.len()), string_style(is_key, key))
        } else {
            let is_mark = |c: char| "{}[],: ".contains(c);
            let marks = rest.starts_with(is_mark);
            let end = rest.find(|c| c == '"' || is_mark(c) != marks);
            (end.unwrap_or(rest.len()), if marks { DIM } else { BOLD })
        };
        let (token, more) = rest.split_at_checked(length).unwrap_or((rest, ""));
        spans.push(Span::styled(token, style));
        rest = more;
    }
    Line::from(spans)
}

fn string_style(is_key: bool, key: Style) -> Style {
    if is_key {
        key.add_modifier(Modifier::BOLD)
    } else {
        key
    }
}

fn is_before_colon(text: &str, end: usize) -> bool {
    text.get(end..).is_some_and(|rest| rest.starts_with(':'))
}

/// The end of a string after its closing quote, or `None` if it goes on in the next row.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some(offset + 1),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// Whether the text before a row ends within a string. A string never contains a line end.
fn ends_in_string(before: &str) -> bool {
    let bytes = before.as_bytes();
    let bytes = bytes
        .get(bytes.len().saturating_sub(MAX_BYTES)..)
        .unwrap_or_default();
    let line = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    let (mut in_string, mut escaped) = (false, false);
    for byte in bytes.get(line..).unwrap_or_default() {
        match byte {
            _ if escaped => escaped = false,
            b'"' => in_string = !in_string,
            b'\\' => escaped = in_string,
            _ => {}
        }
    }
    in_string
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens of a row: `k` for a key or a string of its colour, `b` for other values, `d` for punctuation.
    fn tokens(before: &str, row: &str) -> String {
        let key = Style::new().add_modifier(Modifier::ITALIC);
        let line = json_row(before, row, key);
        let name = |span: &Span<'_>| {
            let kind = match span.style {
                style if style == DIM => 'd',
                style if style == BOLD => 'b',
                style if style == key => 's',
                _ => 'k',
            };
            format!("{kind}<{}>", span.content)
        };
        line.spans.iter().map(name).collect()
    }

    #[test]
    fn keys_values_and_punctuation_differ() {
        assert_eq!(tokens("", r#"  "a": 12,"#), r#"d<  >k<"a">d<: >b<12>d<,>"#);
        assert_eq!(tokens("", r#""x\"y","#), r#"s<"x\"y">d<,>"#);
    }

    #[test]
    fn a_string_goes_on_in_the_next_row() {
        assert_eq!(tokens("\n  \"a\": \"Os", "lo\","), "s<lo\">d<,>");
        assert_eq!(tokens("\n\"a\": \"O\\\"s", "lo"), "s<lo>");
        assert_eq!(tokens("\n\"a\": \"Oslo\",\n", "1"), "b<1>");
    }
}
