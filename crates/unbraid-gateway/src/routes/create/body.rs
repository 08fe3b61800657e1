//! Reads the body of a request, within its limits.

use axum::{
    body::Body,
    http::{
        HeaderMap,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::{
    api_error::ApiError,
    bodies::HeldBytes,
    gateway::Gateway,
    limits::{BODY_CHECK_BYTES, BODY_TIMEOUT, READ_BUFFER_BYTES},
};

/// Reads a body of at most `max` bytes, which is small. One that declares to be longer is not read at all.
pub(crate) async fn read_body(
    gateway: &Gateway,
    body: Body,
    headers: &HeaderMap,
    max: usize,
) -> Result<Bytes, ApiError> {
    declared_length(headers, max)?;
    read(gateway, body, max, |_| Ok(())).await
}

/// Reads the body of a request for the upstream. Its bytes count toward the memory of the gateway while it is read, and until
/// what is returned is dropped: twice, because it is put together from its parts, and then parsed into a copy.
pub(crate) async fn read_counted(
    gateway: &Gateway,
    body: Body,
    headers: &HeaderMap,
) -> Result<(Bytes, HeldBytes), ApiError> {
    let max = gateway.inner.options.max_body;
    let declared = declared_length(headers, max)?;
    // A short body is checked against other bodies only: the check against streams adds up all of them. It follows if the answer
    // is to be kept.
    if declared >= BODY_CHECK_BYTES && !gateway.has_memory_for(declared.saturating_mul(2)) {
        return Err(ApiError::OUT_OF_MEMORY);
    }
    let mut held = gateway.inner.bodies.hold(0);
    let mut unchecked = 0;
    let count = |length: usize| {
        held.add(2 * length);
        unchecked += length;
        let fits = if unchecked < BODY_CHECK_BYTES {
            gateway.has_memory_for_bodies(0)
        } else {
            unchecked = 0;
            gateway.has_memory_for(0)
        };
        fits.then_some(()).ok_or(ApiError::OUT_OF_MEMORY)
    };
    let body = read(gateway, body, max, count).await?;
    Ok((body, held))
}

/// The length that a body declares to have, or 0.
fn declared_length(headers: &HeaderMap, max: usize) -> Result<usize, ApiError> {
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    let declared = declared.and_then(|value| value.parse::<u64>().ok());
    let length = usize::try_from(declared.unwrap_or(0)).unwrap_or(usize::MAX);
    if length > max {
        return Err(ApiError::REQUEST_TOO_LARGE);
    }
    Ok(length)
}

/// A body that is not complete when the gateway begins to drain is not waited for: its connection would be closed without an
/// answer, and the client has to repeat the request in any case.
async fn read(
    gateway: &Gateway,
    body: Body,
    max: usize,
    count: impl FnMut(usize) -> Result<(), ApiError>,
) -> Result<Bytes, ApiError> {
    let read = timeout(BODY_TIMEOUT, collect(Limited::new(body, max), count));
    let read = tokio::select! {
        biased;
        read = read => read,
        () = gateway.inner.drain.cancelled() => return Err(ApiError::DRAINING),
    };
    read.unwrap_or(Err(ApiError::REQUEST_TIMEOUT)).map(detached)
}

/// The bytes of a body, whose parts are counted as they arrive.
async fn collect(
    mut body: Limited<Body>,
    mut count: impl FnMut(usize) -> Result<(), ApiError>,
) -> Result<Bytes, ApiError> {
    let mut parts = Parts::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => ApiError::REQUEST_TOO_LARGE,
            false => ApiError::BODY_CUT,
        })?;
        if let Ok(part) = frame.into_data() {
            count(part.len())?;
            parts.push(part);
        }
    }
    Ok(parts.into_bytes())
}

/// The parts of a body that is read. A client may send it byte by byte, and each part keeps the buffer of the connection that
/// it is a slice of. So short parts are copied together.
#[derive(Default)]
struct Parts {
    parts: Vec<Bytes>,
    /// The short parts after them.
    short: BytesMut,
}

