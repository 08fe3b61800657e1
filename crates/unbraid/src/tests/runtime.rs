//! Runtimes: none, without timers, of both kinds, and shut down while a stream is read.

use std::time::Duration;

use futures::executor::block_on;
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::outcome;
use crate::{Completions, StreamError};

#[test]
fn without_a_runtime_every_constructor_reports_an_error_and_none_panics() {
    let source = Script::of([content(0, "a")]);
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    assert!(probe.closed());
    assert!(matches!(
        block_on(completions.closed()),
        Err(StreamError::NoRuntime)
    ));
    assert!(matches!(
        block_on(completions.choices().next()),
        Some(Err(StreamError::NoRuntime))
    ));
    assert!(matches!(
        block_on(completions.first()),
        Err(StreamError::NoRuntime)
    ));
    assert!(matches!(
        block_on(completions.events().next()),
        Some(Err(StreamError::NoRuntime))
    ));
    assert!(block_on(completions.choice(0)).is_none());
    assert!(block_on(completions.first_finished(1)).is_empty());
    assert_eq!(
        block_on(completions.usage()).source,
        crate::UsageSource::Absent
    );
    completions.cancel();
}

#[test]
fn without_a_time_driver_a_timeout_is_an_error_and_the_rest_works() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let steps = || {
            Script::new([
                bytes(content(0, "a")),
                bytes(finish(0, "stop")),
                Step::Yield,
                bytes(DONE),
                Step::Stall,
            ])
        };
        let timed = Completions::builder()
            .idle_timeout(Duration::from_secs(1))
            .from_byte_stream(steps());
        assert!(matches!(
            timed.closed().await,
            Err(StreamError::NoTimeDriver)
        ));
        let completions = Completions::builder()
            .implicit_timers(false)
            .from_byte_stream(steps());
        assert_eq!(
            completions.first().await.unwrap().text().await.unwrap(),
            "a"
        );
        assert!(completions.closed().await.is_ok());
    });
}

#[test]
fn a_runtime_that_is_shut_down_leaves_no_waiter_hanging() {
    for runtime in [
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap(),
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    ] {
        let (completions, choice) = runtime.block_on(async {
            let completions =
                Completions::from_byte_stream(Script::new([bytes(content(0, "a")), Step::Stall]));
            let choice = completions.first().await.unwrap();
            (completions, choice)
        });
        let waiting = std::thread::spawn(move || block_on(choice.finished()));
        runtime.shutdown_background();
        let error = waiting.join().unwrap().unwrap_err();
        assert_eq!(error.end().as_str(), "lost");
        assert_eq!(error.partial().message.content, "a");
        assert!(matches!(
            block_on(completions.closed()),
            Err(StreamError::Lost)
        ));
    }
}

#[test]
fn a_consumer_may_live_on_another_runtime() {
    let reading = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let completions = {
        let _context = reading.enter();
        let pause = Step::Pause(Duration::from_millis(20));
        Completions::from_byte_stream(Script::new([
            bytes(content(0, "a")),
            pause,
            bytes(content(0, "b")),
            bytes(DONE),
        ]))
    };
    let text = block_on(async { completions.first().await.unwrap().text().await.unwrap() });
    assert_eq!(text, "ab");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_at_once_on_several_threads() {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200_u32 {
        tasks.spawn(async move {
            let mut steps: Vec<_> = (0..40)
                .map(|i| bytes(content((i + n) % 8, &i.to_string())))
                .collect();
            steps.extend((0..8).map(|choice| bytes(finish(choice, "stop"))));
            steps.push(bytes(DONE));
            let completions = Completions::from_byte_stream(Script::new(steps));
            let mut choices = completions.choices();
            let mut ended = 0;
            while let Some(choice) = choices.next().await {
                let finished = outcome(&choice.unwrap()).await;
                assert_eq!(finished.end.as_str(), "finished");
                ended += 1;
            }
            ended
        });
    }
    while let Some(ended) = tasks.join_next().await {
        assert_eq!(ended.unwrap(), 8);
    }
}

#[test]
fn without_timers_the_reader_does_not_pause_after_empty_reads() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let empty = std::iter::repeat_n(String::new(), 5000);
        let text = [content(0, "a") + &finish(0, "stop") + DONE];
        let reads = empty.chain(text).map(Ok::<_, std::io::Error>);
        let completions = Completions::from_byte_stream(futures::stream::iter(reads));
        let choice = completions.first().await.unwrap();
        assert_eq!(choice.text().await.unwrap(), "a");
    });
}
