//! The machine that reads arguments as they come: one pass over each fragment, and no text kept.
//!
//! It is strict JSON but for three things: raw control characters in strings are read as themselves (J1 to J3), lone
//! surrogates become U+FFFD (J17), and further values may follow the first (J12).

use crate::limits::MAX_ARGUMENT_DEPTH;

use super::{
    Verdict,
    token::{Container, Token, Visit},
};

mod number;
mod text;
mod word;

use text::{Escape, Role};
use word::Word;

/// Reads a JSON text in fragments and tells a [`Visit`] what it meets.
///
/// It is a handful of words without heap memory, so that a fragment costs what its own bytes cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner {
    state: State,
    /// A bit for each open container, the innermost lowest: 1 is an object.
    open: u128,
    depth: usize,
    /// Bytes that were read, up to an offence.
    position: usize,
    /// Outermost values that have ended.
    values: usize,
    /// Where the outermost value that is open, or was last, begins.
    start: usize,
    /// Where the first outermost value too many begins.
    surplus: usize,
    /// Whether the first value is exactly `{}`.
    placeholder: bool,
    /// Whether a raw control character stood in a string.
    controls: bool,
    /// A high surrogate that waits for its partner.
    high: Option<u16>,
    /// Where the escape of that surrogate begins.
    high_at: usize,
    /// Where the first escape of half a surrogate pair begins whose other half is missing (J17).
    lone: Option<usize>,
    /// Nothing but white space of any script has come: a call whose arguments are blank has none (T23).
    blank: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside of strings and words.
    Expect(Expect),
    Text(Role),
    Escape(Role, Escape),
    Word(Word),
    /// At `Scanner::position`.
    Failed(Fault),
}

/// What may come, white space aside.
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
enum Fault {
    Syntax,
    TooDeep,
}

// `Scanner::open` has one bit a container.
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
            placeholder: false,
            controls: false,
            high: None,
            high_at: 0,
            lone: None,
            blank: true,
        }
    }
}

impl Scanner {
    /// Reads the next fragment. After an offence nothing is read any more.
    pub(crate) fn feed(&mut self, fragment: &str, visit: &mut impl Visit) {
        self.blank = self.blank && fragment.trim_start().is_empty();
        let mut rest = match self.state {
            State::Failed(_) => "",
            State::Expect(_) | State::Text(_) | State::Escape(..) | State::Word(_) => fragment,
        };
        while !rest.is_empty() {
            match self.advance(rest, visit) {
                Ok(used) => {
                    self.position += used;
                    rest = rest.get(used..).unwrap_or_default();
                }
                Err(fault) => {
                    self.state = State::Failed(fault);
                    return;
                }
            }
        }
    }

    /// Says that no text follows, which ends an outermost number or literal.
    pub(crate) fn finish(&mut self, visit: &mut impl Visit) {
        match self.state {
            State::Word(word) if self.depth == 0 && word.is_whole() => self.end_word(word, visit),
            State::Word(_)
            | State::Expect(_)
            | State::Text(_)
            | State::Escape(..)
            | State::Failed(_) => {}
        }
    }

    /// What the text is, if it ends here.
    pub(crate) fn judged(&self) -> Verdict {
        let last = match self.state {
            _ if self.blank => return Verdict::EmptyAsObject,
            State::Failed(Fault::Syntax) => {
                return Verdict::Invalid {
                    offset: self.position,
                };
            }
            State::Failed(Fault::TooDeep) => {
                return Verdict::TooDeep {
                    offset: self.position,
                };
            }
            State::Expect(_) if self.depth == 0 => 0,
            State::Word(word) if self.depth == 0 && word.is_whole() => 1,
            State::Expect(_) | State::Word(_) | State::Text(_) | State::Escape(..) => {
                return if self.values == usize::from(self.placeholder) {
                    Verdict::Truncated
                } else {
                    Verdict::Invalid { offset: self.start }
                };
            }
        };
        match (self.values + last, self.placeholder) {
            (0, _) => Verdict::EmptyAsObject,
            (1, _) if !self.controls && self.lone.is_none() => Verdict::Complete,
            (1, _) | (2, true) => Verdict::Repaired,
            _ => Verdict::Concatenated {
                offset: self.surplus,
            },
        }
    }

    /// What the text is, if something cut it where it ends: as [`judged`](Self::judged), but no text at all, and an
    /// outermost number that nothing delimits, may be the beginning of something longer.
    pub(crate) fn judged_cut(&self) -> Verdict {
        let open_number = self.depth == 0 && matches!(self.state, State::Word(Word::Number(_)));
        match self.judged() {
            Verdict::EmptyAsObject => Verdict::Truncated,
            Verdict::Complete | Verdict::Repaired if open_number => Verdict::Truncated,
            judged => judged,
        }
    }

