//! The ordinary chunk, in one pass over its bytes, borrowing from the event.
//!
//! It reads what `strict` reads and gives the same, but for less: nothing is looked at twice. What it does not know at
//! once it leaves to the parser. So it may refuse what is right, but never take what is wrong.

mod string;

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    chunk::Chunk,
    fill::{Fill, Surprise, Values},
};
use crate::limits::{MAX_ENTRIES, MAX_JSON_DEPTH, MAX_VALUES};

/// The chunk, if the event is an ordinary one, or foreign JSON that is as simple.
pub(super) fn chunk(text: &str, depth: usize) -> Option<Chunk<'_>> {
    // The lenient decoder counts the values of what is larger.
    if text.len() > MAX_VALUES {
        return None;
    }
    let mut chunk = Chunk::default();
    let mut scanner = Scanner {
        text,
        at: 0,
        levels: depth.min(MAX_JSON_DEPTH),
    };
    if scanner.token() != Some(b'{') {
        return None;
    }
    let any = scanner.fields(&mut chunk).ok()?;
    scanner.space();
    let whole = scanner.at == text.len();
    (any && whole).then_some(chunk) // an empty object is a keep-alive
}

/// Whether log probabilities hold any token: empty lists are none (M7).
#[derive(Default)]
struct Lists {
    seen: [bool; 3],
    some: bool,
}

impl<'a> Fill<'a> for Lists {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise> {
        let raw = from.raw()?;
        if key.starts_with('$') {
            return Err(Surprise); // as in `skip_key`
        }
        let names = ["content", "refusal", "tokens"];
        let at = names.iter().position(|name| *name == key);
        if let Some(seen) = at.and_then(|at| self.seen.get_mut(at)) {
            if std::mem::replace(seen, true) {
                return Err(Surprise); // the parser takes no name twice
            }
            let inside = raw.strip_prefix('[');
            self.some |= inside.is_some_and(|inside| !inside.trim_start().starts_with(']'));
        }
        Ok(())
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How many arrays and objects may still be opened inside of each other.
    levels: usize,
}

impl<'a> Scanner<'a> {
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

    /// Takes a number from its first digit on, which is surely one that a value can be made of.
    fn skip_number(&mut self) -> Result<(), Surprise> {
        const LONGEST: usize = 200; // digits, which with such an exponent stay below the end of `f64`
        const EXPONENT: usize = 2;
        let start = self.peek();
        let whole = self.digits(LONGEST)?;
        if start == Some(b'0') && whole > 1 {
            return Err(Surprise);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits(LONGEST)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits(EXPONENT)?;
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

impl<'a> Values<'a> for Scanner<'a> {
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
        Ok(Some(self.since(start)?).filter(|_| lists.some))
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
