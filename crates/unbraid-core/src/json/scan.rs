//! Scans JSON that is received in fragments: one pass over each fragment, and no copy of the text.
//!
//! It accepts strict JSON with three exceptions. Raw control characters in strings are kept (J1 to J3), lone
//! surrogates become U+FFFD (J17), and more values may follow the first (J12).

use crate::limits::MAX_ARGUMENT_DEPTH;

use super::{
    token::{Container, Token, TokenListener},
    verdict::Verdict,
};

mod number;
mod text;
mod word;

use text::{Escape, StringRole};
use word::Word;

/// Scans a JSON text in fragments and emits its tokens to a [`TokenListener`].
///
/// Its state is a few words without heap memory, so a fragment costs time in proportion to its own length, not to the
/// text before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner {
    state: State,
    /// One bit for each open container, the innermost lowest: 1 is an object.
    open: u128,
    depth: usize,
    /// Bytes that were read, up to an error.
    position: usize,
    /// Outermost values that have ended.
    values: usize,
    /// The offset of the current or last outermost value.
    start: usize,
    /// The offset of the first outermost value too many.
    surplus: usize,
    /// Whether the first value is exactly `{}`.
    has_placeholder: bool,
    /// Whether a string contains a raw control character.
    has_controls: bool,
    /// A high surrogate whose low half may follow.
    pending_high: Option<u16>,
    /// The offset of the escape of that surrogate.
    high_offset: usize,
    /// The offset of the first escape of a surrogate without its other half (J17).
    lone_surrogate: Option<usize>,
    /// Whether the current or last outermost value is an object.
    is_object: bool,
    /// Whether the text is only white space, of any script. A call with blank arguments has none (T23).
    is_blank: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside strings and words.
    Expect(Expect),
    Text(StringRole),
    Escape(StringRole, Escape),
    Word(Word),
    /// The error is at `Scanner::position`.
    Failed(ScanError),
}

/// What may follow, besides white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// Before, between or after outermost values: a value.
    Outermost,
    /// After `[`: a value or `]`.
    FirstItem,
    /// After a colon, or after a comma in an array: a value.
    Value,
    /// After `{`: a key or `}`.
    FirstKey,
    /// After a comma in an object: a key.
    NextKey,
    /// After a key: a colon.
    Colon,
    /// After a value in a container: a comma or the closer.
    Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanError {
    Syntax,
    TooDeep,
}

// `Scanner::open` has one bit for each container.
const _: () = assert!(MAX_ARGUMENT_DEPTH <= u128::BITS as usize);

impl Default for Scanner {
    fn default() -> Self {
        Self {
            state: State::Expect(Expect::Outermost),
            open: 0,
            depth: 0,
            position: 0,
            values: 0,
            start: 0,
            surplus: 0,
            has_placeholder: false,
            has_controls: false,
            pending_high: None,
            high_offset: 0,
            lone_surrogate: None,
            is_object: false,
            is_blank: true,
        }
    }
}

impl Scanner {
    /// Scans the next fragment. After an error, nothing is scanned any more.
    pub(crate) fn feed(&mut self, fragment: &str, listener: &mut impl TokenListener) {
        self.is_blank = self.is_blank && fragment.trim_start().is_empty();
        let mut rest = match self.state {
            State::Failed(_) => "",
            State::Expect(_) | State::Text(_) | State::Escape(..) | State::Word(_) => fragment,
        };
        while !rest.is_empty() {
            match self.advance(rest, listener) {
                Ok(used) => {
                    self.position += used;
                    rest = rest.get(used..).unwrap_or_default();
                }
                Err(error) => {
                    self.state = State::Failed(error);
                    return;
                }
            }
        }
    }

    /// Ends the text, and with it an outermost number or literal.
    pub(crate) fn finish(&mut self, listener: &mut impl TokenListener) {
        match self.state {
            State::Word(word) if self.depth == 0 && word.is_complete() => {
                self.end_word(word, listener)
            }
            State::Word(_)
            | State::Expect(_)
            | State::Text(_)
            | State::Escape(..)
            | State::Failed(_) => {}
        }
    }

