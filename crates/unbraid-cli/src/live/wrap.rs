//! A text that grows, wrapped into rows of a terminal. Only what is new is wrapped, and no row commands the terminal.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::printable::printable;

/// The rows of one text at one width.
#[derive(Debug, Default)]
pub(super) struct Rows {
    width: usize,
    /// Bytes of the text that were wrapped.
    seen: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The byte of the text that it begins with.
    pub(super) start: usize,
    pub(super) text: String,
}

impl Rows {
    /// Wraps what was added to the text since the last time, or all of it if the width is another.
    pub(super) fn update(&mut self, text: &str, width: usize) {
        if width != self.width || text.len() < self.seen {
            self.rows.clear();
            self.width = width;
        } else if text.len() == self.seen {
            return;
        }
        self.seen = text.len();
        // The last row may go on; the ones before it are full, whatever follows.
        let mut start = self.rows.pop().map_or(0, |row| row.start);
        while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
            let (row, taken) = row(rest, width);
            self.rows.push(Row { start, text: row });
            start += taken;
        }
    }

    /// The text is another one from now on.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn get(&self, row: usize) -> Option<&Row> {
        self.rows.get(row)
    }

    /// The row in which a byte of the text stands.
    pub(super) fn row_of(&self, byte: usize) -> usize {
        let behind = self.rows.partition_point(|row| row.start <= byte);
        behind.saturating_sub(1)
    }
}

/// The first row of a text, and how many bytes of the text it takes.
fn row(text: &str, width: usize) -> (String, usize) {
    let mut shown = String::new();
    let mut column = 0;
    let mut gap = None;
    for (at, grapheme) in text.grapheme_indices(true) {
        let behind = at + grapheme.len();
        if matches!(grapheme, "\n" | "\r\n") {
            return (shown, behind);
        }
        let piece = piece(grapheme, column);
        let wide = piece.width();
        if column + wide > width && column > 0 {
            if grapheme == " " {
                return (shown, behind);
            }
            let (kept, taken) = gap.unwrap_or((shown.len(), at));
            shown.truncate(kept);
            return (shown, taken);
        }
        // An indentation is no gap: a row of nothing but white space would stand before its word.
        if grapheme == " " && !shown.trim_start().is_empty() {
            gap = Some((shown.len(), behind));
        }
        shown.push_str(&piece);
        column += wide;
    }
    (shown, text.len())
}

/// What is shown of a grapheme.
fn piece(grapheme: &str, column: usize) -> String {
    if grapheme == "\t" {
        return " ".repeat(TAB - column % TAB);
    }
    // Marks pile up on one letter without end; a terminal shows a few of them.
    let some: String = grapheme.chars().take(MAX_CHARS).collect();
    printable(&some)
}

const TAB: usize = 4;

/// Characters of one grapheme; a family of emoji has seven, and a flag of a region as many.
const MAX_CHARS: usize = 16;

#[cfg(test)]
mod tests {
    use super::Rows;

    /// Wraps a text, added to in pieces of every size.
    #[track_caller]
    fn check(width: usize, text: &str, expected: &[&str]) {
        let chars: Vec<char> = text.chars().collect();
        for size in 1..=chars.len() {
            let mut rows = Rows::default();
            let mut so_far = String::new();
            for piece in chars.chunks(size) {
                so_far.extend(piece);
                rows.update(&so_far, width);
            }
            let rows: Vec<&str> = rows.rows.iter().map(|row| row.text.as_str()).collect();
            assert_eq!(rows, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn words_stay_whole() {
        check(9, "one two three four", &["one two", "three", "four"]);
        check(7, "one two three", &["one two", "three"]);
        check(5, "abcdefgh ij", &["abcde", "fgh", "ij"]);
        check(6, "    abcdef", &["    ab", "cdef"]);
    }

    #[test]
    fn lines_end_where_the_text_says() {
        check(9, "a\n\nb\r\nc", &["a", "", "b", "c"]);
        check(3, "abc\nd", &["abc", "d"]);
    }

    #[test]
    fn wide_letters_take_two_columns() {
        check(5, "雨雨雨", &["雨雨", "雨"]);
    }

    #[test]
    fn nothing_commands_the_terminal() {
        check(
            40,
            "a\u{1b}[2Jb\u{9b}\u{202e}",
            &["a\\u{1b}[2Jb\\u{9b}\\u{202e}"],
        );
        check(8, "\tx\ty", &["    x   ", "y"]);
        let pile = format!("a{}", "\u{301}".repeat(1000));
        let mut rows = Rows::default();
        rows.update(&pile, 8);
        assert!(rows.rows[0].text.len() < 64);
    }

    #[test]
    fn another_width_wraps_again() {
        let mut rows = Rows::default();
        rows.update("one two", 3);
        assert_eq!((rows.len(), rows.row_of(5)), (2, 1));
        rows.update("one two", 20);
        assert_eq!((rows.len(), rows.row_of(5)), (1, 0));
    }
}
