//! The arguments of a call, indented while they are typed.

use unbraid::{
    CallKind,
    json::{Partial, PartialOptions, Verdict},
};

/// Lays out JSON that comes in fragments. What it gives is only ever added to, and but for white space and escapes of
/// letters it is the model's own text: no number is rounded, no key lost. What is no JSON stays as it is.
#[derive(Debug)]
pub(crate) struct Indenter {
    /// Tells whether it still is JSON; it keeps no value.
    judge: Partial,
    state: State,
    gap: Gap,
    depth: usize,
    /// Half an escape, which may turn out to be a letter.
    held: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    Word,
    String,
    /// It is no JSON: nothing is laid out any more.
    Raw,
}

/// What stands before the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    None,
    Space,
    Line,
    /// A line, unless the container ends at once.
    Opened,
}

impl Indenter {
    /// The input of a custom tool is text of any kind.
    pub(crate) fn new(kind: CallKind) -> Self {
        let options = PartialOptions::default().with_max_nodes(0);
        Self {
            judge: Partial::new(options),
            state: match kind {
                CallKind::Custom => State::Raw,
                _ => State::Between,
            },
            gap: Gap::None,
            depth: 0,
            held: String::new(),
        }
    }

    /// Whether an array or object has come in whole, and nothing behind it: no further line is expected.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == State::Between && self.depth == 0 && self.gap == Gap::Line
    }

    /// Whether the text is shown as it came, from some fragment on.
    pub(crate) fn is_raw(&self) -> bool {
        self.state == State::Raw
    }

    /// Adds the next fragment, laid out.
    pub(crate) fn push(&mut self, fragment: &str, out: &mut String) {
        if self.state != State::Raw {
            self.judge.feed(fragment);
            if let Verdict::Invalid { .. } | Verdict::TooDeep { .. } = self.judge.verdict() {
                out.push_str(&self.held);
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
                State::Between | State::Word | State::Raw => self.token(c, out),
            }
        }
    }

    fn token(&mut self, c: char, out: &mut String) {
        if self.state == State::Word && !delimits(c) {
            return out.push(c);
        }
        self.state = State::Between;
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                self.begin(out);
                out.push(c);
                self.depth += 1;
                self.gap = Gap::Opened;
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.gap != Gap::Opened {
                    self.gap = Gap::Line;
                    self.begin(out);
                }
                out.push(c);
                self.gap = self.behind();
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
                self.begin(out);
                out.push(c);
                self.state = State::String;
            }
            _ => {
                self.begin(out);
                out.push(c);
                self.state = State::Word;
            }
        }
    }

    /// Writes what stands before a token.
    fn begin(&mut self, out: &mut String) {
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

    /// A further outermost value stands on a line of its own.
    fn behind(&self) -> Gap {
        if self.depth == 0 {
            Gap::Line
        } else {
            Gap::None
        }
    }

    fn string(&mut self, c: char, out: &mut String) {
        match self.held.len() {
            0 if c == '"' => {
                out.push(c);
                self.state = State::Between;
            }
            0 if c == '\\' => self.held.push(c),
            // Raw control characters are a fault that is repaired by escaping them (J1 to J3).
            0 if c.is_control() => out.extend(c.escape_default()),
            0 => out.push(c),
            1 | LONE if c != 'u' => {
                self.held.push(c);
                self.let_go(out);
            }
            ESCAPE if c != '\\' => {
                self.let_go(out);
                self.string(c, out);
            }
            _ => {
                self.held.push(c);
                if let Some(letter) = letter(&self.held) {
                    out.push(letter);
                    self.held.clear();
                } else if !may_be_letter(&self.held) {
                    self.let_go(out);
                }
            }
        }
    }

    fn let_go(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }
}

/// Bytes of an escape such as `\u00e6`.
const ESCAPE: usize = 6;

/// The same, and the backslash behind it.
const LONE: usize = ESCAPE + 1;

fn delimits(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | '\r' | ',' | ':' | '{' | '}' | '[' | ']' | '"'
    )
}

/// The units of one escape, or of two in a row.
fn units(escapes: &str) -> Option<Vec<u16>> {
    let units = escapes.split("\\u").skip(1);
    units.map(|hex| u16::from_str_radix(hex, 16).ok()).collect()
}

/// The letter that whole escapes stand for. What has to be escaped in JSON, or would break the line, stays as it is.
fn letter(escapes: &str) -> Option<char> {
    if !escapes.len().is_multiple_of(ESCAPE) {
        return None;
    }
    let mut letters = char::decode_utf16(units(escapes)?);
    let letter = letters.next()?.ok()?;
    let shown = letters.next().is_none() && !letter.is_control() && !matches!(letter, '"' | '\\');
    shown.then_some(letter)
}

/// Whether more of it could make a letter: an escape that is not whole, or the first half of a pair.
fn may_be_letter(escapes: &str) -> bool {
    let pair = || matches!(units(escapes).as_deref(), Some([0xd800..=0xdbff]));
    match escapes.len() {
        ESCAPE => pair(),
        len => len < 2 * ESCAPE,
    }
}

#[cfg(test)]
mod tests;
