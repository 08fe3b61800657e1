//! Makes untrusted text safe to print: it cannot control the terminal that shows it.

/// Escapes all control characters, so that the text also stays on one line.
pub(crate) fn printable(text: &str) -> String {
    escape(text, char::is_control)
}

/// Escapes all control characters but tabs, for a line of text or code.
pub(crate) fn printable_line(line: &str) -> String {
    escape(line, |c| c.is_control() && c != '\t')
}

/// Escapes all control characters but tabs and line feeds, for a text of several lines.
pub(crate) fn printable_text(text: &str) -> String {
    escape(text, |c| c.is_control() && !matches!(c, '\t' | '\n'))
}

fn escape(text: &str, is_control: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) || is_bidi_control(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether the character changes the direction of the text after it, which can make a line show other text than it holds.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_line};

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("\u{1b}[2Jx\u{9b}y\r"), "\\u{1b}[2Jx\\u{9b}y\\r");
        assert_eq!(printable("a\tb\nc\u{7f}"), "a\\tb\\nc\\u{7f}");
        assert_eq!(printable("safe\u{202e}exe.txt"), "safe\\u{202e}exe.txt");
        assert_eq!(printable_line("\tif x\u{8} {"), "\tif x\\u{8} {");
    }

    #[test]
    fn other_text_is_unchanged() {
        let text = "Grüße, 你好 👩‍👩‍👧 \u{200f}שלום \\ \"";
        assert_eq!(printable(text), text);
    }
}
