//! Inputs derived from other inputs. The same seed gives the same inputs.

use unbraid_testkit::cut::Rng;

/// Derives inputs from a corpus and a list of words.
#[derive(Debug)]
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    words: &'a [&'a str],
    rng: Rng,
}

impl<'a> Mutator<'a> {
    /// Creates a mutator whose inputs depend only on the seed.
    pub fn new(corpus: &'a [Vec<u8>], words: &'a [&'a str], seed: u64) -> Self {
        Self {
            corpus,
            words,
            rng: Rng::new(seed),
        }
    }

    /// The next input: one of the corpus with a few edits, or a sequence of words.
    pub fn input(&mut self) -> Vec<u8> {
        if self.corpus.is_empty() || self.rng.chance(0.15) {
            return self.sentence();
        }
        let index = self.rng.below(self.corpus.len());
        let mut input = self.window(&self.corpus[index]);
        for _ in 0..1 + self.rng.below(5) {
            edit(&mut input, self.words, self.corpus, &mut self.rng);
        }
        input
    }

    /// Usually returns only part of a long seed, because every cut of it costs time.
    fn window(&mut self, seed: &[u8]) -> Vec<u8> {
        if seed.len() <= WINDOW || self.rng.chance(0.02) {
            return seed.to_vec();
        }
        let head = &seed[..HEAD];
        let start = HEAD + self.rng.below(seed.len() - HEAD);
        let end = seed.len().min(start + WINDOW);
        [head, &seed[start..end]].concat()
    }

    fn sentence(&mut self) -> Vec<u8> {
        let mut input = Vec::new();
        for _ in 0..self.rng.below(24) {
            if self.rng.chance(0.1) {
                input.push(self.rng.next_u64() as u8);
            } else if !self.words.is_empty() {
                let word = self.words[self.rng.below(self.words.len())];
                input.extend_from_slice(word.as_bytes());
            }
        }
        input
    }
}

/// Long enough for several events.
const WINDOW: usize = 500;

/// Bytes at the start of an input that are not its body: flags, seeds, operations.
const HEAD: usize = 16;

/// Changes an input at one position.
pub fn edit(input: &mut Vec<u8>, words: &[&str], corpus: &[Vec<u8>], rng: &mut Rng) {
    let start = rng.below(input.len() + 1);
    let end = input.len().min(start + rng.below(20));
    match rng.below(8) {
        0 => drop(input.drain(start..end)),
        1 => {
            let copy = input[start..end].to_vec();
            let to = rng.below(input.len() + 1);
            input.splice(to..to, copy);
        }
        2 if start < input.len() => input[start] ^= 1 << rng.below(8),
        3 if start < input.len() => input[start] = rng.next_u64() as u8,
        4 if !corpus.is_empty() => {
            let other = &corpus[rng.below(corpus.len())];
            let from = rng.below(other.len() + 1);
            let excerpt = &other[from..other.len().min(from + 40)];
            input.splice(start..start, excerpt.iter().copied());
        }
        5 => input.truncate(start),
        _ if words.is_empty() => input.insert(start, rng.next_u64() as u8),
        _ => {
            let word = words[rng.below(words.len())].as_bytes();
            let end = if rng.chance(0.5) { end } else { start };
            input.splice(start..end, word.iter().copied());
        }
    }
}
