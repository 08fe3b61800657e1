//! Text of strangers, made harmless: it cannot command the terminal that shows it.

/// The text with its control characters escaped, so that it stays on one line.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, char::is_control)
}

/// The same, but tabs are kept: for a line of text or code.
pub(crate) fn printable_line(line: &str) -> String {
    escaped(line, |c| c.is_control() && c != '\t')
}

fn escaped(text: &str, harmful: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if harmful(c) || turns_text(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Marks that turn the direction of what follows, so that a line shows other text than it holds.
pub(crate) fn turns_text(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_line};

    #[test]
    fn what_commands_a_terminal_is_escaped() {
        assert_eq!(printable("\u{1b}[2Jx\u{9b}y\r"), "\\u{1b}[2Jx\\u{9b}y\\r");
        assert_eq!(printable("a\tb\nc\u{7f}"), "a\\tb\\nc\\u{7f}");
        assert_eq!(printable("safe\u{202e}exe.txt"), "safe\\u{202e}exe.txt");
        assert_eq!(printable_line("\tif x\u{8} {"), "\tif x\\u{8} {");
    }

    #[test]
    fn other_text_is_kept() {
        let text = "Grüße, 你好 👩‍👩‍👧 \u{200f}שלום \\ \"";
        assert_eq!(printable(text), text);
    }
}
