//! The memory of request bodies, and of answers that are read to their end: it counts toward the limit on the gateway's memory.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A copy that is shorter does not wait, so that no small request waits behind large ones.
const SHORT_COPY_BYTES: usize = 64 * 1024;

/// How many bytes the bodies of all requests take, with their copies.
#[derive(Debug, Clone)]
pub(crate) struct BodyMemory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bytes: AtomicUsize,
    /// Room for the copies that fan-outs send, in KiB.
    copies: Arc<Semaphore>,
    max_copies: u32,
}

/// The bytes of one body. They count until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    memory: BodyMemory,
    bytes: usize,
}

/// A body, and its place in the memory.
struct Counted<T> {
    body: T,
    _held: HeldBytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    /// A fan-out has up to 16 copies of its body, and its request has been accepted as one. So long copies wait for each other
    /// beyond a quarter of the limit. A copy is dropped once its answer begins, so one waits for each before it at most as long as
    /// an upstream may take for that.
    pub(crate) fn new(max_memory: u64) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let max_copies = u32::try_from(max_memory / 4 / 1024).unwrap_or(most);
        let max_copies = max_copies.clamp(1, most);
        Self(Arc::new(Shared {
            bytes: AtomicUsize::new(0),
            copies: Arc::new(Semaphore::new(max_copies as usize)),
            max_copies,
        }))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn hold(&self, bytes: usize) -> HeldBytes {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        HeldBytes {
            memory: self.clone(),
            bytes,
        }
    }

    /// A text whose bytes count until the last handle of it is dropped.
    pub(crate) fn count(&self, text: String) -> Bytes {
        self.count_with(text, None)
    }

    /// The same for a copy of a body of so many bytes. A long one waits until there is room for it.
    pub(crate) async fn copy_when_room(
        &self,
        bytes: usize,
        copy: impl FnOnce() -> String,
    ) -> Bytes {
        if bytes < SHORT_COPY_BYTES {
            return self.count(copy());
        }
        let room = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX);
        let room = room.min(self.0.max_copies);
        // The semaphore is never closed.
        let room = Arc::clone(&self.0.copies).acquire_many_owned(room).await;
        self.count_with(copy(), room.ok())
    }

    fn count_with(&self, text: String, room: Option<OwnedSemaphorePermit>) -> Bytes {
        let held = self.hold(text.len());
        Bytes::from_owner(Counted {
            body: text,
            _held: held,
            _room: room,
        })
    }
}

impl HeldBytes {
    pub(crate) fn memory(&self) -> &BodyMemory {
        &self.memory
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.memory.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    /// The bytes that are held. They count until the last handle of them is dropped.
    pub(crate) fn into_bytes(self, body: BytesMut) -> Bytes {
        Bytes::from_owner(Counted {
            body,
            _held: self,
            _room: None,
        })
    }

    /// Frees what is held beyond so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let freed = self.bytes.saturating_sub(bytes);
        self.memory.0.bytes.fetch_sub(freed, Ordering::Relaxed);
        self.bytes -= freed;
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Counted<T> {
    fn as_ref(&self) -> &[u8] {
        self.body.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn bytes_count_until_the_last_handle_is_dropped() {
        let memory = BodyMemory::new(1 << 20);
        let mut held = memory.hold(10);
        held.add(5);
        let text = held.memory().count("1234567".to_owned());
        let slice = text.slice(2..3);
        drop(text);
        assert_eq!(memory.bytes(), 22);
        held.shrink_to(1);
        held.shrink_to(9);
        assert_eq!(memory.bytes(), 8);
        drop((held, slice));
        assert_eq!(memory.bytes(), 0);
    }

    #[tokio::test]
    async fn copies_wait_for_each_other_and_one_of_any_size_has_room_alone() {
        let memory = BodyMemory::new(4 << 20);
        let copy = |bytes: usize| memory.copy_when_room(bytes, move || "x".repeat(bytes));
        let half = copy(512 * 1024).await;
        let mut large = pin!(copy(100 << 20));
        assert!(large.as_mut().now_or_never().is_none());
        assert_eq!(memory.bytes(), half.len());
        assert!(copy(1024).now_or_never().is_some(), "a short one passes");
        drop(half);
        assert_eq!(large.await.len(), 100 << 20);
        assert!(copy(1 << 20).now_or_never().is_some());
        assert_eq!(memory.bytes(), 0);
    }
}
