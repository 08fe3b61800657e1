//! The tokens of an encoding and their ranks, in the form that the build script wrote. There is nothing to load.

use super::layout::{HEAD_BYTES, OFFSET_BITS, fingerprint, hash};

/// The tokens of one encoding.
#[derive(Debug)]
pub(super) struct Table {
    slots: &'static [u8],
    entries: &'static [u8],
}

macro_rules! table {
    ($name:literal) => {
        Table {
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
            entries: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".entries")),
        }
    };
}

pub(super) static O200K: Table = table!("o200k_base");
pub(super) static CL100K: Table = table!("cl100k_base");
pub(super) static P50K: Table = table!("p50k_base");
pub(super) static R50K: Table = table!("r50k_base");

impl Table {
    /// The rank of a token, if these bytes are one.
    pub(super) fn rank(&self, token: &[u8]) -> Option<u32> {
        let hash = hash(token);
        let (slots, _) = self.slots.as_chunks::<4>();
        let mask = slots.len().checked_sub(1)?; // the length is a power of two
        let mut at = usize::try_from(hash & mask as u64).ok()?;
        loop {
            let slot = u32::from_le_bytes(*slots.get(at)?);
            if slot == 0 {
                return None; // a fifth of the slots is empty, so every search ends
            }
            let offset = slot & ((1 << OFFSET_BITS) - 1);
            if slot - offset == fingerprint(hash)
                && let Some(rank) = self.rank_at(offset, token)
            {
                return Some(rank);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of tokens.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let (slots, _) = self.slots.as_chunks::<4>();
        slots.iter().filter(|slot| **slot != [0; 4]).count()
    }

    /// The rank of the entry at an offset, if it is that of this token.
    fn rank_at(&self, offset: u32, token: &[u8]) -> Option<u32> {
        let entry = self.entries.get(offset as usize..)?;
        let ([length, rank @ ..], rest) = entry.split_first_chunk::<HEAD_BYTES>()?;
        let [a, b, c] = *rank;
        (usize::from(*length) == token.len() && rest.starts_with(token))
            .then(|| u32::from_le_bytes([a, b, c, 0]))
    }
}
