//! The choices of a stream, each as soon as it appears.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use unbraid_core::StreamError;

use super::{choice::Choice, cursor};
use crate::{
    control::Guard,
    state::completion::{Board, Listing},
    sync::shared::Watcher,
};

/// The choices in order of first appearance, each with its first update already in it (R44, R45).
///
/// It goes on until the stream closes. It gives an `Err`, as its last item, only if the error ended a choice, kept one
/// from coming (the limit on choices), or no choice had come at all; [`Completions::closed`](crate::Completions::closed)
/// always tells. A clone goes on from the same place on its own. Dropping it frees and cancels nothing while another
/// handle lives.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let body = "data: {\"choices\":[{\"index\":3,\"delta\":{}},{\"index\":1,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let completions = Completions::from_byte_stream(bytes);
/// let mut choices = completions.choices();
/// let mut order = Vec::new();
/// while let Some(Ok(choice)) = choices.next().await {
///     order.push(choice.index().0);
/// }
/// assert_eq!(order, [3, 1]);
/// # }
/// ```
#[derive(Clone)]
pub struct Choices {
    board: Watcher<Listing>,
    guard: Arc<Guard>,
    pub(super) next: usize,
    pub(super) done: bool,
}

impl Choices {
    pub(crate) fn new(board: &Arc<Board>, guard: &Arc<Guard>) -> Self {
        Self {
            board: Watcher::new(board),
            guard: Arc::clone(guard),
            next: 0,
            done: false,
        }
    }

    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Choice, StreamError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let Self { board, next, .. } = self;
        let look = board.poll(cx, |listing| {
            match (listing.choices.get(*next), &listing.closed) {
                (Some(log), _) => Poll::Ready(Ok(log.clone())),
                (None, Some(closed)) => Poll::Ready(Err(closed
                    .result
                    .clone()
                    .err()
                    .filter(|_| closed.told_by_choices))),
                (None, None) => Poll::Pending,
            }
        });
        look.map(|found| match found {
            Ok(log) => {
                self.next += 1;
                Some(Ok(Choice::new(log, Arc::clone(&self.guard))))
            }
            Err(error) => {
                self.done = true;
                error.map(Err)
            }
        })
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

cursor!(Choices, Choice, StreamError);
