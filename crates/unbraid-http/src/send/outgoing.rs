//! An encoded request, whose body can be sent any number of times.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use reqwest::Url;

/// What every attempt of one request sends.
#[derive(Clone)]
pub(crate) struct Outgoing {
    pub(super) url: Url,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Single(Bytes),
    Segments(Vec<Bytes>),
}

impl Outgoing {
    pub(crate) fn single(url: Url, body: Bytes) -> Self {
        let content = Content::Single(body);
        Self { url, content }
    }

    /// A body whose segments other requests may share.
    pub(crate) fn segments(url: Url, segments: Vec<Bytes>) -> Self {
        let content = Content::Segments(segments);
        Self { url, content }
    }

    /// The body of one attempt. It copies nothing.
    pub(super) fn body(&self) -> reqwest::Body {
        match &self.content {
            Content::Single(bytes) => bytes.clone().into(),
            Content::Segments(segments) => reqwest::Body::wrap(SegmentedBody::new(segments)),
        }
    }
}

/// The size of the frames of a segmented body. If a connection does not support vectored writes, hyper copies each frame into
/// a buffer of its own. A prompt in one frame would be copied as a whole, once for each connection.
const FRAME_BYTES: usize = 64 * 1024;

/// A body of known length, in segments.
struct SegmentedBody {
    segments: VecDeque<Bytes>,
    remaining: u64,
}

impl SegmentedBody {
    fn new(segments: &[Bytes]) -> Self {
        Self {
            segments: segments
                .iter()
                .filter(|segment| !segment.is_empty())
                .cloned()
                .collect(),
            remaining: segments.iter().map(|segment| segment.len() as u64).sum(),
        }
    }

    fn next_frame(&mut self) -> Option<Bytes> {
        let segment = self.segments.front_mut()?;
        let frame = segment.split_to(segment.len().min(FRAME_BYTES));
        if segment.is_empty() {
            self.segments.pop_front();
        }
        self.remaining -= frame.len() as u64;
        Some(frame)
    }
}

impl http_body::Body for SegmentedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next_frame().map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests;
