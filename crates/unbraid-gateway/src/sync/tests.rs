//! The gate in a runtime. `unbraid-model` checks the orders of its threads.

use std::{cell::Cell, future::poll_fn, time::Duration};

use futures::{FutureExt, StreamExt, channel::mpsc, future::join};
use tokio::time::{sleep, timeout};

use super::wake_gate::WakeGate;

#[tokio::test]
async fn nothing_that_wakes_is_lost() {
    let (sender, mut received) = mpsc::unbounded();
    let mut gate = WakeGate::default();
    let sends = tokio::spawn(async move {
        for number in 0..1000 {
            sender.unbounded_send(number).unwrap();
            if number % 3 == 0 {
                tokio::task::yield_now().await;
            }
        }
    });
    for number in 0..1000 {
        let next = poll_fn(|cx| gate.poll(cx, |cx| received.poll_next_unpin(cx)));
        let next = timeout(Duration::from_secs(10), next).await;
        assert_eq!(next.expect("a wake-up was lost"), Some(number));
    }
    sends.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_up_of_another_thread_at_any_time_is_not_lost() {
    let (sender, mut received) = mpsc::unbounded();
    let sends = std::thread::spawn(move || {
        for number in 0..20_000 {
            sender.unbounded_send(number).unwrap();
            if number % 64 == 0 {
                std::thread::yield_now();
            }
        }
    });
    let reads = tokio::spawn(async move {
        let mut gate = WakeGate::default();
        let mut next = 0;
        while let Some(number) =
            poll_fn(|cx| gate.poll(cx, |cx| received.poll_next_unpin(cx))).await
        {
            assert_eq!(number, next);
            next += 1;
        }
        next
    });
    let read = timeout(Duration::from_secs(60), reads).await;
    assert_eq!(read.expect("a wake-up was lost").unwrap(), 20_000);
    sends.join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn other_wake_ups_of_the_task_do_not_poll() {
    let polls = Cell::new(0);
    let mut gate = WakeGate::default();
    let mut slow = Box::pin(sleep(Duration::from_secs(100)));
    let waits = poll_fn(|cx| {
        gate.poll(cx, |cx| {
            polls.set(polls.get() + 1);
            slow.poll_unpin(cx)
        })
    });
    let busy = async {
        for _ in 0..50 {
            sleep(Duration::from_secs(1)).await;
        }
    };
    join(waits, busy).await;
    assert_eq!(polls.get(), 2);
}

#[tokio::test]
async fn another_task_that_polls_is_woken() {
    let (sender, mut received) = mpsc::unbounded();
    let mut gate = WakeGate::default();
    let first = poll_fn(|cx| gate.poll(cx, |cx| received.poll_next_unpin(cx)));
    assert_eq!(first.now_or_never(), None);
    let next = tokio::spawn(async move {
        poll_fn(|cx| gate.poll(cx, |cx| received.poll_next_unpin(cx))).await
    });
    tokio::task::yield_now().await;
    sender.unbounded_send(1).unwrap();
    let next = timeout(Duration::from_secs(10), next).await;
    assert_eq!(next.expect("the task sleeps").unwrap(), Some(1));
}
