//! Calls that are run before the end of their choice: the waiting side, under paused time.

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU32, Ordering},
    task::Poll,
};

use tokio::time::Instant;

use super::*;
use crate::{ReadyPolicy, ToolCall};

/// Below the idle time that ends a choice whose finish reason has arrived.
const TICK: Duration = Duration::from_millis(100);

const POLICIES: [ReadyPolicy; 3] = [
    ReadyPolicy::AtEnd,
    ReadyPolicy::NextCall,
    ReadyPolicy::ValidJson,
];

/// The events with a tick before each, from the second on.
fn ticks(steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let mut steps: Vec<Step> = steps
        .into_iter()
        .flat_map(|step| [Step::Pause(TICK), step])
        .collect();
    steps.remove(0);
    steps
}

/// Two calls one after the other: their headers at ticks 0 and 2, the finish reason at 4, the end at 5.
fn two_calls() -> Vec<Step> {
    ticks([
        header(0, 0, "a", "one"),
        fragment(0, 0, "{\"x\":1}"),
        header(0, 1, "b", "two"),
        fragment(0, 1, "{\"y\":2}"),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ])
}

fn tick_since(start: Instant) -> u128 {
    start.elapsed().as_millis() / TICK.as_millis()
}

#[tokio::test(start_paused = true)]
async fn even_the_last_call_is_ready_before_the_end_of_its_choice() {
    for (policy, expected) in POLICIES.into_iter().zip([[5, 5], [2, 4], [1, 3]]) {
        let start = Instant::now();
        let completions = read(two_calls());
        let choice = soon(completions.first()).await.unwrap();
        let mut announced = choice.tool_calls();
        let one = soon(announced.next()).await.unwrap().unwrap();
        let first = async {
            let call = one.ready(policy).await.unwrap();
            (call.arguments, tick_since(start))
        };
        let second = async {
            let two = announced.next().await.unwrap().unwrap();
            let call = two.ready(policy).await.unwrap();
            (call.arguments, tick_since(start))
        };
        let (first, second) = soon(async { tokio::join!(first, second) }).await;
        assert_eq!([first.1, second.1], expected, "{policy:?}");
        assert_eq!([&*first.0, &*second.0], ["{\"x\":1}", "{\"y\":2}"]);
    }
}

