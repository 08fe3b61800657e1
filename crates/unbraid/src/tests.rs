//! The actors under paused time, with a scripted source. Reaching the deadline fails a test, so that no hang goes unnoticed.

mod after_done;
mod calls;
mod calls_cut;
mod cancel;
mod choice_actors;
mod command_queue;
mod debug;
mod discarded;
mod drain;
mod ends;
mod error_with_choices;
mod event_order;
mod faults;
mod flat_failures;
mod gathered_reads;
mod halves;
pub(crate) mod large;
mod limits;
mod locked_log;
mod loss;
mod merge;
mod merged_choices;
mod outcomes;
mod pending_batches;
mod portions;
mod race;
mod runtime;
mod shared;
mod small_reads;
mod snapshot;
mod streams;
mod timers;
mod timing;
mod traces;
mod usage;
mod waker_panics;
pub(crate) mod wakers;
mod weak;

use std::{future::Future, time::Duration};

use unbraid_testkit::script::{Script, Step};

use crate::{Choice, ChoiceError, ChoiceOutcome, Completions, CompletionsBuilder};

/// Far beyond every deadline of the library; time is paused, so that reaching it costs nothing.
const DEADLINE: Duration = Duration::from_secs(3600);

/// Waits for a future, but not forever.
async fn soon<F: Future>(future: F) -> F::Output {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(output) => output,
        Err(_) => panic!("the future hangs"),
    }
}

fn read(steps: impl IntoIterator<Item = Step>) -> Completions {
    read_with(Completions::builder(), steps)
}

fn read_with(builder: CompletionsBuilder, steps: impl IntoIterator<Item = Step>) -> Completions {
    builder.from_byte_stream(Script::new(steps))
}

/// Every choice in order of appearance, and the error that `choices()` ends with.
async fn all_choices(completions: &Completions) -> (Vec<Choice>, Option<crate::StreamError>) {
    let mut choices = completions.choices();
    let mut seen = Vec::new();
    loop {
        match soon(choices.next()).await {
            Some(Ok(choice)) => seen.push(choice),
            Some(Err(error)) => {
                assert!(
                    soon(choices.next()).await.is_none(),
                    "the error is returned once"
                );
                return (seen, Some(error));
            }
            None => return (seen, None),
        }
    }
}

/// The outcome of a choice, however it ended.
async fn outcome(choice: &Choice) -> ChoiceOutcome {
    soon(choice.outcome()).await
}

/// The end of every choice: `0 finished "text"`.
async fn ends(completions: &Completions) -> Vec<String> {
    let (choices, _) = all_choices(completions).await;
    let mut ends = Vec::new();
    for choice in &choices {
        let finished = outcome(choice).await;
        ends.push(format!(
            "{} {} {:?}",
            finished.choice,
            finished.end.as_str(),
            finished.message.content
        ));
        check_streams(choice, finished.end.is_error()).await;
    }
    ends
}

/// The streams of a choice end according to its end, with one error or none, and stay ended.
async fn check_streams(choice: &Choice, error: bool) {
    #[track_caller]
    fn check<T>(last: &[Result<T, ChoiceError>], error: bool) {
        let errors = last.iter().filter(|item| item.is_err()).count();
        assert_eq!(errors, usize::from(error));
        assert_eq!(last.last().is_some_and(Result::is_err), error);
    }
    let mut content = choice.content();
    let mut items = Vec::new();
    while let Some(item) = soon(content.next()).await {
        items.push(item);
    }
    check(&items, error);
    assert!(soon(content.next()).await.is_none());
    let mut events = choice.events();
    let mut items = Vec::new();
    while let Some(item) = soon(events.next()).await {
        items.push(item);
    }
    check(&items, error);
    let mut reasoning = choice.reasoning();
    let mut items = Vec::new();
    while let Some(item) = soon(reasoning.next()).await {
        items.push(item);
    }
    check(&items, error);
}
