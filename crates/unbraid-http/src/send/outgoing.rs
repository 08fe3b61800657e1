//! A request on its way out: its interface, and a body that can be sent any number of times.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::request::Kind;

/// What every attempt of one request sends.
#[derive(Clone)]
pub(crate) struct Outgoing {
    pub(crate) kind: Kind,
    body: Content,
}

#[derive(Clone)]
enum Content {
    Whole(Bytes),
    Parts(Vec<Bytes>),
}

impl Outgoing {
    pub(crate) fn whole(kind: Kind, body: Bytes) -> Self {
        let body = Content::Whole(body);
        Self { kind, body }
    }

    /// A body whose parts other requests may share.
    pub(crate) fn parts(kind: Kind, parts: Vec<Bytes>) -> Self {
        let body = Content::Parts(parts);
        Self { kind, body }
    }

    /// The body of one attempt. It copies nothing.
    pub(super) fn body(&self) -> reqwest::Body {
        match &self.body {
            Content::Whole(bytes) => bytes.clone().into(),
            Content::Parts(parts) => reqwest::Body::wrap(Parts::new(parts)),
        }
    }
}

/// Bytes handed to the connection at once. hyper copies what it is given into a buffer of its own if the connection cannot
/// write several buffers in one call: a prompt handed over whole would be copied whole, once for each connection.
const PIECE_BYTES: usize = 64 * 1024;

/// A body of known length, in parts.
struct Parts {
    parts: VecDeque<Bytes>,
    left: u64,
}

impl Parts {
    fn new(parts: &[Bytes]) -> Self {
        Self {
            parts: parts
                .iter()
                .filter(|part| !part.is_empty())
                .cloned()
                .collect(),
            left: parts.iter().map(|part| part.len() as u64).sum(),
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        let part = self.parts.front_mut()?;
        let piece = part.split_to(part.len().min(PIECE_BYTES));
        if part.is_empty() {
            self.parts.pop_front();
        }
        self.left -= piece.len() as u64;
        Some(piece)
    }
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests;