#[tokio::test(start_paused = true)]
async fn every_waiter_gets_the_call_whenever_it_comes() {
    let completions = read(two_calls());
    let call = first_call(&completions).await;
    let check = |ready: ToolCall| {
        assert_eq!((&*ready.name, &*ready.arguments), ("one", "{\"x\":1}"));
        assert_eq!(ready.id.as_deref(), Some("a"));
        assert_eq!(ready.status, Some(CallStatus::Complete));
        assert_eq!(ready.parse::<Value>().unwrap(), json!({ "x": 1 }));
    };
    let waiters = (0..8).map(|_| call.ready(ReadyPolicy::NextCall));
    let waiters = soon(futures::future::join_all(waiters)).await;
    waiters.into_iter().for_each(|ready| check(ready.unwrap()));
    soon(completions.closed()).await.unwrap();
    for policy in POLICIES {
        check(soon(call.ready(policy)).await.unwrap());
        check(soon(call.confirmed(policy)).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_nothing() {
    let completions = read(two_calls());
    let call = first_call(&completions).await;
    for _ in 0..20 {
        let tick = TICK / 7;
        drop(tokio::time::timeout(tick, call.ready(ReadyPolicy::NextCall)).await);
        drop(tokio::time::timeout(tick, call.confirmed(ReadyPolicy::NextCall)).await);
    }
    let ready = soon(call.ready(ReadyPolicy::NextCall)).await.unwrap();
    assert_eq!(ready.arguments, "{\"x\":1}");
}

#[tokio::test(start_paused = true)]
async fn t28_a_late_fragment_is_an_error_of_the_call_and_a_warning() {
    let start = Instant::now();
    let completions = read(ticks([
        header(0, 0, "a", "one"),
        fragment(0, 0, "{\"x\":1}"),
        header(0, 1, "b", "two"),
        fragment(0, 1, "{}"),
        fragment(0, 0, "{\"x\":2}"),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ]));
    let call = first_call(&completions).await;
    let ready = soon(call.ready(ReadyPolicy::NextCall)).await.unwrap();
    assert_eq!((tick_since(start), &*ready.arguments), (2, "{\"x\":1}"));

    let error = soon(call.confirmed(ReadyPolicy::NextCall))
        .await
        .unwrap_err();
    assert_eq!(tick_since(start), 4, "at once, and not at the end");
    assert!(matches!(
        error.kind(),
        JsonErrorKind::LateFragment { bytes: 7, event_index } if event_index.0 == 4
    ));
    assert_eq!(error.raw(), "{\"x\":1}{\"x\":2}");
    assert_eq!(
        error.to_string(),
        "choice 0: tool call 0: more of the call arrived in event 4, after it was ready with 7 bytes of arguments"
    );
    let again = soon(call.ready(ReadyPolicy::NextCall)).await.unwrap_err();
    assert!(matches!(again.kind(), JsonErrorKind::LateFragment { .. }));

    // Nothing is lost, and the other methods keep their meaning.
    let fragments: Vec<_> = soon(call.arguments().try_collect()).await.unwrap();
    assert_eq!(fragments, ["{\"x\":1}", "{\"x\":2}"]);
    let end = soon(call.finished()).await.unwrap();
    assert_eq!(end.status, Some(CallStatus::Concatenated));
    assert_eq!(
        error_kind(soon(call.parse::<Value>()).await),
        "Concatenated { offset: 7 }"
    );
    assert_eq!(
        error_kind(soon(call.ready(ReadyPolicy::AtEnd)).await),
        "Concatenated { offset: 7 }"
    );
    let choice = soon(completions.first()).await.unwrap();
    let warnings = soon(choice.finished()).await.unwrap().warnings;
    let warnings: Vec<_> = warnings.iter().map(|w| (w.code, w.event_index.0)).collect();
    assert_eq!(warnings, [("T28", 4)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_whole_waits_for_a_later_moment() {
    let start = Instant::now();
    let completions = read(ticks([
        header(0, 0, "a", "one"),
        fragment(0, 0, "{\"x\":"),
        header(0, 1, "b", "two"),
        fragment(0, 1, "{}"),
        fragment(0, 0, "1}"),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ]));
    let call = first_call(&completions).await;
    let ready = soon(call.confirmed(ReadyPolicy::NextCall)).await.unwrap();
    assert_eq!(ready.arguments, "{\"x\":1}");
    assert_eq!(tick_since(start), 6);
    let choice = soon(completions.first()).await.unwrap();
    assert!(soon(choice.outcome()).await.warnings.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cut_choice_leaves_the_calls_that_were_ready() {
    let completions = read([
        header(0, 0, "a", "one"),
        fragment(0, 0, "{\"x\":1}"),
        header(0, 1, "b", "two"),
        fragment(0, 1, "{\"y\""),
        Step::Fail,
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let mut announced = choice.tool_calls();
    let one = soon(announced.next()).await.unwrap().unwrap();
    let two = soon(announced.next()).await.unwrap().unwrap();
    let early = ReadyPolicy::NextCall;
    assert!(soon(one.ready(early)).await.is_ok());
    assert!(soon(one.confirmed(early)).await.is_ok());
    for (call, policy, raw) in [
        (&two, early, "{\"y\""),
        (&one, ReadyPolicy::AtEnd, "{\"x\":1}"),
    ] {
        let error = soon(call.ready(policy)).await.unwrap_err();
        assert!(
            matches!(error.kind(), JsonErrorKind::Choice(error) if error.end().as_str() == "transport")
        );
        assert_eq!(error.raw(), raw);
    }
}

#[tokio::test(start_paused = true)]
async fn a_discarded_choice_ends_every_wait() {
    let completions = read([
        header(0, 0, "a", "one"),
        fragment(0, 0, "{\"x\":1}"),
        Step::Stall,
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let call = first_call(&completions).await;
    for policy in POLICIES {
        let mut confirmed = Box::pin(call.confirmed(policy));
        assert!(futures::poll!(&mut confirmed).is_pending());
        if policy == ReadyPolicy::ValidJson {
            assert!(soon(call.ready(policy)).await.is_ok());
            choice.clone().discard();
            assert!(matches!(
                soon(confirmed).await.unwrap_err().kind(),
                JsonErrorKind::Choice(_)
            ));
        }
    }
    for policy in POLICIES {
        let error = soon(call.ready(policy)).await.unwrap_err();
        assert!(matches!(error.kind(), JsonErrorKind::Choice(_)));
    }
}

/// The hot path: a wait for the next call does not even wake for the fragments before it.
#[tokio::test(start_paused = true)]
async fn fragments_do_not_wake_a_task_that_waits_for_the_next_call() {
    let mut steps = vec![header(0, 0, "a", "one"), fragment(0, 0, "[")];
    for _ in 0..50 {
        steps.extend([Step::Pause(TICK), fragment(0, 0, "1,")]);
    }
    steps.extend([
        Step::Pause(TICK),
        fragment(0, 0, "1]"),
        Step::Pause(TICK),
        bytes(finish(0, "tool_calls")),
        Step::Pause(TICK),
        bytes(DONE),
    ]);
    let completions = read(steps);
    let call = first_call(&completions).await;
    let polls = AtomicU32::new(0);
    let mut ready = pin!(call.ready(ReadyPolicy::NextCall));
    let counted = std::future::poll_fn(|cx| {
        polls.fetch_add(1, Ordering::Relaxed);
        ready.as_mut().poll(cx)
    });
    // On a task of its own branch: `join` would poll it with its sibling.
    let ready = soon(counted).await.unwrap();
    assert_eq!(ready.arguments.len(), 103);
    let polls = polls.load(Ordering::Relaxed);
    assert!(polls <= 6, "{polls} polls");
}

#[tokio::test(start_paused = true)]
async fn a_large_call_is_read_in_portions_and_yields() {
    let text = "x".repeat(1 << 20);
    let mut steps = vec![header(0, 0, "a", "one"), fragment(0, 0, "{\"x\":\"")];
    steps.extend((0..16).map(|_| fragment(0, 0, &text)));
    steps.extend([fragment(0, 0, "\"}"), bytes(finish(0, "stop")), bytes(DONE)]);
    let completions = read(steps);
    let call = first_call(&completions).await;
    soon(completions.closed()).await.unwrap();
    for policy in POLICIES {
        let ready = soon(call.ready(policy)).await.unwrap();
        assert_eq!(ready.arguments.len(), (16 << 20) + 8);
    }
}

#[tokio::test(start_paused = true)]
async fn t12_an_id_that_arrives_late_is_returned_by_the_handle() {
    let late_id = json!({ "index": 0, "id": "late", "function": { "arguments": "" } });
    let completions = read(ticks([
        delta(
            0,
            &json!({ "tool_calls": [{ "index": 0, "function": { "name": "f", "arguments": "{\"x\":1}" } }] }),
        ),
        delta(0, &json!({ "tool_calls": [late_id] })),
        bytes(DONE),
    ]));
    let call = first_call(&completions).await;
    let ready = soon(call.ready(ReadyPolicy::ValidJson)).await.unwrap();
    assert_eq!(
        (ready.id, ready.status),
        (None, Some(CallStatus::MissingId))
    );
    let confirmed = soon(call.confirmed(ReadyPolicy::ValidJson)).await.unwrap();
    assert_eq!(confirmed.arguments, ready.arguments);
    assert_eq!(call.id().as_deref(), Some("late"));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_its_cancelled_choice() {
    let completions = read([header(0, 0, "a", "one"), fragment(0, 0, "{}"), Step::Stall]);
    let call = first_call(&completions).await;
    let mut ready = Box::pin(call.ready(ReadyPolicy::NextCall));
    assert!(matches!(futures::poll!(&mut ready), Poll::Pending));
    completions.cancel();
    let error = soon(ready).await.unwrap_err();
    assert!(
        matches!(error.kind(), JsonErrorKind::Choice(error) if error.end().as_str() == "cancelled")
    );
}