    /// Whether an offence was met, so that nothing is read any more.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed(_)) && !self.blank
    }

    /// Whether all that has come is `{}`, or its beginning, which a real value may still follow (T22).
    pub(crate) fn may_be_placeholder(&self) -> bool {
        match self.state {
            State::Expect(Expect::Outermost) => self.placeholder && self.values == 1,
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

    /// Whether a raw control character stood in a string (J1 to J3).
    pub(crate) fn has_controls(&self) -> bool {
        self.controls
    }

    /// Where the first escape of half a surrogate pair begins whose other half is missing (J17).
    pub(crate) fn lone(&self) -> Option<usize> {
        self.lone
    }

    /// What closes the open containers, the innermost first; `None` where no closer may stand, or nothing is open.
    ///
    /// A number that only the text's end delimits may have been cut, so nothing closes after it (J7).
    pub(crate) fn closers(&self) -> Option<String> {
        let may_close = match self.state {
            State::Expect(Expect::FirstItem | Expect::FirstKey | Expect::Next) => true,
            State::Word(word @ Word::Literal(..)) => word.is_whole() && self.depth > 0,
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

    /// Reads some of `rest` and tells how much; where that is nothing, the state has changed.
    fn advance(&mut self, rest: &str, visit: &mut impl Visit) -> Result<usize, Fault> {
        let Some(byte) = rest.bytes().next() else {
            return Ok(0);
        };
        match self.state {
            State::Expect(expect) => self.structure(expect, byte, visit),
            State::Text(role) => Ok(self.text(role, rest, visit)),
            State::Escape(role, escape) => self.escape(role, escape, byte, visit).map(|()| 1),
            State::Word(word) => self.word(word, rest, byte, visit),
            State::Failed(_) => Ok(rest.len()),
        }
    }

    /// Reads a byte outside of strings and words; the first byte of a word is left to it.
    fn structure(
        &mut self,
        expect: Expect,
        byte: u8,
        visit: &mut impl Visit,
    ) -> Result<usize, Fault> {
        use Expect::{Colon, FirstItem, FirstKey, Next, NextKey, Outermost, Value};
        let object = self.open & 1 == 1;
        match (expect, byte) {
            (_, b' ' | b'\n' | b'\r' | b'\t') => {}
            (Outermost | FirstItem | Value, b'[') => self.open(Container::Array, visit)?,
            (Outermost | FirstItem | Value, b'{') => self.open(Container::Object, visit)?,
            (Outermost | FirstItem | Value, b'"') => {
                self.begin(State::Text(Role::Value), visit);
                visit.token(Token::String);
            }
            (FirstItem, b']') | (FirstKey, b'}') => self.close(expect, visit),
            (Outermost | FirstItem | Value, _) => {
                let word = Word::start(byte).ok_or(Fault::Syntax)?;
                self.begin(State::Word(word), visit);
                return Ok(0);
            }
            (FirstKey | NextKey, b'"') => {
                self.state = State::Text(Role::Key);
                visit.token(Token::Key);
            }
            (Colon, b':') => self.state = State::Expect(Value),
            (Next, b',') => self.state = State::Expect(if object { NextKey } else { Value }),
            (Next, b']') if !object => self.close(expect, visit),
            (Next, b'}') if object => self.close(expect, visit),
            (FirstKey | NextKey | Colon | Next, _) => return Err(Fault::Syntax),
        }
        Ok(1)
    }

    /// Reads what belongs to a number or literal, or else ends it.
    fn word(
        &mut self,
        word: Word,
        rest: &str,
        byte: u8,
        visit: &mut impl Visit,
    ) -> Result<usize, Fault> {
        let (word, used) = word.advance(rest);
        if used > 0 {
            self.state = State::Word(word);
            if let (Word::Number(_), Some(run)) = (word, rest.get(..used)) {
                visit.token(Token::NumberText(run));
            }
        } else if word.is_whole() && word::delimits(byte) {
            self.end_word(word, visit);
        } else {
            return Err(Fault::Syntax);
        }
        Ok(used)
    }

    fn end_word(&mut self, word: Word, visit: &mut impl Visit) {
        visit.token(match word {
            Word::Number(_) => Token::NumberEnd,
            Word::Literal(literal, _) => Token::Literal(literal),
        });
        self.end();
    }

    fn open(&mut self, container: Container, visit: &mut impl Visit) -> Result<(), Fault> {
        if self.depth >= MAX_ARGUMENT_DEPTH {
            return Err(Fault::TooDeep);
        }
        let (expect, bit) = match container {
            Container::Array => (Expect::FirstItem, 0),
            Container::Object => (Expect::FirstKey, 1),
        };
        self.begin(State::Expect(expect), visit);
        self.open = self.open << 1 | bit;
        self.depth += 1;
        visit.token(Token::Open(container));
        Ok(())
    }

    fn close(&mut self, expect: Expect, visit: &mut impl Visit) {
        let empty = expect == Expect::FirstKey && self.position == self.start + 1;
        self.placeholder |= empty && self.depth == 1 && self.values == 0;
        self.open >>= 1;
        self.depth = self.depth.saturating_sub(1);
        visit.token(Token::Close);
        self.end();
    }

    /// Begins a value.
    fn begin(&mut self, state: State, visit: &mut impl Visit) {
        if self.depth == 0 {
            if self.may_be_placeholder() {
                visit.token(Token::Placeholder);
            }
            self.start = self.position;
            if self.values == 1 + usize::from(self.placeholder) {
                self.surplus = self.start;
            }
        }
        self.state = state;
    }

    /// Ends a value.
    fn end(&mut self) {
        self.state = State::Expect(if self.depth == 0 {
            self.values += 1;
            Expect::Outermost
        } else {
            Expect::Next
        });
    }
}