impl Parts {
    const SHORT: usize = 4 * 1024;
    const BLOCK: usize = 64 * 1024;

    fn push(&mut self, part: Bytes) {
        // Most bodies have one part, which is not copied.
        let is_first = self.parts.is_empty() && self.short.is_empty();
        if is_first || part.len() >= Self::SHORT {
            self.close_block();
            self.parts.push(part);
            return;
        }
        if self.short.len() + part.len() > Self::BLOCK {
            self.close_block();
        }
        self.short.extend_from_slice(&part);
    }

    fn close_block(&mut self) {
        if !self.short.is_empty() {
            self.parts.push(self.short.split().freeze());
        }
    }

    fn into_bytes(mut self) -> Bytes {
        self.close_block();
        match self.parts.len() {
            0 | 1 => self.parts.pop().unwrap_or_default(),
            _ => self.parts.concat().into(),
        }
    }
}

/// A short body in memory of its own: it is a part of the connection's buffer, all of which it would keep for as long as a
/// generation runs. A long one is most of its buffer.
fn detached(body: Bytes) -> Bytes {
    if body.len() < READ_BUFFER_BYTES {
        Bytes::copy_from_slice(&body)
    } else {
        body
    }
}

/// Whether the body is declared as JSON, whatever its parameters.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use futures::stream;

    use super::*;

    /// A part of a body, of which it is counted how many exist.
    struct Part(Arc<AtomicUsize>, Vec<u8>);

    impl Part {
        fn counted(parts: &Arc<AtomicUsize>, bytes: Vec<u8>) -> Bytes {
            parts.fetch_add(1, Ordering::Relaxed);
            Bytes::from_owner(Self(Arc::clone(parts), bytes))
        }
    }

    impl AsRef<[u8]> for Part {
        fn as_ref(&self) -> &[u8] {
            &self.1
        }
    }

    impl Drop for Part {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The bytes of a body that arrives in parts of these lengths, and how many parts there were at once.
    async fn collected(lengths: impl IntoIterator<Item = usize>) -> (Bytes, usize) {
        let (parts, mut most) = (Arc::new(AtomicUsize::new(0)), 0);
        let given: Vec<usize> = lengths.into_iter().collect();
        let stream = given.into_iter().enumerate().map({
            let parts = Arc::clone(&parts);
            move |(n, length)| Ok::<_, Infallible>(Part::counted(&parts, vec![n as u8; length]))
        });
        let body = Limited::new(Body::from_stream(stream::iter(stream)), usize::MAX);
        let count = |_| {
            most = most.max(parts.load(Ordering::Relaxed));
            Ok(())
        };
        let bytes = collect(body, count).await.unwrap();
        (bytes, most)
    }

    fn expected(lengths: impl IntoIterator<Item = usize>) -> Vec<u8> {
        let parts = lengths.into_iter().enumerate();
        parts
            .flat_map(|(n, length)| vec![n as u8; length])
            .collect()
    }

    /// Each part keeps the buffer of the connection that it is a slice of.
    #[tokio::test]
    async fn a_body_of_tiny_parts_is_not_kept_in_them() {
        let lengths = || (0..200_000).map(|n| 1 + n % 3);
        let (bytes, most) = collected(lengths()).await;
        assert!(most < 10, "{most}");
        assert!(bytes == expected(lengths()));
    }

    #[tokio::test]
    async fn a_body_is_the_same_whatever_the_lengths_of_its_parts() {
        let all = [0, 1, 4095, 4096, 4097, 70_000];
        for first in all {
            for second in all {
                for third in all {
                    let lengths = [first, second, third, 1, second];
                    assert!(
                        collected(lengths).await.0 == expected(lengths),
                        "{lengths:?}"
                    );
                }
            }
        }
    }
}
