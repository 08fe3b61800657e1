//! The outcomes of the choices, each as soon as its choice ends.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
};

use unbraid_core::{ChoiceOutcome, Position, StreamError};

use super::cursor;
use crate::{
    control::CancelOnDrop,
    state::{
        choice_log::{ChoiceLog, LogState, Timing},
        completion::CompletionState,
    },
    sync::{
        shared::{Shared, Watcher},
        wait_list::Interest,
    },
};

/// The outcome of each choice as soon as it ends, in the order of the ends; see
/// [`Completions::outcomes`](crate::Completions::outcomes).
///
/// Every choice has one outcome, however it ended: [`ChoiceOutcome::end`] says how. After the last one the stream returns
/// `None`, or first an `Err` under the same conditions as [`Choices`](crate::Choices).
///
/// A clone continues from the same position on its own. Dropping it cancels nothing while another handle lives.
///
/// # Examples
///
/// Judge each answer with an async function, and cancel the others once one is good enough:
///
/// ```
/// # use futures::{StreamExt, stream};
/// use unbraid::{ChoiceOutcome, Completions};
///
/// async fn is_good(outcome: &ChoiceOutcome) -> bool {
///     tokio::task::yield_now().await; // ask another model, run the tests, ...
///     outcome.is_complete() && outcome.message.content.contains("42")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let chunk = |choice| format!("data: {{\"choices\":[{choice}]}}\n\n");
/// # let body = chunk(r#"{"index":0,"delta":{"content":"Hmm"}},{"index":1,"delta":{"content":"No."},"finish_reason":"stop"}"#)
/// #     + &chunk(r#"{"index":2,"delta":{"content":"It is 42."},"finish_reason":"stop"}"#)
/// #     + &chunk(r#"{"index":0,"delta":{"content":"m"}}"#);
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
/// let completions = Completions::from_byte_stream(bytes);
/// let mut outcomes = completions.outcomes();
/// let mut best = None;
/// while let Some(outcome) = outcomes.next().await {
///     let outcome = outcome?;
///     if is_good(&outcome).await {
///         best = Some(outcome);
///         completions.cancel(); // the others
///         break;
///     }
/// }
/// assert_eq!(best.unwrap().message.content, "It is 42.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Outcomes {
    completion: Watcher<CompletionState>,
    _guard: Arc<CancelOnDrop>,
    /// Choices that have not ended.
    open: Vec<OpenChoice>,
    /// Whether the positions of one source order the ends. Those of several sources cannot be compared; their times can.
    by_position: bool,
    /// How many choices of the completion have been seen.
    pub(super) seen: usize,
    /// Outcomes that were found together, in the order of the ends.
    ready: VecDeque<ChoiceOutcome>,
    pub(super) done: bool,
}

#[derive(Clone)]
struct OpenChoice {
    log: Watcher<LogState>,
}

/// An outcome and the moment of its end, by which outcomes that were found together are sorted.
struct Ended {
    timing: Timing,
    position: Option<Position>,
    outcome: ChoiceOutcome,
}

impl Outcomes {
    pub(super) fn new(
        completion: &Arc<Shared<CompletionState>>,
        guard: &Arc<CancelOnDrop>,
    ) -> Self {
        Self {
            completion: Watcher::new(completion),
            _guard: Arc::clone(guard),
            open: Vec::new(),
            by_position: true,
            seen: 0,
            ready: VecDeque::new(),
            done: false,
        }
    }

    fn poll_item(&mut self, cx: &Context<'_>) -> Poll<Option<Result<ChoiceOutcome, StreamError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        if let Some(outcome) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(outcome)));
        }
        // The completion is read first: once it has closed, no choice can appear that would be missed below.
        let closed = self.poll_completion(cx);
        self.poll_choices(cx);
        if let Some(outcome) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(outcome)));
        }
        match closed {
            Poll::Ready(error) if self.open.is_empty() => {
                self.done = true;
                Poll::Ready(error.map(Err))
            }
            _ => Poll::Pending,
        }
    }

    /// Takes new choices; ready once the completion has closed.
    fn poll_completion(&mut self, cx: &Context<'_>) -> Poll<Option<StreamError>> {
        let Self {
            completion,
            open,
            by_position,
            seen,
            ..
        } = self;
        completion.poll(cx, |state| {
            *by_position = state.sources.is_one();
            let new = state.choices.iter().skip(*seen);
            open.extend(new.map(OpenChoice::new));
            *seen = state.choices.len();
            match &state.closed {
                Some(closed) => Poll::Ready(closed.reported_error()),
                None => Poll::Pending,
            }
        })
    }

    fn poll_choices(&mut self, cx: &Context<'_>) {
        let mut ended = Vec::new();
        self.open.retain_mut(|choice| match choice.poll(cx) {
            Poll::Ready(end) => {
                ended.push(end);
                false
            }
            Poll::Pending => true,
        });
        // The sort is stable: choices that ended in one update stay in order of appearance.
        if self.by_position {
            ended.sort_by_key(|end: &Ended| end.position);
        } else {
            ended.sort_by_key(|end| end.timing.end);
        }
        self.ready.extend(ended.into_iter().map(|end| end.outcome));
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl OpenChoice {
    fn new(log: &ChoiceLog) -> Self {
        Self {
            log: Watcher::with_interest(Interest::OTHER, log),
        }
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Ended> {
        self.log.poll(cx, |state| {
            let outcome = state.transcript.outcome();
            outcome.map_or(Poll::Pending, |outcome| {
                Poll::Ready(Ended {
                    timing: state.timing,
                    position: state.end_position(),
                    outcome,
                })
            })
        })
    }
}

cursor!(Outcomes, ChoiceOutcome, StreamError);
