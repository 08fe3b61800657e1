//! The choices of a completion, each as soon as it appears.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use unbraid_core::StreamError;

use super::{choice::Choice, cursor};
use crate::{
    control::CancelOnDrop,
    state::completion::CompletionState,
    sync::shared::{Shared, Watcher},
};

/// The choices in order of first appearance, each with its first update already applied; see
/// [`Completions::choices`](crate::Completions::choices).
///
/// The stream goes on until the completion closes. Its last item is an `Err` only if the error ended a choice, kept one from
/// appearing (the limit on choices), or no choice had appeared at all; [`Completions::closed`](crate::Completions::closed)
/// always returns the error.
///
/// A clone continues from the same position on its own. Dropping it cancels nothing while another handle lives.
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
    completion: Watcher<CompletionState>,
    guard: Arc<CancelOnDrop>,
    pub(super) next: usize,
    pub(super) done: bool,
}

impl Choices {
    pub(super) fn new(
        completion: &Arc<Shared<CompletionState>>,
        guard: &Arc<CancelOnDrop>,
    ) -> Self {
        Self {
            completion: Watcher::new(completion),
            guard: Arc::clone(guard),
            next: 0,
            done: false,
        }
    }

    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Choice, StreamError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let Self {
            completion, next, ..
        } = self;
        let found = completion.poll(cx, |state| {
            match (state.choices.get(*next), &state.closed) {
                (Some(log), _) => Poll::Ready(Ok(log.clone())),
                (None, Some(closed)) => Poll::Ready(Err(closed.reported_error())),
                (None, None) => Poll::Pending,
            }
        });
        found.map(|found| match found {
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
