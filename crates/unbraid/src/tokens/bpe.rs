//! Counts tokens as tiktoken-rs does, on tables that need not be loaded.
//!
//! tiktoken-rs builds three maps of all tokens before it counts the first one, which takes 0.1 s and 50 MB. Here a pattern
//! cuts the text into words, and a word that is not a token is merged from its bytes: the pair of the lowest rank first,
//! and of several the first one. The tests compare both for every token, for texts of many forms, and for random ones.

use std::{cmp::Reverse, collections::BinaryHeap, sync::LazyLock};

use fancy_regex::Regex;
use tiktoken_rs::O200K_BASE_PAT_STR;

use super::table::{self, Table};

/// One encoding: its words, and its tokens.
#[derive(Debug)]
pub(super) struct Bpe {
    /// `None` if the pattern is invalid, which the tests exclude.
    words: LazyLock<Option<Regex>>,
    table: &'static Table,
}

const CL100K_WORDS: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const P50K_WORDS: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";

pub(super) static O200K: Bpe = Bpe {
    words: LazyLock::new(|| Regex::new(O200K_BASE_PAT_STR).ok()),
    table: &table::O200K,
};
pub(super) static CL100K: Bpe = Bpe {
    words: LazyLock::new(|| Regex::new(CL100K_WORDS).ok()),
    table: &table::CL100K,
};
pub(super) static P50K: Bpe = Bpe {
    words: LazyLock::new(|| Regex::new(P50K_WORDS).ok()),
    table: &table::P50K,
};
pub(super) static R50K: Bpe = Bpe {
    words: LazyLock::new(|| Regex::new(P50K_WORDS).ok()),
    table: &table::R50K,
};

impl Bpe {
    /// The number of tokens of a text. Special tokens are text.
    pub(super) fn count(&self, text: &str) -> usize {
        let mut merger = Merger::default();
        let mut count = 0;
        let mut end = 0;
        for word in self.words.iter().flat_map(|words| words.find_iter(text)) {
            let Ok(word) = word else {
                break; // more backtracking than the pattern may use
            };
            end = word.end();
            count += self.count_word(word.as_str().as_bytes(), &mut merger);
        }
        // All words together are the text, so this is empty unless the pattern failed.
        let rest = text.get(end..).unwrap_or_default();
        count + self.count_word(rest.as_bytes(), &mut merger)
    }

    /// The tokens of the encoding.
    #[cfg(test)]
    pub(super) fn table(&self) -> &'static Table {
        self.table
    }

    fn count_word(&self, word: &[u8], merger: &mut Merger) -> usize {
        match self.table.rank(word) {
            Some(_) => 1,
            None => merger.count(word, self.table),
        }
    }
}

/// Merges the bytes of a word to tokens. The vectors are kept for the next word.
#[derive(Debug, Default)]
struct Merger {
    /// For the offset at which a part begins: where it ends. Zero where none begins.
    ends: Vec<usize>,
    /// For the offset at which a part begins: where the part before it begins.
    previous: Vec<usize>,
    /// The pairs of parts that are a token together: its rank, where it begins, and where it ends.
    pairs: BinaryHeap<Reverse<(u32, usize, usize)>>,
}

impl Merger {
    /// The number of parts of which no two adjacent ones are a token.
    fn count(&mut self, word: &[u8], table: &Table) -> usize {
        self.ends.clear();
        self.ends.extend(1..=word.len());
        self.previous.clear();
        self.previous
            .extend((0..word.len()).map(|at| at.saturating_sub(1)));
        self.pairs.clear();
        for start in 0..word.len() {
            self.push(start, word, table);
        }
        let mut count = word.len();
        while let Some(Reverse((_, start, end))) = self.pairs.pop() {
            if self.merge(start, end) {
                count -= 1;
                self.push(start, word, table);
                if let Some(before) = self.previous.get(start).filter(|_| start > 0) {
                    self.push(*before, word, table);
                }
            }
        }
        count
    }

    /// The end of the part that begins here, if one does.
    fn end(&self, start: usize) -> Option<usize> {
        self.ends.get(start).copied().filter(|end| *end > 0)
    }

    /// Adds the pair whose first part begins here, if it is a token.
    fn push(&mut self, start: usize, word: &[u8], table: &Table) {
        let pair = self.end(start).and_then(|middle| self.end(middle));
        let token = pair.and_then(|end| Some((end, word.get(start..end)?)));
        if let Some((end, token)) = token
            && let Some(rank) = table.rank(token)
        {
            self.pairs.push(Reverse((rank, start, end)));
        }
    }

    /// Merges a pair, unless one of its parts was merged into another since it was added.
    fn merge(&mut self, start: usize, end: usize) -> bool {
        let Some(middle) = self
            .end(start)
            .filter(|middle| self.end(*middle) == Some(end))
        else {
            return false;
        };
        if let Some(first) = self.ends.get_mut(start) {
            *first = end;
        }
        if let Some(second) = self.ends.get_mut(middle) {
            *second = 0;
        }
        if let Some(previous) = self.previous.get_mut(end) {
            *previous = start;
        }
        true
    }
}
