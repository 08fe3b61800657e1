//! Bounds the capacity of the buffers for data that spans several reads.

/// The capacity that a buffer keeps between events. It is more than any ordinary delta needs, so only the rare event
/// with an image or audio frees its memory.
pub(super) const MAX_KEPT_CAPACITY: usize = 64 * 1024;

/// Clears a buffer for its next use.
#[inline]
pub(super) fn clear(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > MAX_KEPT_CAPACITY {
        buffer.shrink_to(MAX_KEPT_CAPACITY);
    }
}

/// Appends to a buffer that may become large. It reserves less than the doubling of `Vec` would.
#[inline]
pub(super) fn append(buffer: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    if buffer.capacity() - buffer.len() < bytes.len() {
        reserve(buffer, bytes.len(), limit);
    }
    buffer.extend_from_slice(bytes);
}

/// Doubles a small buffer and adds a quarter to a large one, but never more than the limit allows.
#[cold]
fn reserve(buffer: &mut Vec<u8>, more: usize, limit: usize) {
    const LARGE: usize = 1024 * 1024;
    let capacity = buffer.capacity();
    let spare = if capacity < LARGE {
        capacity
    } else {
        capacity / 4
    };
    let spare = spare.min(limit.saturating_sub(buffer.len()));
    buffer.reserve_exact(more.max(spare));
}
