//! The body of a request, of which nothing is left unread.
//!
//! Many clients read no answer before they have sent everything. If the rest of a body that its handler did not need is not
//! read, they never see why: a socket that is closed with unread bytes is reset, with the answer (RFC 9112, 9.6), and over
//! HTTP/2 some clients drop the answer of a stream that is reset before its end.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::{Request, Version, body::Incoming, header::EXPECT};
use tokio::{runtime::Handle, time::timeout};

use super::activity::{ActiveRequest, UnreadBody};
use crate::limits::{DISCARD_IDLE, DISCARD_TIMEOUT};

/// A body that discards what is left of it when it is dropped, within limits.
pub(super) struct RequestBody {
    /// `None` once everything was read.
    incoming: Option<(Incoming, UnreadBody)>,
    /// Bytes that are discarded at most.
    max_discarded: usize,
    /// Whether the client sends nothing until something is read.
    waits: bool,
    active: ActiveRequest,
}

impl RequestBody {
    pub(super) fn wrap(
        request: Request<Incoming>,
        max_discarded: usize,
        active: &ActiveRequest,
    ) -> Request<Self> {
        let expectation = request.headers().get(EXPECT);
        let waits = request.version() < Version::HTTP_2
            && expectation
                .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        request.map(|incoming| Self {
            incoming: (!incoming.is_end_stream()).then(|| (incoming, UnreadBody::new(active))),
            max_discarded,
            waits,
            active: active.clone(),
        })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let Some((incoming, _)) = &mut this.incoming else {
            return Poll::Ready(None);
        };
        this.waits = false;
        let frame = ready!(Pin::new(incoming).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            this.incoming = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let incoming = self.incoming.as_ref();
        incoming.is_none_or(|(incoming, _)| incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let incoming = self.incoming.as_ref();
        incoming.map_or_else(
            || SizeHint::with_exact(0),
            |(incoming, _)| incoming.size_hint(),
        )
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if self.is_end_stream() || self.waits {
            return;
        }
        // Without a runtime, the connection has ended, too.
        if let (Some(incoming), Ok(runtime)) = (self.incoming.take(), Handle::try_current()) {
            runtime.spawn(discard(incoming, self.max_discarded, self.active.clone()));
        }
    }
}

/// Reads a body and discards it. The connection counts as active meanwhile: what arrives is not the head of a request.
async fn discard(unread: (Incoming, UnreadBody), max: usize, _active: ActiveRequest) {
    let (mut incoming, _unread) = unread;
    let mut left = max;
    let discarded = async {
        while let Ok(Some(Ok(frame))) = timeout(DISCARD_IDLE, incoming.frame()).await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Beyond the limits, the connection or the stream is closed after all.
    let _elapsed = timeout(DISCARD_TIMEOUT, discarded).await;
}
