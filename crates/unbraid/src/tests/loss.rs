//! A runtime ends while consumers elsewhere wait: every wait ends.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::mpsc,
    thread,
    time::Duration,
};

use futures::{StreamExt, executor::block_on};
use tokio::runtime::{Builder, Runtime};
use unbraid_testkit::script::{Script, Step, bytes, content};

use crate::{Choice, Completions, Event, ToolCallHandle};

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

fn call(index: u32) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"t\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{\\\"a\\\":\\\"x\"}}}}]}}}}]}}\n\n"
    )
}

/// Waits on a thread of its own; its output arrives later, or never.
fn on_a_thread<F>(wait: F) -> mpsc::Receiver<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (ended, result) = mpsc::channel();
    thread::spawn(move || ended.send(block_on(wait)));
    result
}

/// One choice with a text and a call, whose stream then stalls; `wait` waits for more of it.
#[track_caller]
fn check<F>(wait: impl FnOnce(Choice, ToolCallHandle) -> F)
where
    F: Future<Output = &'static str> + Send + 'static,
{
    let runtime = runtime();
    let (choice, tool_call) = runtime.block_on(async {
        let steps = [bytes(content(0, "a") + &call(0)), Step::Stall];
        let completions = Completions::from_byte_stream(Script::new(steps));
        let choice = completions.first().await.unwrap();
        let tool_call = choice.tool_calls().next().await.unwrap().unwrap();
        (choice, tool_call)
    });
    let limit = Duration::from_secs(10);
    let (asleep, falls_asleep) = mpsc::channel();
    let wait = wait(choice, tool_call);
    let waiting = on_a_thread(async move {
        let mut wait = pin!(wait);
        poll_fn(|cx| {
            let polled = wait.as_mut().poll(cx);
            if polled.is_pending() {
                asleep.send(()).ok();
            }
            polled
        })
        .await
    });
    assert!(
        falls_asleep.recv_timeout(limit).is_ok(),
        "it waits for more"
    );
    runtime.shutdown_background();
    let end = waiting.recv_timeout(limit);
    assert_eq!(end.expect("the wait ends"), "lost");
}

#[test]
fn a_text_that_waits_learns_of_the_loss() {
    check(|choice, _| async move {
        let mut content = choice.content();
        assert_eq!(content.next().await.unwrap().unwrap(), "a");
        content.next().await.unwrap().unwrap_err().end().as_str()
    });
}

#[test]
fn calls_that_wait_learn_of_the_loss() {
    check(|choice, _| async move {
        let mut calls = choice.tool_calls();
        calls.next().await.unwrap().unwrap();
        calls.next().await.unwrap().unwrap_err().end().as_str()
    });
}

#[test]
fn arguments_that_wait_learn_of_the_loss() {
    check(|_, call| async move {
        let mut arguments = call.arguments();
        arguments.next().await.unwrap().unwrap();
        arguments.next().await.unwrap().unwrap_err().end().as_str()
    });
}

#[test]
fn a_field_that_waits_learns_of_the_loss() {
    check(|_, call| async move {
        let mut field = call.field("/a");
        assert_eq!(field.next().await.unwrap().unwrap(), "x");
        let error = field.next().await.unwrap().unwrap_err();
        let crate::JsonErrorKind::Choice(cut) = error.kind() else {
            panic!("{error}");
        };
        cut.end().as_str()
    });
}

#[test]
fn an_outcome_that_is_waited_for_learns_of_the_loss() {
    check(|choice, _| async move { choice.finished().await.unwrap_err().end().as_str() });
}

/// Every choice has ended by the time the merged events end.
#[test]
fn merged_events_end_after_the_end_of_every_choice() {
    const CHOICES: u32 = 16;
    for round in 0..60 {
        let runtime = runtime();
        let completions = runtime.block_on(async {
            let read: String = (0..CHOICES).map(|index| content(index, "a")).collect();
            let completions =
                Completions::from_byte_stream(Script::new([bytes(read), Step::Stall]));
            completions.choice(CHOICES - 1).await.unwrap();
            completions
        });
        let mut events = completions.events();
        let seen = on_a_thread(async move {
            let mut ends = 0;
            while let Some(event) = events.next().await {
                if let Ok(event) = event {
                    ends += usize::from(matches!(event.event, Event::End(_)));
                }
            }
            ends
        });
        let closed = on_a_thread(async move {
            let _lost = completions.closed().await;
            let ended = completions.choices().filter_map(|choice| async {
                let events = choice.ok()?.events();
                Some(futures::FutureExt::now_or_never(events.count()).is_some())
            });
            ended
                .filter(|ended| std::future::ready(*ended))
                .count()
                .await
        });
        runtime.shutdown_background();
        let limit = Duration::from_secs(10);
        assert_eq!(seen.recv_timeout(limit), Ok(CHOICES as usize), "{round}");
        assert_eq!(closed.recv_timeout(limit), Ok(CHOICES as usize), "{round}");
    }
}
