//! The body of a replayed response: its events at their pace, in chunks of the requested size, up to the fault.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::{
    task,
    time::{self, Instant},
};
use unbraid::BoxError;

use super::fault::{Break, Fault};
use crate::server::{Abort, Body};

/// A body in the chunks in which its server would have sent it.
#[derive(Debug, Clone)]
pub(super) struct Chunks(Arc<[Bytes]>);

/// The pause before a connection breaks. A reset discards data in transit, so the client needs time to read it.
const BEFORE_BREAK: Duration = Duration::from_millis(50);

impl Chunks {
    pub(super) fn from_events(events: &Arc<[Bytes]>) -> Self {
        Self(Arc::clone(events))
    }

    /// Cuts a whole response into two chunks, so that a fault can strike in its middle.
    pub(super) fn from_response(mut text: Bytes) -> Self {
        let half = text.split_to(text.len() / 2);
        Self([half, text].into())
    }

    /// Creates a body that sends one event at each `interval`, re-cut into chunks of `cut` bytes.
    pub(super) fn into_body(
        self,
        interval: Option<Duration>,
        cut: Option<usize>,
        fault: Option<Fault>,
    ) -> Body {
        let count = self.0.len();
        let (sent, end) = match fault {
            None | Some(Fault::Status(_)) => (count, stream::empty().boxed()),
            Some(Fault::Body(fault, events)) => (events.unwrap_or(count / 2), fault.stream()),
        };
        let chunks = self.paced(sent.min(count), interval);
        let chunks = match cut {
            None => chunks.boxed(),
            Some(cut) => recut(chunks.boxed(), cut).boxed(),
        };
        let frames = chunks.map(Ok).chain(end);
        StreamBody::new(frames.map(|chunk| chunk.map(Frame::data))).boxed_unsync()
    }

    fn paced(self, sent: usize, interval: Option<Duration>) -> impl Stream<Item = Bytes> + Send {
        let start = Instant::now();
        stream::iter(0..sent).then(move |k| {
            let chunk = self.0.get(k).cloned().unwrap_or_default();
            async move {
                if let Some(interval) = interval {
                    // Times count from the start, so that late timers do not add up.
                    let intervals = u32::try_from(k).unwrap_or(u32::MAX);
                    time::sleep_until(start + interval.saturating_mul(intervals)).await;
                }
                chunk
            }
        })
    }
}

impl Break {
    /// The end of a body that breaks like this.
    fn stream(self) -> BoxStream<'static, Result<Bytes, BoxError>> {
        let abort = |abort: Abort| {
            stream::once(async move {
                time::sleep(BEFORE_BREAK).await;
                Err(abort.into())
            })
        };
        match self {
            Self::End => stream::empty().boxed(),
            Self::Close => abort(Abort::Close).boxed(),
            Self::Reset => abort(Abort::Reset).boxed(),
            Self::Stall => stream::pending().boxed(),
        }
    }
}

/// Cuts the same bytes into chunks of one size. The last one may be smaller.
fn recut(chunks: BoxStream<'static, Bytes>, size: usize) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(
        (chunks, BytesMut::new()),
        move |(mut chunks, mut buffer)| async move {
            while buffer.len() < size {
                match chunks.next().await {
                    Some(chunk) => buffer.extend_from_slice(&chunk),
                    None => break,
                }
            }
            if buffer.is_empty() {
                return None;
            }
            // While this task yields, the server writes the previous chunk. Otherwise hyper would join the two.
            task::yield_now().await;
            let chunk = buffer.split_to(size.min(buffer.len())).freeze();
            Some((chunk, (chunks, buffer)))
        },
    )
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http_body_util::BodyExt;

    use super::{Break, Bytes, Chunks, Duration, Fault, Instant};

    const EVENTS: [&str; 4] = ["aaaa", "bb", "cccc", "d"];

    fn chunks() -> Chunks {
        Chunks(
            EVENTS
                .map(|event| Bytes::from_static(event.as_bytes()))
                .into(),
        )
    }

    /// The chunks that are sent, and whether an error follows them.
    async fn sent(cut: Option<usize>, fault: Option<Fault>) -> (Vec<String>, bool) {
        let mut body = chunks().into_body(None, cut, fault).into_data_stream();
        let mut sent = Vec::new();
        while let Some(chunk) = body.next().await {
            match chunk {
                Ok(chunk) => sent.push(String::from_utf8(chunk.into()).unwrap()),
                Err(_) => return (sent, true),
            }
        }
        (sent, false)
    }

    #[tokio::test(start_paused = true)]
    async fn chunks_are_recut_to_the_requested_size() {
        assert_eq!(sent(None, None).await.0, EVENTS);
        assert_eq!(sent(Some(3), None).await.0, ["aaa", "abb", "ccc", "cd"]);
        assert_eq!(sent(Some(1), None).await.0.len(), 11);
        assert_eq!(sent(Some(99), None).await.0, ["aaaabbccccd"]);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_break_after_the_requested_number_of_events() {
        let fault = |kind, events| Some(Fault::Body(kind, events));
        let (end, failed) = sent(None, fault(Break::End, None)).await;
        assert_eq!((end.concat().as_str(), failed), ("aaaabb", false));
        let (reset, failed) = sent(Some(2), fault(Break::Reset, Some(1))).await;
        assert_eq!((reset.concat().as_str(), failed), ("aaaa", true));
        let (close, failed) = sent(None, fault(Break::Close, Some(99))).await;
        assert_eq!((close.concat().as_str(), failed), ("aaaabbccccd", true));
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_sent_at_their_interval() {
        let start = Instant::now();
        let interval = Some(Duration::from_millis(250));
        let body = chunks()
            .into_body(interval, None, None)
            .collect()
            .await
            .unwrap();
        assert_eq!(body.to_bytes(), "aaaabbccccd");
        assert_eq!(start.elapsed().as_millis(), 750);
    }

    #[test]
    fn a_whole_response_breaks_in_its_middle() {
        assert_eq!(&*Chunks::from_response("abcd".into()).0, ["ab", "cd"]);
    }
}
