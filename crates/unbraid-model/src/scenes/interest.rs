//! Readers that catch up, and readers with different interests.

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use loom::thread;

use super::{
    ScopedWatcher, check, check_most, run,
    shared::{Value, defer, defer_call, defer_text, end, log, seal, sealed},
};
use crate::{
    sync::primitives::Arc,
    sync::shared::{Read, Watcher},
    sync::wait_list::{Interest, WakeList},
};

/// Catches up at each read, and then waits without another read.
async fn read_all(watcher: &mut Watcher<Value>, count: u8) {
    let mut read = 0;
    while read < count {
        read = poll_fn(|cx| {
            watcher.poll_read(cx, |value| match value.applied {
                applied if applied > read => Read::CaughtUp(applied),
                _ => Read::Pending,
            })
        })
        .await;
    }
}

#[test]
fn a_reader_that_has_caught_up_is_woken_for_more() {
    check(|| {
        let log = log();
        let mut watcher = ScopedWatcher::new(&log);
        let reader = thread::spawn(move || run(read_all(&mut watcher, 3)));
        let mut wake_list = WakeList::default();
        for _ in 0..3 {
            defer(&log, &mut wake_list);
        }
        reader.join().unwrap();
        end(&log, 3);
    });
}

#[test]
fn a_reader_that_has_caught_up_and_never_reads_again_leaves_the_next_work_to_the_owner() {
    check(|| {
        let log = log();
        let (driven, mut watcher) = (Arc::clone(&log), ScopedWatcher::new(&log));
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 3)));
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        let cx = Context::from_waker(Waker::noop());
        let found = watcher.poll_read(&cx, |value| Read::CaughtUp(value.applied));
        assert_eq!(found, Poll::Ready(1));
        defer(&log, &mut wake_list);
        defer(&log, &mut wake_list);
        owner.join().unwrap();
        drop(watcher);
        end(&log, 3);
    });
}

#[test]
fn watchers_of_different_interests_see_each_change_of_theirs() {
    check_most(|| {
        let log = log();
        let mut texts = ScopedWatcher::with_interest(Interest::TEXT, &log);
        let mut calls = ScopedWatcher::with_interest(Interest::CALLS, &log);
        let texts = thread::spawn(move || {
            run(texts.wait_for(|value| (value.applied == 2).then_some(())));
        });
        let calls = thread::spawn(move || {
            run(calls.wait_for(|value| (value.calls == 1).then_some(())));
        });
        let mut wake_list = WakeList::default();
        defer_text(&log, &mut wake_list);
        defer_call(&log, &mut wake_list);
        defer_text(&log, &mut wake_list);
        texts.join().unwrap();
        calls.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_waiter_for_the_end_leaves_the_text_to_the_owner() {
    check_most(|| {
        let log = log();
        let mut end_watcher = ScopedWatcher::with_interest(Interest::OTHER, &log);
        let driven = Arc::clone(&log);
        let owner = thread::spawn(move || {
            run(driven.drive(|value| value.applied == 2));
            seal(&driven);
        });
        let waits = thread::spawn(move || run(sealed(&mut end_watcher)));
        let mut wake_list = WakeList::default();
        defer_text(&log, &mut wake_list);
        defer_text(&log, &mut wake_list);
        owner.join().unwrap();
        waits.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_task_with_two_interests_is_woken_for_each() {
    check(|| {
        let log = log();
        let mut texts = ScopedWatcher::with_interest(Interest::TEXT, &log);
        let mut calls = ScopedWatcher::with_interest(Interest::CALLS, &log);
        let reader = thread::spawn(move || {
            let (mut text, mut call) = (0, 0);
            run(poll_fn(|cx| {
                let read = |now: u8, before| {
                    if now > before {
                        Read::CaughtUp(now)
                    } else {
                        Read::Pending
                    }
                };
                if let Poll::Ready(now) = texts.poll_read(cx, |value| read(value.applied, text)) {
                    text = now;
                }
                if let Poll::Ready(now) = calls.poll_read(cx, |value| read(value.calls, call)) {
                    call = now;
                }
                if (text, call) == (2, 1) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }));
        });
        let mut wake_list = WakeList::default();
        defer_text(&log, &mut wake_list);
        defer_call(&log, &mut wake_list);
        defer_text(&log, &mut wake_list);
        reader.join().unwrap();
        end(&log, 2);
    });
}
