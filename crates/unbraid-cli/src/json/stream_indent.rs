//! Indents the arguments of a call while they stream.

use unbraid::{
    CallKind,
    json::{Partial, PartialOptions, Verdict},
};

/// Indents JSON that arrives in fragments.
///
/// The output only grows, and it differs from the model's text only in white space and in escapes of letters: numbers keep
/// their digits, and duplicate keys stay. Text that is not JSON stays unchanged.
#[derive(Debug)]
pub(crate) struct StreamIndenter {
    /// Checks whether the text is still a prefix of JSON. It builds no value.
    checker: Partial,
    state: State,
    gap: Gap,
    depth: usize,
    /// An incomplete escape, which may become a letter.
    escape: String,
}

/// The position in the JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BetweenTokens,
    /// In a number or a literal.
    Word,
    String,
    /// The text is not JSON, and the rest is not indented.
    Raw,
}

/// The white space before the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    None,
    Space,
    Line,
    /// A line end, unless the container is empty.
    Opened,
}

impl StreamIndenter {
    /// Creates an indenter for a call. The input of a custom tool is any text, so it is never indented.
    pub(crate) fn new(kind: CallKind) -> Self {
        let options = PartialOptions::default().with_max_nodes(0);
        Self {
            checker: Partial::new(options),
            state: match kind {
                CallKind::Custom => State::Raw,
                _ => State::BetweenTokens,
            },
            gap: Gap::None,
            depth: 0,
            escape: String::new(),
        }
    }

    /// Whether the text is one complete array or object, so that no further line is expected.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == State::BetweenTokens && self.depth == 0 && self.gap == Gap::Line
    }

    /// Whether the text turned out not to be JSON, so that it is no longer indented.
    pub(crate) fn is_raw(&self) -> bool {
        self.state == State::Raw
    }

    /// Appends the next fragment, indented, to `out`.
    pub(crate) fn push(&mut self, fragment: &str, out: &mut String) {
        if self.state != State::Raw {
            self.checker.feed(fragment);
            if let Verdict::Invalid { .. } | Verdict::TooDeep { .. } = self.checker.verdict() {
                out.push_str(&self.escape);
                self.state = State::Raw;
            }
        }
        if self.state == State::Raw {
            out.push_str(fragment);
            return;
        }
        for c in fragment.chars() {
            match self.state {
                State::String => self.string(c, out),
                State::BetweenTokens | State::Word | State::Raw => self.token(c, out),
            }
        }
    }

    fn token(&mut self, c: char, out: &mut String) {
        if self.state == State::Word && !is_delimiter(c) {
            return out.push(c);
        }
        self.state = State::BetweenTokens;
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                self.write_gap(out);
                out.push(c);
                self.depth += 1;
                self.gap = Gap::Opened;
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.gap != Gap::Opened {
                    self.gap = Gap::Line;
                    self.write_gap(out);
                }
                out.push(c);
                self.gap = self.gap_after_container();
            }
            ',' => {
                out.push(c);
                self.gap = Gap::Line;
            }
            ':' => {
                out.push(c);
                self.gap = Gap::Space;
            }
            '"' => {
                self.write_gap(out);
                out.push(c);
                self.state = State::String;
            }
            _ => {
                self.write_gap(out);
                out.push(c);
                self.state = State::Word;
            }
        }
    }

    /// Writes the white space before a token.
    fn write_gap(&mut self, out: &mut String) {
        match self.gap {
            Gap::None => {}
            Gap::Space => out.push(' '),
            Gap::Line | Gap::Opened => {
                out.push('\n');
                out.extend(std::iter::repeat_n("  ", self.depth));
            }
        }
        self.gap = Gap::None;
    }

    /// The gap after a container. A further top-level value begins a new line.
    fn gap_after_container(&self) -> Gap {
        if self.depth == 0 {
            Gap::Line
        } else {
            Gap::None
        }
    }

    fn string(&mut self, c: char, out: &mut String) {
        match self.escape.len() {
            0 if c == '"' => {
                out.push(c);
                self.state = State::BetweenTokens;
            }
            0 if c == '\\' => self.escape.push(c),
            // Raw control characters are invalid in JSON strings, and are repaired by escaping them (J1 to J3).
            0 if c.is_control() => out.extend(c.escape_default()),
            0 => out.push(c),
            1 | ESCAPE_AND_BACKSLASH if c != 'u' => {
                self.escape.push(c);
                self.flush_escape(out);
            }
            ESCAPE if c != '\\' => {
                self.flush_escape(out);
                self.string(c, out);
            }
            _ => {
                self.escape.push(c);
                if let Some(letter) = letter(&self.escape) {
                    out.push(letter);
                    self.escape.clear();
                } else if !may_be_letter(&self.escape) {
                    self.flush_escape(out);
                }
            }
        }
    }

    fn flush_escape(&mut self, out: &mut String) {
        out.push_str(&self.escape);
        self.escape.clear();
    }
}

/// The length of an escape such as `\u00e6`.
const ESCAPE: usize = 6;

/// The length of an escape and the backslash of the next one.
const ESCAPE_AND_BACKSLASH: usize = ESCAPE + 1;

fn is_delimiter(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | '\r' | ',' | ':' | '{' | '}' | '[' | ']' | '"'
    )
}

/// The UTF-16 units of one escape, or of two in a row.
fn units(escapes: &str) -> Option<Vec<u16>> {
    let units = escapes.split("\\u").skip(1);
    units.map(|hex| u16::from_str_radix(hex, 16).ok()).collect()
}

/// Decodes complete escapes to a letter. Characters that JSON must escape, or that would end the line, stay escaped.
fn letter(escapes: &str) -> Option<char> {
    if !escapes.len().is_multiple_of(ESCAPE) {
        return None;
    }
    let mut letters = char::decode_utf16(units(escapes)?);
    let letter = letters.next()?.ok()?;
    let is_printable =
        letters.next().is_none() && !letter.is_control() && !matches!(letter, '"' | '\\');
    is_printable.then_some(letter)
}

/// Whether more input could complete a letter: the escape is incomplete, or the first half of a surrogate pair.
fn may_be_letter(escapes: &str) -> bool {
    let is_high_surrogate = || matches!(units(escapes).as_deref(), Some([0xd800..=0xdbff]));
    match escapes.len() {
        ESCAPE => is_high_surrogate(),
        len => len < 2 * ESCAPE,
    }
}

#[cfg(test)]
mod tests;
