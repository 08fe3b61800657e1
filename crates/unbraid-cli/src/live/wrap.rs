//! Wraps a growing text into rows of a terminal. Only the new text is wrapped, and rows are safe to print.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::printable::printable;

/// The rows of one text at one width.
#[derive(Debug, Default)]
pub(super) struct Rows {
    width: usize,
    /// How many bytes of the text have been wrapped.
    wrapped: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The offset in the text at which the row begins.
    pub(super) start: usize,
    pub(super) text: String,
}

impl Rows {
    /// Wraps the text that was added since the last call, or all of it if the width has changed.
    pub(super) fn update(&mut self, text: &str, width: usize) {
        if width != self.width || text.len() < self.wrapped {
            self.rows.clear();
            self.width = width;
        } else if text.len() == self.wrapped {
            return;
        }
        self.wrapped = text.len();
        // The last row may continue. Those before it are final: further text never changes how they were filled.
        let mut start = self.rows.pop().map_or(0, |row| row.start);
        while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
            let (row, length) = first_row(rest, width);
            self.rows.push(Row { start, text: row });
            start += length;
        }
    }

    /// Discards all rows, because the text has been replaced.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn get(&self, row: usize) -> Option<&Row> {
        self.rows.get(row)
    }

    /// The row that contains a byte of the text.
    pub(super) fn row_of(&self, byte: usize) -> usize {
        let after = self.rows.partition_point(|row| row.start <= byte);
        after.saturating_sub(1)
    }
}

/// Returns the first row of a text, and how many bytes of the text it consumes.
fn first_row(text: &str, width: usize) -> (String, usize) {
    let mut row = String::new();
    let mut column = 0;
    let mut last_space = None;
    for (offset, grapheme) in text.grapheme_indices(true) {
        let after = offset + grapheme.len();
        if matches!(grapheme, "\n" | "\r\n") {
            return (row, after);
        }
        let displayed = displayed(grapheme, column);
        let columns = displayed.width();
        if column + columns > width && column > 0 {
            if grapheme == " " {
                return (row, after);
            }
            let (row_len, consumed) = last_space.unwrap_or((row.len(), offset));
            row.truncate(row_len);
            return (row, consumed);
        }
        // A row is never cut in its indentation: that would leave a row of white space before a long word.
        if grapheme == " " && !row.trim_start().is_empty() {
            last_space = Some((row.len(), after));
        }
        row.push_str(&displayed);
        column += columns;
    }
    (row, text.len())
}

/// The characters that show a grapheme in this column.
fn displayed(grapheme: &str, column: usize) -> String {
    if grapheme == "\t" {
        return " ".repeat(TAB - column % TAB);
    }
    // A grapheme can have any number of combining marks, but a terminal shows only a few of them.
    let shortened: String = grapheme.chars().take(MAX_CHARS).collect();
    printable(&shortened)
}

const TAB: usize = 4;

/// How many characters of one grapheme are shown. An emoji of a family and the flag of a region have seven.
const MAX_CHARS: usize = 16;

#[cfg(test)]
mod tests {
    use super::Rows;

    /// Wraps a text that grows in chunks of every size.
    #[track_caller]
    fn check(width: usize, text: &str, expected: &[&str]) {
        let chars: Vec<char> = text.chars().collect();
        for size in 1..=chars.len() {
            let mut rows = Rows::default();
            let mut received = String::new();
            for chunk in chars.chunks(size) {
                received.extend(chunk);
                rows.update(&received, width);
            }
            let rows: Vec<&str> = rows.rows.iter().map(|row| row.text.as_str()).collect();
            assert_eq!(rows, expected, "in chunks of {size}");
        }
    }

    #[test]
    fn words_are_not_cut() {
        check(9, "one two three four", &["one two", "three", "four"]);
        check(7, "one two three", &["one two", "three"]);
        check(5, "abcdefgh ij", &["abcde", "fgh", "ij"]);
        check(6, "    abcdef", &["    ab", "cdef"]);
    }

    #[test]
    fn line_ends_begin_a_new_row() {
        check(9, "a\n\nb\r\nc", &["a", "", "b", "c"]);
        check(3, "abc\nd", &["abc", "d"]);
    }

    #[test]
    fn wide_letters_take_two_columns() {
        check(5, "雨雨雨", &["雨雨", "雨"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        check(
            40,
            "a\u{1b}[2Jb\u{9b}\u{202e}",
            &["a\\u{1b}[2Jb\\u{9b}\\u{202e}"],
        );
        check(8, "\tx\ty", &["    x   ", "y"]);
        let marks = format!("a{}", "\u{301}".repeat(1000));
        let mut rows = Rows::default();
        rows.update(&marks, 8);
        assert!(rows.rows[0].text.len() < 64);
    }

    #[test]
    fn a_new_width_wraps_all_text_again() {
        let mut rows = Rows::default();
        rows.update("one two", 3);
        assert_eq!((rows.len(), rows.row_of(5)), (2, 1));
        rows.update("one two", 20);
        assert_eq!((rows.len(), rows.row_of(5)), (1, 0));
    }
}
