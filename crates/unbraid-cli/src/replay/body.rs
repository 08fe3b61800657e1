//! The body of a replayed response: its events at their pace, cut anew, up to where it breaks.

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
use crate::serve::{Abort, Body};

/// A body in the pieces that its server would have sent.
#[derive(Debug, Clone)]
pub(super) struct Pieces(Arc<[Bytes]>);

/// Time that a client gets to read what came before a reset, which throws away what is on its way.
const BEFORE_BREAK: Duration = Duration::from_millis(50);

impl Pieces {
    pub(super) fn of_events(events: &Arc<[Bytes]>) -> Self {
        Self(Arc::clone(events))
    }

    /// One text; it can only break in its middle.
    pub(super) fn of_whole(mut text: Bytes) -> Self {
        let half = text.split_to(text.len() / 2);
        Self([half, text].into())
    }

    /// Sends a piece each `step`, in new pieces of `cut` bytes if that is asked for.
    pub(super) fn body(
        self,
        step: Option<Duration>,
        cut: Option<usize>,
        fault: Option<Fault>,
    ) -> Body {
        let all = self.0.len();
        let (kept, rest) = match fault {
            None | Some(Fault::Status(_)) => (all, stream::empty().boxed()),
            Some(Fault::Body(broken, events)) => (events.unwrap_or(all / 2), broken.rest()),
        };
        let pieces = self.paced(kept.min(all), step);
        let pieces = match cut {
            None => pieces.boxed(),
            Some(cut) => recut(pieces.boxed(), cut).boxed(),
        };
        let frames = pieces.map(Ok).chain(rest);
        StreamBody::new(frames.map(|piece| piece.map(Frame::data))).boxed_unsync()
    }

    fn paced(self, kept: usize, step: Option<Duration>) -> impl Stream<Item = Bytes> + Send {
        let start = Instant::now();
        stream::iter(0..kept).then(move |k| {
            let piece = self.0.get(k).cloned().unwrap_or_default();
            async move {
                if let Some(step) = step {
                    let steps = u32::try_from(k).unwrap_or(u32::MAX);
                    time::sleep_until(start + step.saturating_mul(steps)).await;
                }
                piece
            }
        })
    }
}

impl Break {
    fn rest(self) -> BoxStream<'static, Result<Bytes, BoxError>> {
        let broken = |abort: Abort| {
            stream::once(async move {
                time::sleep(BEFORE_BREAK).await;
                Err(abort.into())
            })
        };
        match self {
            Self::End => stream::empty().boxed(),
            Self::Close => broken(Abort::Close).boxed(),
            Self::Reset => broken(Abort::Reset).boxed(),
            Self::Stall => stream::pending().boxed(),
        }
    }
}

/// The same bytes in pieces of one size; the last one may be smaller.
fn recut(pieces: BoxStream<'static, Bytes>, size: usize) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(
        (pieces, BytesMut::new()),
        move |(mut pieces, mut held)| async move {
            while held.len() < size {
                match pieces.next().await {
                    Some(piece) => held.extend_from_slice(&piece),
                    None => break,
                }
            }
            if held.is_empty() {
                return None;
            }
            // While it waits the server writes what it has, so that pieces are not put together again at once.
            task::yield_now().await;
            let piece = held.split_to(size.min(held.len())).freeze();
            Some((piece, (pieces, held)))
        },
    )
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http_body_util::BodyExt;

    use super::{Break, Bytes, Duration, Fault, Instant, Pieces};

    const EVENTS: [&str; 4] = ["aaaa", "bb", "cccc", "d"];

    fn pieces() -> Pieces {
        Pieces(
            EVENTS
                .map(|event| Bytes::from_static(event.as_bytes()))
                .into(),
        )
    }

    /// The pieces that are sent, and the error behind them.
    async fn sent(cut: Option<usize>, fault: Option<Fault>) -> (Vec<String>, bool) {
        let mut body = pieces().body(None, cut, fault).into_data_stream();
        let mut sent = Vec::new();
        while let Some(piece) = body.next().await {
            match piece {
                Ok(piece) => sent.push(String::from_utf8(piece.into()).unwrap()),
                Err(_) => return (sent, true),
            }
        }
        (sent, false)
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_are_cut_anew() {
        assert_eq!(sent(None, None).await.0, EVENTS);
        assert_eq!(sent(Some(3), None).await.0, ["aaa", "abb", "ccc", "cd"]);
        assert_eq!(sent(Some(1), None).await.0.len(), 11);
        assert_eq!(sent(Some(99), None).await.0, ["aaaabbccccd"]);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_break_where_they_are_told_to() {
        let broken = |how, events| Some(Fault::Body(how, events));
        let (end, failed) = sent(None, broken(Break::End, None)).await;
        assert_eq!((end.concat().as_str(), failed), ("aaaabb", false));
        let (reset, failed) = sent(Some(2), broken(Break::Reset, Some(1))).await;
        assert_eq!((reset.concat().as_str(), failed), ("aaaa", true));
        let (close, failed) = sent(None, broken(Break::Close, Some(99))).await;
        assert_eq!((close.concat().as_str(), failed), ("aaaabbccccd", true));
    }

    #[tokio::test(start_paused = true)]
    async fn events_wait_for_their_turn() {
        let start = Instant::now();
        let step = Some(Duration::from_millis(250));
        let body = pieces().body(step, None, None).collect().await.unwrap();
        assert_eq!(body.to_bytes(), "aaaabbccccd");
        assert_eq!(start.elapsed().as_millis(), 750);
    }

    #[test]
    fn a_whole_text_breaks_in_its_middle() {
        assert_eq!(&*Pieces::of_whole("abcd".into()).0, ["ab", "cd"]);
    }
}
