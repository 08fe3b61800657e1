//! How the table of an encoding is stored. The build script writes it, and `table` reads it.
//!
//! A table has two parts. An *entry* is the length of a token in one byte, its rank in three, and its bytes. A *slot* is zero, or
//! the offset of an entry with some bits of the hash of its token. The slots are a hash table with linear probing.

/// The bits of a slot that are the offset of its entry; the others are those of the hash.
pub(crate) const OFFSET_BITS: u32 = 22;

/// The bytes of an entry before its token.
pub(crate) const HEAD_BYTES: usize = 4;

/// FNV-1a, whose low bits select the slot.
pub(crate) fn hash(token: &[u8]) -> u64 {
    token.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The bits of the hash that a slot keeps, so that most slots of other tokens are passed without a read of their entry.
pub(crate) fn fingerprint(hash: u64) -> u32 {
    ((hash >> 32) as u32) >> OFFSET_BITS << OFFSET_BITS
}
