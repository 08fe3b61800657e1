//! How the buffers grow and shrink that hold what reads cut in two.

/// What a buffer may keep between events: more than any ordinary delta takes, so that only the rare image or audio
/// in one event gives its memory back.
pub(super) const ROOMY: usize = 64 * 1024;

/// Empties a buffer for its next use.
#[inline]
pub(super) fn renew(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > ROOMY {
        buffer.shrink_to(ROOMY);
    }
}

/// Appends to a buffer that may grow large, without the spare room that doubling would leave.
#[inline]
pub(super) fn append(buffer: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    if buffer.capacity() - buffer.len() < bytes.len() {
        reserve(buffer, bytes.len(), limit);
    }
    buffer.extend_from_slice(bytes);
}

/// Doubles a small buffer and adds a quarter to a large one, but no more than the limit can ask for.
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