    /// Whether the text is JSON, if it ends here.
    pub(crate) fn verdict(&self) -> Verdict {
        let open_word = match self.state {
            _ if self.is_blank => return Verdict::EmptyAsObject,
            State::Failed(ScanError::Syntax) => {
                return Verdict::Invalid {
                    offset: self.position,
                };
            }
            State::Failed(ScanError::TooDeep) => {
                return Verdict::TooDeep {
                    offset: self.position,
                };
            }
            State::Expect(_) if self.depth == 0 => 0,
            State::Word(word) if self.depth == 0 && word.is_complete() => 1,
            State::Expect(_) | State::Word(_) | State::Text(_) | State::Escape(..) => {
                return if self.values == usize::from(self.has_placeholder) {
                    Verdict::Truncated
                } else {
                    Verdict::Invalid { offset: self.start }
                };
            }
        };
        match (self.values + open_word, self.has_placeholder) {
            (0, _) => Verdict::EmptyAsObject,
            (1, _) if !self.has_controls && self.lone_surrogate.is_none() => Verdict::Complete,
            (1, _) | (2, true) => Verdict::Repaired,
            _ => Verdict::Concatenated {
                offset: self.surplus,
            },
        }
    }

    /// Whether the text is JSON, if it was cut here. Unlike in [`verdict`](Self::verdict), an empty text and an
    /// outermost number at the end may be the beginning of something longer.
    pub(crate) fn verdict_if_cut(&self) -> Verdict {
        let open_number = self.depth == 0 && matches!(self.state, State::Word(Word::Number(_)));
        match self.verdict() {
            Verdict::EmptyAsObject => Verdict::Truncated,
            Verdict::Complete | Verdict::Repaired if open_number => Verdict::Truncated,
            verdict => verdict,
        }
    }

