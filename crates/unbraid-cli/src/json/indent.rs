//! Indents JSON text as `serde_json` indents values, but leaves numbers and strings as they are.

use std::{
    fmt,
    io::{self, Write},
};

/// Indents JSON text that has no white space between its tokens, and that arrives in parts: whole tokens, or parts of one
/// string.
///
/// Deep nesting can make the indentation a hundred times as long as the text, so it is written directly and never buffered
/// as a whole. Each write to the output holds whole characters.
#[derive(Debug)]
pub(super) struct Indenter<W> {
    out: W,
    /// What is written next, up to [`BUFFER_BYTES`] and one part.
    buffer: Vec<u8>,
    depth: usize,
    state: State,
    /// The error of the output: a [`fmt::Error`] has no room for it.
    error: Option<io::Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Token,
    /// After an opening bracket, which ends its line unless the closing one follows.
    Opened,
    String,
    /// After a backslash in a string.
    Escape,
}

const BUFFER_BYTES: usize = 64 * 1024;

const SPACES: &[u8] = &[b' '; 64];

impl<W: Write> Indenter<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            buffer: Vec::new(),
            depth: 0,
            state: State::Token,
            error: None,
        }
    }

    /// Writes what is left, and returns the output with its first error.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.write_buffer()?;
        Ok(self.out)
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written
    }

    /// Writes a part of the text.
    pub(super) fn push(&mut self, json: &str) -> io::Result<()> {
        let mut rest = json.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = match self.state {
                State::Escape => {
                    self.state = State::String;
                    self.keep(rest, usize::from(first.is_ascii()))
                }
                State::String => {
                    let end = memchr::memchr2(b'"', b'\\', rest);
                    match end.and_then(|end| rest.get(end)) {
                        Some(b'"') => self.state = State::Token,
                        Some(_) => self.state = State::Escape,
                        None => {}
                    }
                    let length = end.map_or(rest.len(), |end| end + 1);
                    self.keep_string(rest, length)?
                }
                State::Token | State::Opened => {
                    self.push_token(*first)?;
                    match first {
                        b'{' | b'[' | b'}' | b']' | b',' | b':' | b'"' => after,
                        _ => {
                            let length = rest.iter().position(|byte| is_structural(*byte));
                            self.keep(rest, length.unwrap_or(rest.len()))
                        }
                    }
                }
            };
        }
        Ok(())
    }

    /// Writes a structural character, or the line that precedes another token.
    fn push_token(&mut self, first: u8) -> io::Result<()> {
        let opened = std::mem::replace(&mut self.state, State::Token) == State::Opened;
        let closes = matches!(first, b'}' | b']');
        if closes {
            self.depth = self.depth.saturating_sub(1);
        }
        if opened != closes {
            self.new_line()?;
        }
        match first {
            b'{' | b'[' => {
                self.buffer.push(first);
                self.depth += 1;
                self.state = State::Opened;
            }
            b'}' | b']' => self.buffer.push(first),
            b',' => {
                self.buffer.push(first);
                self.new_line()?;
            }
            b':' => self.buffer.extend_from_slice(b": "),
            b'"' => {
                self.buffer.push(first);
                self.state = State::String;
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the first bytes, and returns the others.
    fn keep<'t>(&mut self, text: &'t [u8], length: usize) -> &'t [u8] {
        let (kept, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
        self.buffer.extend_from_slice(kept);
        rest
    }

    /// As [`keep`](Self::keep), but a long string is not buffered, however many escapes it has.
    fn keep_string<'t>(&mut self, text: &'t [u8], length: usize) -> io::Result<&'t [u8]> {
        // What was kept last ends with a quote or an escape, so with a whole character.
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_buffer()?;
        }
        if length < BUFFER_BYTES {
            return Ok(self.keep(text, length));
        }
        self.write_buffer()?;
        let (long, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
        self.out.write_all(long)?;
        Ok(rest)
    }

    fn new_line(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        let mut spaces = 2 * self.depth;
        while spaces > 0 {
            let some = spaces.min(SPACES.len());
            self.buffer
                .extend_from_slice(SPACES.get(..some).unwrap_or_default());
            spaces -= some;
        }
        // Between two tokens, so it ends with a whole character.
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_buffer()?;
        }
        Ok(())
    }
}

fn is_structural(byte: u8) -> bool {
    matches!(byte, b'{' | b'[' | b'}' | b']' | b',' | b':' | b'"')
}

impl<W: Write> fmt::Write for Indenter<W> {
    fn write_str(&mut self, json: &str) -> fmt::Result {
        self.push(json).map_err(|error| {
            self.error.get_or_insert(error);
            fmt::Error
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BUFFER_BYTES, Indenter};

    fn indented_parts<'p>(parts: impl Iterator<Item = &'p str>) -> String {
        let mut indenter = Indenter::new(Vec::new());
        for part in parts {
            indenter.push(part).unwrap();
        }
        String::from_utf8(indenter.finish().unwrap()).unwrap()
    }

    fn indented(json: &str) -> String {
        indented_parts([json].into_iter())
    }

    #[test]
    fn a_long_string_with_escapes_is_written_while_it_is_read() {
        let text = format!("\"{}\"", "0123456789é\\n".repeat(50_000));
        let mut indenter = Indenter::new(Vec::new());
        indenter.push(&text).unwrap();
        assert!(indenter.buffer.len() < 2 * BUFFER_BYTES);
        assert_eq!(indenter.finish().unwrap(), text.as_bytes());
    }

    #[test]
    fn values_are_indented_like_serde_json() {
        let values = [
            json!({}),
            json!([]),
            json!("a\"b{,}:\\"),
            json!({"a": [], "b": {}, "c": [1, [2, {}], {"d": null}], "é\\\"": "x, y: [z]"}),
            json!([{}, [[[]]], "", "\\", -1.5, true]),
            json!([
                ["long ".repeat(BUFFER_BYTES)],
                (0..BUFFER_BYTES).collect::<Vec<_>>()
            ]),
        ];
        for value in values {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(indented(&value.to_string()), expected);
        }
    }

    #[test]
    fn parts_of_strings_and_tokens_make_the_same_text() {
        let value = json!({"a\\\"é": ["b\\", {}, []], "c": "d\"e\n", "f": {"g": 1.5}});
        let text = value.to_string();
        let expected = serde_json::to_string_pretty(&value).unwrap();
        let is_cut = |c: char| !c.is_ascii_alphanumeric() && c != '.';
        assert_eq!(indented_parts(text.split_inclusive(is_cut)), expected);
    }

    #[test]
    fn deep_nesting_is_indented_in_full() {
        let text = "[".repeat(100) + &"]".repeat(100);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            indented(&text),
            serde_json::to_string_pretty(&value).unwrap()
        );
    }

    #[test]
    fn numbers_are_left_unchanged() {
        assert_eq!(indented("[1e400,0.10]"), "[\n  1e400,\n  0.10\n]");
        let _value: Value = serde_json::from_str(&indented(r#"{"a":0.10}"#)).unwrap();
    }
}
