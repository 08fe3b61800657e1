//! Cancels that are sent twice: by two clients, or through two gateways.

use futures::FutureExt;
use tokio::sync::oneshot;
use unbraid_core::ChoiceIndex;
use unbraid_log::Event;

use super::*;

const CANCELLED: ChoiceIndex = ChoiceIndex(1);

impl Running {
    async fn cancels(&self, choice: ChoiceIndex) {
        let cancelled = timeout(PATIENCE, self.live.cancel(Some(choice))).await;
        assert_eq!(cancelled.unwrap().unwrap().end, End::Cancelled);
    }

    /// The events of the log that concern a choice.
    fn events_of(&self, choice: ChoiceIndex) -> Vec<&'static str> {
        let records = self.kept.records.lock().unwrap();
        let events = records.iter().flat_map(Record::events);
        let names = events.filter_map(|(_, event)| match event {
            Event::ChoiceEnd { choice: ended, .. } => (ended == choice).then_some("end"),
            Event::Synthetic { choices, .. } => choices.contains(choice).then_some("synthetic"),
            event => event.choices().contains(choice).then_some("chunk"),
        });
        names.collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_was_cancelled_before_its_own_answer_is_not_cancelled_again() {
    let (answer, answered) = oneshot::channel();
    let start = async move { Ok(answered.await.unwrap()) }.boxed();
    let running = Running::start_later(start, Mode::Open, OnLogFailure::Degrade).await;
    running.cancels(CANCELLED).await;
    let (body, _open) = silent();
    let single = |choice, source| StartedPart {
        source,
        choice: Some(choice),
    };
    let started = Started {
        parts: vec![
            single(ChoiceIndex(0), PartSource::Open(body)),
            single(CANCELLED, PartSource::Waiting(pending().boxed())),
        ],
        singles: None,
    };
    assert!(answer.send(started).is_ok());
    // Once the answer has begun.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!running.events_of(ChoiceIndex(0)).is_empty());
    running.cancels(CANCELLED).await;
    assert_eq!(running.events_of(CANCELLED), ["synthetic", "end"]);
    running.task.abort();
}
