use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use unbraid::{ChoiceEnd, StreamError};
use unbraid_log::{Command, End, Event, JournalReader, Meta, Seq, completions};
use unbraid_testkit::fixture::Fixture;

use crate::{Recorded, first_deltas, new_log};

/// The chunks of a choice in a log, and whether one of them says that it was cancelled.
fn chunks(mut reader: JournalReader, choice: u32) -> (usize, bool) {
    let (mut chunks, mut is_cancelled) = (0, false);
    let batch = reader.read(usize::MAX).unwrap();
    for (_, event) in batch.records.iter().flat_map(unbraid_log::Record::events) {
        match event {
            Event::Chunk { choices, .. } if choices.contains(choice.into()) => chunks += 1,
            Event::Synthetic { payload, .. } => {
                let payload = String::from_utf8_lossy(payload);
                is_cancelled |= payload.contains(r#""finish_reason":"cancelled""#);
            }
            _ => {}
        }
    }
    (chunks, is_cancelled)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_choice_ends_for_all_readers_and_the_others_continue() {
    let mut recorded = Recorded::start(2).await;
    let (one, other) = (recorded.read(), recorded.read());
    recorded.content(0, "a").await;
    recorded.content(1, "b").await;
    assert_eq!(first_deltas(&one, 1, 1).await, "b");
    assert_eq!(first_deltas(&other, 1, 1).await, "b");
    let (ours, theirs) = (one.choice(1).await.unwrap(), other.choice(1).await.unwrap());
    ours.cancel();
    // Here at once, there through the log.
    assert_eq!(ours.outcome().await.end, ChoiceEnd::Cancelled);
    let outcome = theirs.outcome().await;
    assert_eq!(outcome.end, ChoiceEnd::Cancelled);
    assert_eq!(
        (&*outcome.message.content, outcome.finish_reason),
        ("b", None)
    );
    assert!(theirs.finished().await.is_err(), "it is not complete");
    // The upstream still sends it.
    recorded.content(1, "dropped").await;
    recorded.content(0, "c").await;
    recorded.finish(0).await;
    recorded.write("data: [DONE]\n\n").await;
    for reader in [&one, &other] {
        let choice = reader.choice(0).await.unwrap();
        assert_eq!(choice.text().await.unwrap(), "ac");
    }
    let reader = recorded.recording.journal().reader(Seq::START);
    assert_eq!(recorded.end().await.end, End::Finished);
    assert_eq!(chunks(reader, 1), (1, true));
    // A reader that comes later gets the same.
    assert_eq!(other.choice(1).await.unwrap().text().await.ok(), None);
}

/// After the cancel, events that have several choices are cut. What cannot be cut must not be lost.
#[tokio::test(start_paused = true)]
async fn the_choices_beside_a_cancelled_one_keep_everything() {
    let candidate = |index: u32, text: &str| {
        format!(r#"{{"index":{index},"content":{{"parts":[{{"text":"{text}"}}]}}}}"#)
    };
    let candidates = |texts: [&str; 2]| {
        let [first, second] = texts;
        let (first, second) = (candidate(0, first), candidate(1, second));
        format!("data: {{\"candidates\":[{first},{second}]}}\n\n")
    };
    let choice = |index: &str, text: &str, more: &str| {
        format!(r#"{{"index":{index},"delta":{{"content":"{text}"}}{more}}}"#)
    };
    let chunk = |entries: &[String]| {
        let entries = entries.join(",");
        format!("data: {{\"choices\":[{entries}]}}\n\n")
    };
    let nan = r#","logprobs":{"content":[{"token":"c","logprob":NaN}]}"#;
    let first = chunk(&[choice("0", "a", ""), choice("1", "b", "")]);
    let cases = [
        (
            &first,
            chunk(&[choice("0", "c", nan), choice("1", "dropped", "")]),
            "ac",
        ),
        (
            &first,
            chunk(&[choice("0", "\\ud83d", ""), choice("1", "dropped", "")]),
            "a\u{FFFD}",
        ),
        (
            &first,
            chunk(&[choice("\"0\"", "c", ""), choice("\"1\"", "dropped", "")]),
            "ac",
        ),
        (&candidates(["a", "b"]), candidates(["c", "dropped"]), "ac"),
    ];
    for (first, second, expected) in cases {
        let mut recorded = Recorded::start(2).await;
        let readers = [recorded.read(), recorded.recording.completions()];
        recorded.write(first).await;
        for reader in &readers {
            assert_eq!(first_deltas(reader, 1, 1).await, "b");
        }
        recorded.recording.cancel_choice(1);
        for reader in &readers {
            let cancelled = reader.choice(1).await.unwrap().outcome().await;
            assert_eq!(cancelled.end, ChoiceEnd::Cancelled);
        }
        recorded.write(&second).await;
        recorded.write("data: [DONE]\n\n").await;
        for reader in readers.iter().chain([&recorded.read()]) {
            let closed = reader.closed().await;
            let (kept, cancelled) = (
                reader.choice(0).await.unwrap(),
                reader.choice(1).await.unwrap(),
            );
            assert_eq!(
                kept.outcome().await.message.content,
                expected,
                "{second} {closed:?}"
            );
            assert_eq!(cancelled.outcome().await.message.content, "b", "{second}");
        }
    }
}

/// Its dialect holds back what may change until the end of the response.
#[tokio::test(start_paused = true)]
async fn p14_a_cancelled_choice_has_what_was_held_back() {
    let fixture = Fixture::named("responses/openai-p14-encrypted-content-at-the-end");
    let body = String::from_utf8(fixture.bytes).unwrap();
    let mut recorded = Recorded::start(1).await;
    let readers = [recorded.read(), recorded.recording.completions()];
    for event in body.split_inclusive("\n\n").take(9) {
        recorded.write(event).await;
    }
    for reader in &readers {
        assert_eq!(first_deltas(reader, 0, 1).await, "Hi");
    }
    recorded.recording.cancel_choice(0);
    for reader in readers.iter().chain([&recorded.read()]) {
        let outcome = reader.choice(0).await.unwrap().outcome().await;
        assert_eq!(outcome.end, ChoiceEnd::Cancelled);
        let message = serde_json::to_string(&outcome.message).unwrap();
        assert!(
            message.contains("RTE=") && message.contains("QzE="),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_cancel_drops_the_body() {
    let mut recorded = Recorded::start(2).await;
    let reader = recorded.read();
    recorded.content(0, "a").await;
    recorded.content(1, "b").await;
    recorded.finish(0).await;
    let choice = reader.choice(1).await.unwrap();
    first_deltas(&reader, 1, 1).await;
    // Choice 0 has its reason, and ends by silence.
    sleep(Duration::from_secs(1)).await;
    choice.cancel();
    recorded.body_is_dropped().await;
    assert_eq!(reader.choice(0).await.unwrap().text().await.unwrap(), "a");
    assert_eq!(recorded.end().await.end, End::Cancelled);
}

/// Nobody knows whether another choice appears.
#[tokio::test(start_paused = true)]
async fn without_the_number_of_choices_only_the_end_of_all_drops_the_body() {
    let meta = Meta::new("/v1/chat/completions", 1_790_000_000);
    let mut recorded = Recorded::start_with(new_log(), meta).await;
    let own = recorded.recording.completions();
    recorded.content(0, "a").await;
    first_deltas(&own, 0, 1).await;
    recorded.recording.cancel_choice(0);
    let outcome = own.choice(0).await.unwrap().outcome().await;
    assert_eq!(outcome.end, ChoiceEnd::Cancelled);
    recorded.content(1, "b").await;
    assert_eq!(first_deltas(&own, 1, 1).await, "b");
    recorded.recording.cancel();
    recorded.body_is_dropped().await;
    assert_eq!(recorded.end().await.end, End::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_stream_ends_for_all_readers() {
    let mut recorded = Recorded::start(2).await;
    let (one, other) = (recorded.read(), recorded.read());
    recorded.content(0, "a").await;
    first_deltas(&one, 0, 1).await;
    one.cancel();
    assert_eq!(one.closed().await, Err(StreamError::Cancelled));
    assert_eq!(other.closed().await, Err(StreamError::Cancelled));
    let outcome = other.choice(0).await.unwrap().outcome().await;
    assert_eq!(
        (outcome.end, &*outcome.message.content),
        (ChoiceEnd::Cancelled, "a")
    );
    recorded.body_is_dropped().await;
    assert_eq!(recorded.end().await.end, End::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_race_cancels_the_others_at_the_producer() {
    let mut recorded = Recorded::start(2).await;
    let reader = recorded.read();
    recorded.content(0, "slow").await;
    recorded.content(1, "fast").await;
    recorded.finish(1).await;
    let winners = reader.first_finished(1).await;
    assert_eq!(winners[0].message.content, "fast");
    recorded.body_is_dropped().await;
    assert_eq!(recorded.end().await.end, End::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handles_cancels_nothing() {
    let mut recorded = Recorded::start(1).await;
    // One that has read, and one that has not started.
    let reader = recorded.read();
    recorded.content(0, "a").await;
    first_deltas(&reader, 0, 1).await;
    drop(reader);
    drop(recorded.read());
    drop(recorded.recording.completions());
    sleep(Duration::from_secs(60)).await;
    recorded.finish(0).await;
    recorded.write("data: [DONE]\n\n").await;
    let reader = recorded.read();
    assert_eq!(recorded.end().await.end, End::Finished);
    assert_eq!(reader.first().await.unwrap().text().await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn commands_reach_the_recording_that_they_are_for() {
    let log = new_log();
    let mut recordings = Vec::new();
    for _ in 0..20 {
        let mut recorded = Recorded::start_in(Arc::clone(&log), 1).await;
        recorded.content(0, "a").await;
        recordings.push(recorded);
    }
    // Every second one is cancelled, in another order.
    for recorded in recordings.iter().skip(1).step_by(2).rev() {
        let sent = log.send_command(&recorded.id, Command::Cancel(None)).await;
        assert_eq!(sent, Ok(()));
    }
    for (number, mut recorded) in recordings.into_iter().enumerate() {
        let is_cancelled = number % 2 == 1;
        if is_cancelled {
            recorded.body_is_dropped().await;
        } else {
            recorded.finish(0).await;
            recorded.write("data: [DONE]\n\n").await;
        }
        let expected = if is_cancelled {
            End::Cancelled
        } else {
            End::Finished
        };
        assert_eq!(recorded.end().await.end, expected, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_producer_cancels_its_own_recording() {
    let mut recorded = Recorded::start(2).await;
    let own = recorded.recording.completions();
    recorded.content(0, "a").await;
    recorded.content(1, "b").await;
    first_deltas(&own, 1, 1).await;
    recorded.recording.cancel_choice(1);
    // An index that was not requested is ignored.
    recorded.recording.cancel_choice(7);
    let outcome = own.choice(1).await.unwrap().outcome().await;
    assert_eq!(outcome.end, ChoiceEnd::Cancelled);
    recorded.recording.cancel();
    assert_eq!(own.closed().await, Err(StreamError::Cancelled));
    let later = completions(Arc::clone(&recorded.log), recorded.id.clone());
    assert_eq!(later.closed().await, Err(StreamError::Cancelled));
    assert_eq!(recorded.end().await.end, End::Cancelled);
}
