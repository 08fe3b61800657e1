//! Cuts streamed text into lines. The terminal shows each line as a whole, between those of other choices.

/// What a line of a choice contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LineKind {
    #[default]
    Content,
    Reasoning,
    Refusal,
    ToolCall,
}

/// One line of a choice, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) kind: LineKind,
    pub(crate) text: String,
}

/// The width from which an incomplete line is printed, up to its last space. Otherwise a long paragraph would appear only at
/// its end.
const COLUMNS: usize = 72;

/// The width from which a line without a space is printed. It keeps URLs in one line, and still shows text that has no
/// spaces at all.
const COLUMNS_WITHOUT_SPACE: usize = 4 * COLUMNS;

/// Cuts the text of one choice into lines. The lines do not depend on how the deltas cut the text.
#[derive(Debug, Default)]
pub(crate) struct LineCutter {
    /// Whether long lines are cut at a width.
    wraps: bool,
    kind: LineKind,
    /// The incomplete line.
    partial: String,
}

impl LineCutter {
    /// Creates a cutter that cuts long lines, too, for a reader who watches them grow. Programs need the lines as they are.
    pub(crate) fn wrapping(wraps: bool) -> Self {
        Self {
            wraps,
            ..Self::default()
        }
    }

    /// Adds the next delta of a text, and returns the lines that it completes. A text of another kind begins a new line.
    pub(crate) fn push(&mut self, kind: LineKind, delta: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        if kind != self.kind {
            lines.extend(self.finish());
            self.kind = kind;
        }
        if !self.wraps {
            self.push_pieces(delta, &mut lines);
            return lines;
        }
        self.partial.push_str(delta);
        let mut rest = self.partial.as_str();
        while let Some((line, more)) = cut(rest) {
            lines.push(Line {
                kind,
                text: line.to_owned(),
            });
            rest = more;
        }
        self.partial = rest.to_owned();
        lines
    }

    /// Adds a delta without wrapping. Only the delta is searched, because a line may be as long as the whole text.
    fn push_pieces(&mut self, delta: &str, lines: &mut Vec<Line>) {
        for piece in delta.split_inclusive('\n') {
            self.partial.push_str(piece);
            if let Some(line) = self.partial.strip_suffix('\n') {
                lines.push(Line {
                    kind: self.kind,
                    text: line.strip_suffix('\r').unwrap_or(line).to_owned(),
                });
                self.partial.clear();
            }
        }
    }

    /// Ends the text, and returns the incomplete line if there is one.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        let text = std::mem::take(&mut self.partial);
        let kind = self.kind;
        (!text.is_empty()).then_some(Line { kind, text })
    }
}

/// Splits off the first line of a text, or returns `None` if the line may still grow.
fn cut(text: &str) -> Option<(&str, &str)> {
    let mut in_indentation = true;
    let mut last_space = None;
    for (column, (offset, c)) in text.char_indices().enumerate() {
        match c {
            '\n' => {
                let (line, rest) = split(text, offset, 1);
                return Some((line.strip_suffix('\r').unwrap_or(line), rest));
            }
            ' ' | '\t' if in_indentation => {}
            ' ' | '\t' => last_space = Some(offset),
            _ => {
                in_indentation = false;
                // A line is cut only before a word: white space may turn out to be the end of the line.
                if column >= COLUMNS
                    && let Some(space) = last_space
                {
                    return Some(split(text, space, 1));
                }
            }
        }
        if column >= COLUMNS_WITHOUT_SPACE {
            return Some(split(text, offset, 0));
        }
    }
    None
}

/// Splits a text at an offset, and skips some bytes there.
fn split(text: &str, offset: usize, skipped: usize) -> (&str, &str) {
    (
        text.get(..offset).unwrap_or_default(),
        text.get(offset + skipped..).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::{LineCutter, LineKind};

    /// Cuts a text into lines, in chunks of every size.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let chars: Vec<char> = text.chars().collect();
        for size in 1..=chars.len() {
            let mut lines = LineCutter::wrapping(true);
            let mut cut = Vec::new();
            for chunk in chars.chunks(size) {
                let chunk: String = chunk.iter().collect();
                cut.extend(lines.push(LineKind::Content, &chunk));
            }
            cut.extend(lines.finish());
            let cut: Vec<String> = cut.into_iter().map(|line| line.text).collect();
            assert_eq!(cut, expected, "in chunks of {size}");
        }
    }

    #[test]
    fn a_line_ends_at_its_newline() {
        check("one\ntwo\n\n  three", &["one", "two", "", "  three"]);
        check("one\r\ntwo\r", &["one", "two\r"]);
        check("\n", &[""]);
    }

    #[test]
    fn a_long_line_is_cut_at_its_last_space() {
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
    fn a_word_is_cut_only_beyond_the_limit() {
        let word = "x".repeat(200);
        check(&format!("  {word} y"), &[&format!("  {word}"), "y"]);
        let wide = "雨".repeat(300);
        check(&wide, &[&"雨".repeat(288), &"雨".repeat(12)]);
        check(&" ".repeat(300), &[&" ".repeat(288), &" ".repeat(12)]);
    }

    #[test]
    fn a_line_is_not_cut_without_wrapping() {
        let mut lines = LineCutter::wrapping(false);
        let long = "word ".repeat(100);
        assert_eq!(lines.push(LineKind::Content, &long), []);
        assert_eq!(lines.push(LineKind::Content, "\r\nx")[0].text, long);
        assert_eq!(lines.finish().unwrap().text, "x");
    }

    #[test]
    fn text_of_another_kind_begins_a_line() {
        let mut lines = LineCutter::default();
        assert_eq!(lines.push(LineKind::Reasoning, "hm"), []);
        let ended = lines.push(LineKind::Content, "so");
        assert_eq!(ended[0].text, "hm");
        assert_eq!(ended[0].kind, LineKind::Reasoning);
        assert_eq!(lines.finish().unwrap().kind, LineKind::Content);
        assert_eq!(lines.finish(), None);
    }
}
