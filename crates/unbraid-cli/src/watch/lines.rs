//! Text as it streams, cut into lines: each stands on the terminal as a whole, beside those of other choices.

/// What a choice's line is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Voice {
    #[default]
    Content,
    Reasoning,
    Refusal,
    Call,
}

/// One line of a choice, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) voice: Voice,
    pub(crate) text: String,
}

/// Columns of a line that is still growing; then it is printed up to its last gap, or nobody would see it grow.
const COLUMNS: usize = 72;

/// Columns of a line without a gap: addresses stay whole, and what has no gaps at all is still printed as it grows.
const COLUMNS_WITHOUT_GAP: usize = 4 * COLUMNS;

/// Cuts one choice's text into lines. Which lines these are does not depend on how the text was cut before.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    voice: Voice,
    /// The line that is not complete yet.
    held: String,
}

impl Lines {
    /// Takes the next piece of a text and gives the lines that are complete with it.
    pub(crate) fn push(&mut self, voice: Voice, piece: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        if voice != self.voice {
            lines.extend(self.end());
            self.voice = voice;
        }
        self.held.push_str(piece);
        let mut rest = self.held.as_str();
        while let Some((line, more)) = cut(rest) {
            lines.push(Line {
                voice,
                text: line.to_owned(),
            });
            rest = more;
        }
        self.held = rest.to_owned();
        lines
    }

    /// Nothing follows: the line that was still growing, if there is one.
    pub(crate) fn end(&mut self) -> Option<Line> {
        let text = std::mem::take(&mut self.held);
        let voice = self.voice;
        (!text.is_empty()).then_some(Line { voice, text })
    }
}

/// The first line of a text, and what stands behind it; `None` if the line may still grow.
fn cut(text: &str) -> Option<(&str, &str)> {
    let mut indented = true;
    let mut gap = None;
    for (column, (at, c)) in text.char_indices().enumerate() {
        match c {
            '\n' => {
                let (line, rest) = split(text, at, 1);
                return Some((line.strip_suffix('\r').unwrap_or(line), rest));
            }
            ' ' | '\t' if indented => {}
            ' ' | '\t' => gap = Some(at),
            _ => {
                indented = false;
                // Only before a word: white space may be the end of the line.
                if column >= COLUMNS
                    && let Some(gap) = gap
                {
                    return Some(split(text, gap, 1));
                }
            }
        }
        if column >= COLUMNS_WITHOUT_GAP {
            return Some(split(text, at, 0));
        }
    }
    None
}

/// What stands before a character, and what behind the next `skipped` bytes.
fn split(text: &str, at: usize, skipped: usize) -> (&str, &str) {
    (
        text.get(..at).unwrap_or_default(),
        text.get(at + skipped..).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::{Lines, Voice};

    /// Cuts a text into lines, in pieces of every size.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let chars: Vec<char> = text.chars().collect();
        for size in 1..=chars.len() {
            let mut lines = Lines::default();
            let mut cut = Vec::new();
            for piece in chars.chunks(size) {
                let piece: String = piece.iter().collect();
                cut.extend(lines.push(Voice::Content, &piece));
            }
            cut.extend(lines.end());
            let cut: Vec<String> = cut.into_iter().map(|line| line.text).collect();
            assert_eq!(cut, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_ends_at_its_newline() {
        check("one\ntwo\n\n  three", &["one", "two", "", "  three"]);
        check("one\r\ntwo\r", &["one", "two\r"]);
        check("\n", &[""]);
    }

    #[test]
    fn a_long_line_is_cut_at_its_last_gap() {
        let words = "word ".repeat(40);
        let line = "word ".repeat(14);
        check(
            &words,
            &[line.trim_end(), line.trim_end(), &"word ".repeat(12)],
        );
        let full = "x".repeat(72);
        check(&format!("{full} y"), &[&full, "y"]);
        check(&format!("{full} \ny"), &[&format!("{full} "), "y"]);
        check(&format!("a {full} y"), &["a", &full, "y"]);
    }

    #[test]
    fn a_word_stays_whole_within_reason() {
        let word = "x".repeat(200);
        check(&format!("  {word} y"), &[&format!("  {word}"), "y"]);
        let wide = "雨".repeat(300);
        check(&wide, &[&"雨".repeat(288), &"雨".repeat(12)]);
        check(&" ".repeat(300), &[&" ".repeat(288), &" ".repeat(12)]);
    }

    #[test]
    fn another_voice_begins_a_line() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(Voice::Reasoning, "hm"), []);
        let ended = lines.push(Voice::Content, "so");
        assert_eq!(ended[0].text, "hm");
        assert_eq!(ended[0].voice, Voice::Reasoning);
        assert_eq!(lines.end().unwrap().voice, Voice::Content);
        assert_eq!(lines.end(), None);
    }
}
