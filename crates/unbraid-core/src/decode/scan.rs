//! The ordinary chunk, in one pass over its bytes, borrowing from the event.
//!
//! It reads what `strict` reads and gives the same, but for less: nothing is looked at twice. What it does not know at
//! once it leaves to the parser. So it may refuse what is right, but never take what is wrong.

mod string;

use std::{borrow::Cow, sync::Arc};

use serde::Deserialize;

use super::{
    chunk::{Chunk, LOGPROB_LISTS, is_filled_list},
    fill::{Fill, Surprise, Values},
};
use crate::limits::{MAX_ENTRIES, MAX_JSON_DEPTH, MAX_VALUES};

/// The chunk, if the event is an ordinary one, or foreign JSON that is as simple.
pub(super) fn chunk<'a>(text: &'a str, depth: usize, reasoning: &[Arc<str>]) -> Option<Chunk<'a>> {
    // The lenient decoder counts the values of what is larger.
    if text.len() > MAX_VALUES {
        return None;
    }
    let mut chunk = Chunk::default();
    let mut scanner = Scanner {
        text,
        at: 0,
        levels: depth.min(MAX_JSON_DEPTH),
        reasoning,
    };
    if scanner.token() != Some(b'{') {
        return None;
    }
    let any = scanner.fields(&mut chunk).ok()?;
    scanner.space();
    if !any || scanner.at != text.len() {
        return None; // an empty object is a keep-alive
    }
    chunk.format = chunk.recognise();
    Some(chunk)
}

/// Which lists of log probabilities hold any token: empty lists are none (M7).
#[derive(Default)]
struct Lists {
    filled: [bool; LOGPROB_LISTS.len()],
}

impl<'a> Fill<'a> for Lists {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise> {
        let raw = from.raw()?;
        if key.starts_with('$') {
            return Err(Surprise); // as in `skip_key`
        }
        let at = LOGPROB_LISTS.iter().position(|name| *name == key);
        if let Some(filled) = at.and_then(|at| self.filled.get_mut(at)) {
            *filled = is_filled_list(raw);
        }
        Ok(())
    }
}

struct Scanner<'a, 'k> {
    text: &'a str,
    at: usize,
    /// How many arrays and objects may still be opened inside of each other.
    levels: usize,
    /// The names under which reasoning comes, by rank.
    reasoning: &'k [Arc<str>],
}

impl<'a> Scanner<'a, '_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is no white space, which is taken.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        self.space();
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn open(&mut self) -> Result<(), Surprise> {
        self.levels = self.levels.checked_sub(1).ok_or(Surprise)?;
        Ok(())
    }

    fn since(&self, start: usize) -> Result<&'a str, Surprise> {
        self.text.get(start..self.at).ok_or(Surprise)
    }

    /// Takes a word whose first letter was taken.
    fn word(&mut self, rest: &str) -> Result<(), Surprise> {
        let bytes = self.text.as_bytes().get(self.at..).ok_or(Surprise)?;
        if !bytes.starts_with(rest.as_bytes()) {
            return Err(Surprise);
        }
        self.at += rest.len();
        Ok(())
    }

    /// Takes the fields of an object whose brace was taken; false if there are none.
    fn fields(&mut self, into: &mut impl Fill<'a>) -> Result<bool, Surprise> {
        self.open()?;
        let mut next = self.token();
        let any = next != Some(b'}');
        let mut more = any;
        while more {
            if next != Some(b'"') {
                return Err(Surprise);
            }
            let key = Cow::Borrowed(self.plain()?); // nobody escapes a name
            if self.token() != Some(b':') {
                return Err(Surprise);
            }
            into.fill(key, self)?;
            more = match self.token() {
                Some(b',') => true,
                Some(b'}') => false,
                _ => return Err(Surprise),
            };
            if more {
                next = self.token();
            }
        }
        self.levels += 1;
        into.done()?;
        Ok(any)
    }

    /// Takes a value of any kind.
    fn skip(&mut self) -> Result<(), Surprise> {
        match self.token() {
            Some(b'"') => self.skip_string(),
            Some(b'{') => self.skip_all(b'}'),
            Some(b'[') => self.skip_all(b']'),
            Some(b'n') => self.word("ull"),
            Some(b't') => self.word("rue"),
            Some(b'f') => self.word("alse"),
            Some(b'-') => self.skip_number(),
            Some(b'0'..=b'9') => {
                self.at -= 1;
                self.skip_number()
            }
            _ => Err(Surprise),
        }
    }

    /// Takes what stands up to the end of an array or object whose bracket was taken.
    fn skip_all(&mut self, end: u8) -> Result<(), Surprise> {
        self.open()?;
        self.space();
        let mut more = self.peek() != Some(end);
        self.at += usize::from(!more);
        while more {
            if end == b'}' {
                self.skip_key()?;
            }
            self.skip()?;
            more = match self.token() {
                Some(b',') => true,
                Some(byte) if byte == end => false,
                _ => return Err(Surprise),
            };
        }
        self.levels += 1;
        Ok(())
    }

    fn skip_key(&mut self) -> Result<(), Surprise> {
        if self.token() != Some(b'"') {
            return Err(Surprise);
        }
        // serde_json has a private name that it gives a meaning; it begins with a dollar.
        let name = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if name.starts_with(b"$") || name.starts_with(b"\\u0024") {
            return Err(Surprise);
        }
        self.skip_string()?;
        match self.token() {
            Some(b':') => Ok(()),
            _ => Err(Surprise),
        }
    }

    /// Takes a number from its first digit on. It is kept as it is written, so its size does not matter.
    fn skip_number(&mut self) -> Result<(), Surprise> {
        const ANY: usize = usize::MAX;
        let start = self.peek();
        let whole = self.digits(ANY)?;
        if start == Some(b'0') && whole > 1 {
            return Err(Surprise);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits(ANY)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits(ANY)?;
        }
        Ok(())
    }

    /// How many digits stand here, one at least.
    fn digits(&mut self, max: usize) -> Result<usize, Surprise> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if (1..=max).contains(&count) {
            Ok(count)
        } else {
            Err(Surprise)
        }
    }
}