    /// Whether there was an error, so that nothing is scanned any more.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed(_)) && !self.is_blank
    }

    /// Whether the text so far is `{}` or its beginning, which another value may still replace (T22).
    pub(crate) fn may_be_placeholder(&self) -> bool {
        match self.state {
            State::Expect(Expect::Outermost) => self.has_placeholder && self.values == 1,
            State::Expect(Expect::FirstKey) => {
                self.values == 0 && self.depth == 1 && self.position == self.start + 1
            }
            State::Expect(_)
            | State::Text(_)
            | State::Escape(..)
            | State::Word(_)
            | State::Failed(_) => false,
        }
    }

    /// Whether the text so far is one whole object, and not `{}`, which another value may still replace (T22).
    pub(crate) fn is_one_object(&self) -> bool {
        self.is_object
            && !self.may_be_placeholder()
            && matches!(self.verdict(), Verdict::Complete | Verdict::Repaired)
    }

    /// Whether a string contains a raw control character (J1 to J3).
    pub(crate) fn has_controls(&self) -> bool {
        self.has_controls
    }

    /// The offset of the first escape of a surrogate without its other half (J17).
    pub(crate) fn lone_surrogate(&self) -> Option<usize> {
        self.lone_surrogate
    }

    /// The closing brackets of the open containers, the innermost first; `None` if no bracket may follow, or nothing
    /// is open.
    ///
    /// A number that is delimited only by the text's end may have been cut, so nothing is closed after it (J7).
    pub(crate) fn closers(&self) -> Option<String> {
        let may_close = match self.state {
            State::Expect(Expect::FirstItem | Expect::FirstKey | Expect::Next) => true,
            State::Word(word @ Word::Literal(..)) => word.is_complete() && self.depth > 0,
            State::Expect(_)
            | State::Word(Word::Number(_))
            | State::Text(_)
            | State::Escape(..)
            | State::Failed(_) => false,
        };
        let closer = |level| {
            if self.open >> level & 1 == 1 {
                '}'
            } else {
                ']'
            }
        };
        may_close.then(|| (0..self.depth).map(closer).collect())
    }

    /// Scans the start of `rest` and returns how many bytes were scanned. If that is zero, the state has changed.
    fn advance(
        &mut self,
        rest: &str,
        listener: &mut impl TokenListener,
    ) -> Result<usize, ScanError> {
        let Some(byte) = rest.bytes().next() else {
            return Ok(0);
        };
        match self.state {
            State::Expect(expect) => self.structure(expect, byte, listener),
            State::Text(role) => Ok(self.text(role, rest, listener)),
            State::Escape(role, escape) => self.escape(role, escape, byte, listener).map(|()| 1),
            State::Word(word) => self.advance_word(word, rest, byte, listener),
            State::Failed(_) => Ok(rest.len()),
        }
    }

    /// Scans a byte outside strings and words. The first byte of a word is left to the word.
    fn structure(
        &mut self,
        expect: Expect,
        byte: u8,
        listener: &mut impl TokenListener,
    ) -> Result<usize, ScanError> {
        use Expect::{Colon, FirstItem, FirstKey, Next, NextKey, Outermost, Value};
        let in_object = self.open & 1 == 1;
        match (expect, byte) {
            (_, b' ' | b'\n' | b'\r' | b'\t') => {}
            (Outermost | FirstItem | Value, b'[') => self.open(Container::Array, listener)?,
            (Outermost | FirstItem | Value, b'{') => self.open(Container::Object, listener)?,
            (Outermost | FirstItem | Value, b'"') => {
                self.begin_value(State::Text(StringRole::Value), listener);
                listener.token(Token::String);
            }
            (FirstItem, b']') | (FirstKey, b'}') => self.close(expect, listener),
            (Outermost | FirstItem | Value, _) => {
                let word = Word::start(byte).ok_or(ScanError::Syntax)?;
                self.begin_value(State::Word(word), listener);
                return Ok(0);
            }
            (FirstKey | NextKey, b'"') => {
                self.state = State::Text(StringRole::Key);
                listener.token(Token::Key);
            }
            (Colon, b':') => self.state = State::Expect(Value),
            (Next, b',') => self.state = State::Expect(if in_object { NextKey } else { Value }),
            (Next, b']') if !in_object => self.close(expect, listener),
            (Next, b'}') if in_object => self.close(expect, listener),
            (FirstKey | NextKey | Colon | Next, _) => return Err(ScanError::Syntax),
        }
        Ok(1)
    }

    /// Scans the rest of a number or literal, or ends it.
    fn advance_word(
        &mut self,
        word: Word,
        rest: &str,
        byte: u8,
        listener: &mut impl TokenListener,
    ) -> Result<usize, ScanError> {
        let (word, used) = word.advance(rest);
        if used > 0 {
            self.state = State::Word(word);
            if let (Word::Number(_), Some(run)) = (word, rest.get(..used)) {
                listener.token(Token::NumberText(run));
            }
        } else if word.is_complete() && word::delimits(byte) {
            self.end_word(word, listener);
        } else {
            return Err(ScanError::Syntax);
        }
        Ok(used)
    }

    fn end_word(&mut self, word: Word, listener: &mut impl TokenListener) {
        listener.token(match word {
            Word::Number(_) => Token::NumberEnd,
            Word::Literal(literal, _) => Token::Literal(literal),
        });
        self.end_value();
    }

    fn open(
        &mut self,
        container: Container,
        listener: &mut impl TokenListener,
    ) -> Result<(), ScanError> {
        if self.depth >= MAX_ARGUMENT_DEPTH {
            return Err(ScanError::TooDeep);
        }
        let (expect, bit) = match container {
            Container::Array => (Expect::FirstItem, 0),
            Container::Object => (Expect::FirstKey, 1),
        };
        self.begin_value(State::Expect(expect), listener);
        self.open = self.open << 1 | bit;
        self.depth += 1;
        listener.token(Token::Open(container));
        Ok(())
    }

    fn close(&mut self, expect: Expect, listener: &mut impl TokenListener) {
        let is_empty = expect == Expect::FirstKey && self.position == self.start + 1;
        self.has_placeholder |= is_empty && self.depth == 1 && self.values == 0;
        self.open >>= 1;
        self.depth = self.depth.saturating_sub(1);
        listener.token(Token::Close);
        self.end_value();
    }

    /// Begins a value.
    fn begin_value(&mut self, state: State, listener: &mut impl TokenListener) {
        if self.depth == 0 {
            if self.may_be_placeholder() {
                listener.token(Token::Placeholder);
            }
            self.start = self.position;
            self.is_object = state == State::Expect(Expect::FirstKey);
            if self.values == 1 + usize::from(self.has_placeholder) {
                self.surplus = self.start;
            }
        }
        self.state = state;
    }

    /// Ends a value.
    fn end_value(&mut self) {
        self.state = State::Expect(if self.depth == 0 {
            self.values += 1;
            Expect::Outermost
        } else {
            Expect::Next
        });
    }
}
