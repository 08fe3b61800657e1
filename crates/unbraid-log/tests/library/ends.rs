use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{SinkExt, StreamExt, stream};
use tokio::time::{Instant, sleep, timeout};
use unbraid::{ChoiceEnd, Completions, StreamError};
use unbraid_log::{
    End, EndError, Event, LogError, Meta, RecordBuilder, Recorder, Seq, StreamEnd, StreamId,
    completions, record,
};
use unbraid_testkit::script;

use crate::{Recorded, first_deltas, new_log};

/// The end that the producer has reported, from the error of a handle.
fn reported(error: &StreamError) -> Option<End> {
    EndError::find_in(error).map(|error| error.end)
}

/// A stream with one open choice and one that has finished, sealed like this.
async fn sealed(end: End) -> Completions {
    let log = new_log();
    let id = StreamId::random().unwrap();
    let mut writer = log.open(&id, &Meta::new("/v1/x", 1)).await.unwrap();
    let mut builder = RecordBuilder::new(Seq(1));
    for event in [
        script::content(0, "open"),
        script::content(1, "ok"),
        script::finish(1, "stop"),
    ] {
        let data = event.trim_start_matches("data: ").trim_end();
        builder.push(&Event::chunk(&[0.into()], data.as_bytes()));
    }
    writer.append(&builder.take().unwrap()).await.unwrap();
    writer.seal(&StreamEnd::new(end)).await.unwrap();
    completions(log, id)
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_stream_is_one_of_its_open_choices_and_none_of_them_is_complete() {
    for (end, closed) in [
        (End::Finished, None),
        (End::DoneWithoutFinish, None),
        (End::Interrupted, None),
        (End::Cancelled, Some(StreamError::Cancelled)),
        (End::Lost, Some(StreamError::Lost)),
    ] {
        let completions = sealed(end).await;
        assert_eq!(completions.closed().await.err(), closed, "{end}");
    }
    for end in [
        End::ServerError,
        End::Transport,
        End::TimedOut,
        End::LimitExceeded,
        End::ProducerLost,
        End::Refused,
    ] {
        let error = sealed(end).await.closed().await.unwrap_err();
        assert_eq!(reported(&error), Some(end));
        assert!(matches!(error, StreamError::Transport(_)));
    }
    for end in [
        End::Interrupted,
        End::Cancelled,
        End::Lost,
        End::ServerError,
        End::ProducerLost,
        End::TimedOut,
    ] {
        let completions = sealed(end).await;
        let open = completions.choice(0).await.unwrap();
        assert!(open.finished().await.is_err(), "{end}");
        let outcome = open.outcome().await;
        assert_eq!(
            (&*outcome.message.content, outcome.finish_reason),
            ("open", None)
        );
        // The reason of the other one has arrived, and stays.
        let finished = completions.choice(1).await.unwrap();
        assert_eq!(finished.text().await.unwrap(), "ok", "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_ends_of_choices_are_those_that_the_log_states() {
    let log = new_log();
    let id = StreamId::random().unwrap();
    let mut writer = log.open(&id, &Meta::new("/v1/x", 1)).await.unwrap();
    let ends = [
        End::Cancelled,
        End::Transport,
        End::Interrupted,
        End::ServerError,
    ];
    let mut builder = RecordBuilder::new(Seq(1));
    let data =
        |choice: u32| format!(r#"{{"choices":[{{"index":{choice},"delta":{{"content":"x"}}}}]}}"#);
    for choice in 0..5 {
        builder.push(&Event::chunk(&[choice.into()], data(choice).as_bytes()));
    }
    for (choice, end) in (0..).zip(ends) {
        builder.push(&Event::ChoiceEnd {
            choice: choice.into(),
            end,
            finish_reason: None,
        });
    }
    // One that never appeared, and one that goes on.
    builder.push(&Event::ChoiceEnd {
        choice: 7.into(),
        end: End::Cancelled,
        finish_reason: None,
    });
    builder.push(&Event::chunk(&[4.into()], data(4).as_bytes()));
    writer.append(&builder.take().unwrap()).await.unwrap();
    let completions = completions(Arc::clone(&log), id);
    for (choice, end) in (0..).zip(ends) {
        let outcome = completions.choice(choice).await.unwrap().outcome().await;
        match (outcome.end, end) {
            (ChoiceEnd::Cancelled, End::Cancelled) | (ChoiceEnd::Interrupted, End::Interrupted) => {
            }
            (ChoiceEnd::Transport(error), end) => {
                assert_eq!(EndError::find_in(&*error).unwrap().end, end);
            }
            (other, end) => panic!("{other:?} in place of {end}"),
        }
    }
    let unseen = completions.choice(7).await.unwrap().outcome().await;
    assert_eq!(
        (unseen.end, &*unseen.message.content),
        (ChoiceEnd::Cancelled, "")
    );
    assert_eq!(first_deltas(&completions, 4, 2).await, "xx");
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(completions.closed().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn readers_of_a_lost_producer_end_and_keep_what_arrived() {
    let mut recorded = Recorded::start(1).await;
    recorded.content(0, "a").await;
    let reader = recorded.read();
    assert_eq!(first_deltas(&reader, 0, 1).await, "a");
    // A process that dies leaves a writer that renews nothing: here the log has the writer of no process.
    let log = new_log();
    let id = StreamId::random().unwrap();
    let mut writer = log.open(&id, &Meta::new("/v1/x", 1)).await.unwrap();
    let mut builder = RecordBuilder::new(Seq(1));
    builder.push(&Event::chunk(
        &[0.into()],
        br#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
    ));
    writer.append(&builder.take().unwrap()).await.unwrap();
    drop(writer);
    let lost = completions(log, id);
    let started = Instant::now();
    let error = lost.closed().await.unwrap_err();
    assert!(
        started.elapsed() < Duration::from_secs(18),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(reported(&error), Some(End::ProducerLost));
    let outcome = lost.choice(0).await.unwrap().outcome().await;
    assert_eq!(outcome.message.content, "a");
    assert!(outcome.end.is_error());
    // The healthy one was not affected by the time.
    recorded.content(0, "b").await;
    assert_eq!(first_deltas(&reader, 0, 2).await, "ab");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_panics_or_is_cut_ends_its_readers() {
    for case in 0..4 {
        let mut recorded = Recorded::start(1).await;
        let reader = recorded.read();
        recorded.content(0, "a").await;
        first_deltas(&reader, 0, 1).await;
        let error = match case {
            0 => Some("connection reset".into()),
            1 => Some(StreamError::Lost.into()),
            _ => None,
        };
        if let Some(error) = error {
            recorded.body.send(Err(error)).await.unwrap();
        } else if case == 3 {
            recorded
                .write("data: {\"error\":{\"message\":\"overloaded\"}}\n\n")
                .await;
        }
        let end = recorded.end().await.end;
        let outcome = reader.choice(0).await.unwrap().outcome().await;
        let closed = reader.closed().await;
        let expected = match case {
            0 => (End::Transport, "transport"),
            // Of a choice the log says that its producer was lost.
            1 => (End::Lost, "transport"),
            2 => (End::Interrupted, "interrupted"),
            _ => (End::ServerError, "server_error"),
        };
        // A reader of a log cannot know that it was the producer's task that was lost.
        let end = if end == End::ProducerLost {
            End::Lost
        } else {
            end
        };
        assert_eq!((end, outcome.end.as_str()), expected, "{closed:?}");
        if case == 3 {
            let Err(StreamError::Server(error)) = closed else {
                panic!("{closed:?}");
            };
            assert_eq!(error.message(), Some("overloaded"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_panics_ends_as_lost() {
    let log = new_log();
    let id = StreamId::random().unwrap();
    let body = stream::iter([script::content(0, "a")])
        .map(Ok::<_, std::io::Error>)
        .chain(stream::once(async { panic!("a test") }));
    let recording = record(body, Arc::clone(&log), id.clone()).await.unwrap();
    let ended = recording.ended().await.unwrap();
    assert_eq!(ended.end, End::ProducerLost);
    let error = completions(log, id).closed().await.unwrap_err();
    assert_eq!(reported(&error), Some(End::ProducerLost));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_exists_is_an_error_and_one_that_comes_later_is_read() {
    let log = new_log();
    let never = completions(Arc::clone(&log), StreamId::random().unwrap());
    let error = never.closed().await.unwrap_err();
    let StreamError::Transport(error) = error else {
        panic!("{error}");
    };
    let source = std::error::Error::source(&*error).unwrap();
    assert_eq!(source.downcast_ref(), Some(&LogError::Unknown));
    let id = StreamId::random().unwrap();
    let early = completions(Arc::clone(&log), id.clone());
    sleep(Duration::from_secs(3)).await;
    let body = format!(
        "{}{}data: [DONE]\n\n",
        script::content(0, "late"),
        script::finish(0, "stop")
    );
    let body = stream::iter([Ok::<_, std::io::Error>(body)]);
    record(body, log, id).await.unwrap();
    assert_eq!(early.first().await.unwrap().text().await.unwrap(), "late");
}

#[tokio::test(start_paused = true)]
async fn an_id_is_recorded_once_and_an_endless_body_is_cut() {
    let log = new_log();
    let id = StreamId::random().unwrap();
    let endless = || stream::repeat_with(|| Ok::<_, std::io::Error>(script::content(0, "x")));
    let recorder = Recorder::new(Arc::clone(&log)).with_max_bytes(100_000);
    let recording = recorder.record(endless(), id.clone()).await.unwrap();
    let again = recorder.record(endless(), id.clone()).await;
    assert_eq!(again.err(), Some(LogError::Exists));
    assert_eq!(recording.ended().await.unwrap().end, End::LimitExceeded);
    assert!(recording.journal().bytes() < 300_000);
    let error = completions(log, id).closed().await.unwrap_err();
    assert_eq!(reported(&error), Some(End::LimitExceeded));
}

/// A connection whose answer was not read to its end cannot be reused.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_body_is_read_within_bounds_after_its_end_mark() {
    let answer = script::content(0, "a") + &script::finish(0, "stop") + script::DONE;
    let was_read = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&was_read);
    let rest = async move {
        sleep(Duration::from_millis(20)).await;
        flag.store(true, Ordering::Relaxed);
        Ok::<_, std::io::Error>(String::new())
    };
    let body = stream::iter([Ok(answer)]).chain(stream::once(rest));
    let id = StreamId::random().unwrap();
    let recording = record(body, new_log(), id).await.unwrap();
    let started = Instant::now();
    assert_eq!(recording.ended().await.unwrap().end, End::Finished);
    assert_eq!(started.elapsed(), Duration::ZERO, "nobody waits for it");
    sleep(Duration::from_millis(50)).await;
    assert!(was_read.load(Ordering::Relaxed));

    // One that is always ready with nothing keeps no thread.
    let answer = script::content(0, "a") + &script::finish(0, "stop") + script::DONE;
    let body = stream::iter([Ok::<_, std::io::Error>(answer)]);
    let body = body.chain(stream::repeat_with(|| Ok(String::new())));
    let id = StreamId::random().unwrap();
    let recording = record(body, new_log(), id).await.unwrap();
    assert_eq!(recording.ended().await.unwrap().end, End::Finished);
    sleep(Duration::from_millis(1)).await;

    let mut recorded = Recorded::start(1).await;
    recorded.finish(0).await;
    recorded.write(script::DONE).await;
    recorded.body_is_dropped().await;
    assert_eq!(recorded.end().await.end, End::Finished);
}

#[test]
fn without_a_runtime_or_its_timers_the_handles_end_with_an_error() {
    let log = new_log();
    let id = StreamId::random().unwrap();
    let outside = completions(Arc::clone(&log), id.clone());
    assert_eq!(
        futures::executor::block_on(outside.closed()),
        Err(StreamError::NoRuntime)
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let closed = runtime.block_on(async { completions(log, id).closed().await });
    assert_eq!(closed, Err(StreamError::NoTimeDriver));
}

/// A request of a fan-out that failed: no event says so, and nothing has to arrive, however long the others take.
#[tokio::test(start_paused = true)]
async fn a_choice_that_failed_ends_while_the_others_are_silent() {
    let log = new_log();
    let id = StreamId::random().unwrap();
    let mut writer = log.open(&id, &Meta::new("/v1/x", 1)).await.unwrap();
    let mut builder = RecordBuilder::new(Seq(1));
    for choice in [0, 1] {
        let event = script::content(choice, "a");
        let data = event.trim_start_matches("data: ").trim_end();
        builder.push(&Event::chunk(&[choice.into()], data.as_bytes()));
    }
    builder.push(&Event::ChoiceEnd {
        choice: 1.into(),
        end: End::Transport,
        finish_reason: None,
    });
    writer.append(&builder.take().unwrap()).await.unwrap();
    let completions = completions(log, id);
    let failed = completions.choice(1).await.unwrap();
    let outcome = timeout(Duration::from_secs(1), failed.outcome()).await;
    let outcome = outcome.expect("it has ended");
    assert!(
        matches!(outcome.end, ChoiceEnd::Transport(_)),
        "{:?}",
        outcome.end
    );
    assert_eq!(outcome.message.content, "a");
    assert_eq!(first_deltas(&completions, 0, 1).await, "a");
}