impl<'a> Values<'a> for Scanner<'a, '_> {
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, Surprise> {
        match self.token() {
            Some(b'"') => self.string().map(Some),
            Some(b'n') => self.word("ull").map(|()| None),
            _ => Err(Surprise),
        }
    }

    fn number<N: Deserialize<'a> + TryFrom<u64>>(&mut self) -> Result<Option<N>, Surprise> {
        const LONGEST: usize = 19; // digits that a `u64` holds, whatever they are
        match self.token() {
            Some(b'n') => return self.word("ull").map(|()| None),
            Some(b'0'..=b'9') => self.at -= 1,
            _ => return Err(Surprise),
        }
        let start = self.at;
        let count = self.digits(LONGEST)?;
        let digits = self.since(start)?.bytes();
        let is_padded = count > 1 && self.text.as_bytes().get(start) == Some(&b'0');
        if is_padded || matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return Err(Surprise);
        }
        let value = digits.fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        N::try_from(value).map(Some).map_err(|_| Surprise)
    }

    fn reasoning_rank(&self, name: &str) -> Option<usize> {
        self.reasoning.iter().position(|known| **known == *name)
    }

    fn place(&self) -> Option<usize> {
        Some(self.at)
    }

    fn raw(&mut self) -> Result<&'a str, Surprise> {
        self.space();
        let start = self.at;
        self.skip()?;
        self.since(start)
    }

    fn logprobs(&mut self) -> Result<Option<&'a str>, Surprise> {
        self.space();
        let start = self.at;
        let mut lists = Lists::default();
        let _is_null = !self.object(&mut lists)?;
        Ok(Some(self.since(start)?).filter(|_| lists.filled.contains(&true)))
    }

    fn object(&mut self, into: &mut impl Fill<'a>) -> Result<bool, Surprise> {
        match self.token() {
            Some(b'{') => self.fields(into).map(|_| true),
            Some(b'n') => self.word("ull").map(|()| false),
            _ => Err(Surprise),
        }
    }

    fn list<T: Fill<'a> + Default>(&mut self, into: &mut Vec<T>) -> Result<bool, Surprise> {
        into.clear();
        match self.token() {
            Some(b'[') => self.open()?,
            Some(b'n') => return self.word("ull").map(|()| false),
            _ => return Err(Surprise),
        }
        let mut next = self.token();
        let (mut more, mut weight) = (next != Some(b']'), 0);
        into.reserve_exact(usize::from(more)); // nearly always there is only one
        while more {
            if next != Some(b'{') {
                return Err(Surprise);
            }
            into.push(T::default());
            if let Some(entry) = into.last_mut() {
                self.fields(entry)?;
                weight += entry.weight();
            }
            more = match self.token() {
                Some(b',') if weight <= MAX_ENTRIES => true,
                Some(b']') if weight <= MAX_ENTRIES => false,
                _ => return Err(Surprise),
            };
            if more {
                next = self.token();
            }
        }
        self.levels += 1;
        Ok(true)
    }
}
