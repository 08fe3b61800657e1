//! Splits a byte stream into reads.
//!
//! A stream has the same meaning for every split. Each function returns the reads of one split; concatenated, they are the
//! input.

/// Every split of `bytes` into two reads, with an empty head and an empty tail included: `len + 1` pairs.
pub fn every_cut_in_two(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    (0..=bytes.len()).map(|middle| bytes.split_at(middle))
}

/// One read for each byte.
pub fn bytewise(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    fixed(bytes, 1)
}

/// Reads of `size` bytes; the last one may be shorter. A size of 0 counts as 1.
pub fn fixed(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(size.max(1))
}

/// Reads of 1 to `max` bytes and an occasional empty one, as a socket may return. The same `seed` gives the same reads.
pub fn random_cuts(bytes: &[u8], seed: u64, max: usize) -> Vec<&[u8]> {
    let mut rng = Rng::new(seed);
    let mut rest = bytes;
    let mut reads = Vec::new();
    while !rest.is_empty() {
        if rng.chance(EMPTY_READS) {
            reads.push(&rest[..0]);
        }
        let (read, tail) = rest.split_at((1 + rng.below(max.max(1))).min(rest.len()));
        reads.push(read);
        rest = tail;
    }
    reads
}

/// A small deterministic generator (splitmix64), so that a failed test can be repeated with its seed.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0 if `n` is 0. The bias of the remainder does not matter in a test.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next_u64() % (n as u64).max(1)) as usize
    }

    /// `true` with probability `p`: never at 0, always at 1.
    pub fn chance(&mut self, p: f64) -> bool {
        // The top 53 bits fill the mantissa of a double evenly.
        ((self.next_u64() >> 11) as f64) < p * (1u64 << 53) as f64
    }
}

/// How often `random_cuts` inserts an empty read: often enough that a test of a few hundred reads has one.
const EMPTY_READS: f64 = 1.0 / 16.0;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"data: {\"a\":1}\r\n\r\n";

    #[track_caller]
    fn check<'a>(reads: impl IntoIterator<Item = &'a [u8]>) {
        let joined: Vec<u8> = reads.into_iter().flatten().copied().collect();
        assert_eq!(joined, TEXT);
    }

    #[test]
    fn every_cut_in_two_concatenates_to_the_input() {
        let mut cuts = 0;
        for (head, tail) in every_cut_in_two(TEXT) {
            check([head, tail]);
            cuts += 1;
        }
        assert_eq!(cuts, TEXT.len() + 1);
    }

    #[test]
    fn reads_concatenate_to_the_input() {
        check(bytewise(TEXT));
        for size in 0..20 {
            check(fixed(TEXT, size));
            for seed in 0..50 {
                check(random_cuts(TEXT, seed, size));
            }
        }
    }

    #[test]
    fn empty_input_has_one_cut_and_no_reads() {
        assert_eq!(every_cut_in_two(b"").count(), 1);
        assert_eq!(bytewise(b"").count(), 0);
        assert!(random_cuts(b"", 1, 4).is_empty());
    }

    #[test]
    fn some_reads_are_empty() {
        let bytes = [7; 1000];
        let reads = random_cuts(&bytes, 3, 4);
        assert!(reads.iter().any(|read| read.is_empty()));
        assert!(reads.iter().all(|read| read.len() <= 4));
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs of Vigna's reference implementation for the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn chance_is_never_at_0_and_always_at_1() {
        let mut rng = Rng::new(9);
        assert!((0..500).all(|_| !rng.chance(0.0)));
        assert!((0..500).all(|_| rng.chance(1.0)));
        assert!((0..500).all(|_| rng.below(3) < 3));
        assert_eq!(rng.below(0), 0);
    }
}
