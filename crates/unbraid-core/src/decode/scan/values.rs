//! Reads the values of the fields of a chunk.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Fallback, FieldVisitor, Scanner, ValueReader};
use crate::{
    chunk::{LOGPROB_LISTS, is_filled_list},
    decode::fields::{Content, InnerPart, Part, inner_text},
    limits::MAX_ENTRIES,
};

/// Which lists of log probabilities hold a token. Empty lists count as absent (M7).
#[derive(Default)]
struct LogprobLists {
    filled: [bool; LOGPROB_LISTS.len()],
}

impl<'a> FieldVisitor<'a> for LogprobLists {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        let raw = value.raw()?;
        if key.starts_with('$') {
            return Err(Fallback); // for the reason given in `skip_key`
        }
        let list = LOGPROB_LISTS.iter().position(|name| *name == key);
        if let Some(filled) = list.and_then(|list| self.filled.get_mut(list)) {
            *filled = is_filled_list(raw);
        }
        Ok(())
    }
}

impl<'a> ValueReader<'a> for Scanner<'a, '_> {
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, Fallback> {
        match self.next_token() {
            Some(b'"') => self.string().map(Some),
            Some(b'n') => self.literal("ull").map(|()| None),
            _ => Err(Fallback),
        }
    }

    fn number<N: Deserialize<'a> + TryFrom<u64>>(&mut self) -> Result<Option<N>, Fallback> {
        const MAX_DIGITS: usize = 19; // every number of this many digits fits a `u64`
        match self.next_token() {
            Some(b'n') => return self.literal("ull").map(|()| None),
            Some(b'0'..=b'9') => self.pos -= 1,
            _ => return Err(Fallback),
        }
        let start = self.pos;
        let count = self.digits(MAX_DIGITS)?;
        let digits = self.slice_from(start)?.bytes();
        // JSON has no leading zeros. A fraction or exponent may still be an integer, which the lenient decoder decides.
        let is_padded = count > 1 && self.text.as_bytes().get(start) == Some(&b'0');
        if is_padded || matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return Err(Fallback);
        }
        // Cannot overflow, because `digits` has refused a longer number.
        let value = digits.fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        N::try_from(value).map(Some).map_err(|_| Fallback)
    }

    fn reasoning_rank(&self, name: &str) -> Option<usize> {
        self.reasoning_keys
            .iter()
            .position(|known| **known == *name)
    }

    fn content(&mut self) -> Result<Content<'a>, Fallback> {
        self.skip_whitespace();
        if self.peek() != Some(b'[') {
            let text = self.fragment()?;
            return Ok(Content {
                text,
                ..Content::default()
            });
        }
        self.escapes.may_join = true;
        let mut parts: Vec<Part<'a>> = Vec::new();
        self.list(&mut parts)?;
        Content::of_parts(parts)
    }

    fn part_text(&mut self) -> Result<Cow<'a, str>, Fallback> {
        self.skip_whitespace();
        if self.peek() != Some(b'[') {
            return self.text()?.ok_or(Fallback);
        }
        self.escapes.may_join = true;
        let mut parts: Vec<InnerPart<'a>> = Vec::new();
        self.list(&mut parts)?;
        Ok(inner_text(parts))
    }

    fn last_value_end(&self) -> Option<usize> {
        Some(self.pos)
    }

    fn raw(&mut self) -> Result<&'a str, Fallback> {
        self.skip_whitespace();
        let start = self.pos;
        self.skip()?;
        self.slice_from(start)
    }

    fn logprobs(&mut self) -> Result<Option<&'a str>, Fallback> {
        self.skip_whitespace();
        let start = self.pos;
        // The lists are found while the raw text is skipped, so that it is not parsed again.
        let mut lists = LogprobLists::default();
        let _is_null = !self.object(&mut lists)?;
        Ok(Some(self.slice_from(start)?).filter(|_| lists.filled.contains(&true)))
    }

    fn object(&mut self, visitor: &mut impl FieldVisitor<'a>) -> Result<bool, Fallback> {
        match self.next_token() {
            Some(b'{') => self.fields(visitor).map(|_| true),
            Some(b'n') => self.literal("ull").map(|()| false),
            _ => Err(Fallback),
        }
    }

    fn list<T: FieldVisitor<'a> + Default>(&mut self, list: &mut Vec<T>) -> Result<bool, Fallback> {
        // A repeated key replaces the list (E26).
        list.clear();
        match self.next_token() {
            Some(b'[') => self.enter()?,
            Some(b'n') => return self.literal("ull").map(|()| false),
            _ => return Err(Fallback),
        }
        let mut next = self.next_token();
        let (mut more, mut count) = (next != Some(b']'), 0);
        list.reserve_exact(usize::from(more)); // a chunk usually has a single choice
        while more {
            if next != Some(b'{') {
                return Err(Fallback);
            }
            list.push(T::default());
            if let Some(entry) = list.last_mut() {
                self.fields(entry)?;
                // Entries of inner lists count, too: a chunk of many calls is as large as one of many choices.
                count += entry.entry_count();
            }
            more = match self.next_token() {
                // The excess entries are skipped with a warning by the lenient decoder (E11).
                Some(b',') if count <= MAX_ENTRIES => true,
                Some(b']') if count <= MAX_ENTRIES => false,
                _ => return Err(Fallback),
            };
            if more {
                next = self.next_token();
            }
        }
        self.remaining_depth += 1;
        Ok(true)
    }
}
