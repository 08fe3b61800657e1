//! A value between its writer, its owner and those who wait for it, as a choice's log is.

use std::{
    future::poll_fn,
    task::{Context, Poll, Wake, Waker},
};

use loom::thread;

use super::{Seat, check, check_most, run};
use crate::{
    sync::primitives::Arc,
    sync::shared::{ApplyPending, Read, Shared, Watcher},
    sync::wait_list::{Interest, WakeList},
};

/// What is put is applied by whoever looks first.
#[derive(Debug, Default)]
struct Value {
    put: u8,
    applied: u8,
    /// The same for calls, which have a topic of their own.
    calls_put: u8,
    calls: u8,
    /// Nothing more will come.
    closed: bool,
    /// The owner is gone.
    sealed: bool,
}

impl ApplyPending for Value {
    fn apply_pending(&mut self) {
        self.applied += std::mem::take(&mut self.put);
        self.calls += std::mem::take(&mut self.calls_put);
    }
}

type Log = Shared<Value>;

fn log() -> Arc<Log> {
    Arc::new(Shared::new(Value::default()))
}

fn put_text(log: &Log, wake_list: &mut WakeList) {
    log.defer(wake_list, |value| {
        value.put += 1;
        Interest::TEXT
    });
}

fn put_call(log: &Log, wake_list: &mut WakeList) {
    log.defer(wake_list, |value| {
        value.calls_put += 1;
        Interest::CALLS
    });
}

fn put(log: &Log, wake_list: &mut WakeList) {
    log.defer(wake_list, |value| {
        value.put += 1;
        Interest::ALL
    });
}

fn close(log: &Log) {
    log.notify_owner(|value| value.closed = true);
}

fn seal(log: &Log) {
    log.modify(|value| value.sealed = true);
}

async fn applied(watcher: &mut Watcher<Value>, count: u8) {
    watcher
        .wait_for(|value| (value.applied >= count).then_some(()))
        .await;
}

async fn sealed(watcher: &mut Watcher<Value>) {
    watcher.wait_for(|value| value.sealed.then_some(())).await;
}

fn end(log: &Log, count: u8) {
    assert_eq!(log.read(|value| value.applied), count);
    assert_eq!(log.waiter_count(), 0, "who is gone leaves no waker behind");
}

#[test]
fn a_watcher_sees_every_value_and_the_end() {
    check(|| {
        let log = log();
        let mut watcher = Seat::at(&log);
        let reader = thread::spawn(move || {
            run(async {
                applied(&mut watcher, 1).await;
                applied(&mut watcher, 2).await;
                sealed(&mut watcher).await;
            });
        });
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        put(&log, &mut wake_list);
        seal(&log);
        reader.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn the_owner_settles_what_nobody_waits_for() {
    check(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 2)));
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        put(&log, &mut wake_list);
        owner.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn the_owner_ends_once_it_is_told_with_all_applied() {
    check(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let owner = thread::spawn(move || {
            run(driven.drive(|value| {
                assert_eq!(value.put, 0);
                assert!(!value.closed || value.applied == 2);
                value.closed
            }));
        });
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        put(&log, &mut wake_list);
        close(&log);
        owner.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_choice_goes_from_its_first_batch_to_its_end() {
    check_most(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let mut watcher = Seat::at(&log);
        let owner = thread::spawn(move || {
            run(driven.drive(|value| value.closed));
            driven.detach_owner(|value| value.sealed = true);
        });
        let reader = thread::spawn(move || {
            run(async {
                applied(&mut watcher, 1).await;
                sealed(&mut watcher).await;
            });
        });
        put(&log, &mut WakeList::default());
        close(&log);
        owner.join().unwrap();
        reader.join().unwrap();
        end(&log, 1);
    });
}

/// Waits at the log once and is woken, or not, but never looks again.
fn cancelled(log: &Arc<Log>) -> thread::JoinHandle<()> {
    let mut watcher = Seat::at(log);
    let cx = Context::from_waker(Waker::noop());
    let pending: Poll<()> = watcher.poll(&cx, |_| Poll::Pending);
    assert!(pending.is_pending());
    thread::spawn(move || drop(watcher))
}

#[test]
fn what_a_cancelled_watcher_was_woken_for_is_applied_by_the_owner() {
    check(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let cancelled = cancelled(&log);
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 2)));
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        cancelled.join().unwrap();
        put(&log, &mut wake_list);
        owner.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn what_a_cancelled_watcher_was_woken_for_is_applied_by_the_next_one() {
    check(|| {
        let log = log();
        let mut next = Seat::at(&log);
        let cancelled = cancelled(&log);
        let reader = thread::spawn(move || run(applied(&mut next, 2)));
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        cancelled.join().unwrap();
        put(&log, &mut wake_list);
        reader.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_watcher_that_does_not_look_leaves_the_next_put_to_the_owner() {
    check(|| {
        let log = log();
        let (driven, mut shared) = (Arc::clone(&log), Seat::at(&log));
        let cx = Context::from_waker(Waker::noop());
        let pending: Poll<()> = shared.poll(&cx, |_| Poll::Pending);
        assert!(pending.is_pending());
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 2)));
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        put(&log, &mut wake_list);
        owner.join().unwrap();
        drop(shared);
        end(&log, 2);
    });
}

#[test]
fn two_watchers_that_wait_again_and_again_miss_nothing() {
    check_most(|| {
        let log = log();
        let readers = [Seat::at(&log), Seat::at(&log)].map(|mut watcher| {
            thread::spawn(move || {
                // Each wait is a task of its own, and leaves another waker.
                run(applied(&mut watcher, 1));
                run(applied(&mut watcher, 2));
            })
        });
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        put(&log, &mut wake_list);
        for reader in readers {
            reader.join().unwrap();
        }
        end(&log, 2);
    });
}

/// Finds all that there is at each look, and waits for more without another.
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
fn who_has_found_all_is_woken_for_more() {
    check(|| {
        let log = log();
        let mut watcher = Seat::at(&log);
        let reader = thread::spawn(move || run(read_all(&mut watcher, 3)));
        let mut wake_list = WakeList::default();
        for _ in 0..3 {
            put(&log, &mut wake_list);
        }
        reader.join().unwrap();
        end(&log, 3);
    });
}

#[test]
fn who_has_found_all_and_looks_no_more_leaves_the_next_put_to_the_owner() {
    check(|| {
        let log = log();
        let (driven, mut watcher) = (Arc::clone(&log), Seat::at(&log));
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 3)));
        let mut wake_list = WakeList::default();
        put(&log, &mut wake_list);
        let cx = Context::from_waker(Waker::noop());
        let found = watcher.poll_read(&cx, |value| Read::CaughtUp(value.applied));
        assert_eq!(found, Poll::Ready(1));
        put(&log, &mut wake_list);
        put(&log, &mut wake_list);
        owner.join().unwrap();
        drop(watcher);
        end(&log, 3);
    });
}

#[test]
fn watchers_of_different_topics_see_each_change_of_theirs() {
    check_most(|| {
        let log = log();
        let mut texts = Seat::of(Interest::TEXT, &log);
        let mut calls = Seat::of(Interest::CALLS, &log);
        let texts = thread::spawn(move || {
            run(texts.wait_for(|value| (value.applied == 2).then_some(())));
        });
        let calls = thread::spawn(move || {
            run(calls.wait_for(|value| (value.calls == 1).then_some(())));
        });
        let mut wake_list = WakeList::default();
        put_text(&log, &mut wake_list);
        put_call(&log, &mut wake_list);
        put_text(&log, &mut wake_list);
        texts.join().unwrap();
        calls.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn who_waits_for_the_end_alone_leaves_the_text_to_the_owner() {
    check_most(|| {
        let log = log();
        let mut end_watcher = Seat::of(Interest::OTHER, &log);
        let driven = Arc::clone(&log);
        let owner = thread::spawn(move || {
            run(driven.drive(|value| value.applied == 2));
            seal(&driven);
        });
        let waits = thread::spawn(move || run(sealed(&mut end_watcher)));
        let mut wake_list = WakeList::default();
        put_text(&log, &mut wake_list);
        put_text(&log, &mut wake_list);
        owner.join().unwrap();
        waits.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_task_that_waits_for_two_topics_is_woken_for_each() {
    check(|| {
        let log = log();
        let mut texts = Seat::of(Interest::TEXT, &log);
        let mut calls = Seat::of(Interest::CALLS, &log);
        let reader = thread::spawn(move || {
            let (mut text, mut call) = (0, 0);
            run(poll_fn(|cx| {
                let look = |now: u8, before| {
                    if now > before {
                        Read::CaughtUp(now)
                    } else {
                        Read::Pending
                    }
                };
                if let Poll::Ready(now) = texts.poll_read(cx, |value| look(value.applied, text)) {
                    text = now;
                }
                if let Poll::Ready(now) = calls.poll_read(cx, |value| look(value.calls, call)) {
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
        put_text(&log, &mut wake_list);
        put_call(&log, &mut wake_list);
        put_text(&log, &mut wake_list);
        reader.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_task_that_waits_at_two_places_is_woken_for_each() {
    check(|| {
        let (text, calls) = (log(), log());
        let (mut text_watcher, mut calls_watcher) = (Seat::at(&text), Seat::at(&calls));
        let reader = thread::spawn(move || {
            run(poll_fn(|cx| {
                let look = |value: &Value| match value.applied {
                    0 => Poll::Pending,
                    _ => Poll::Ready(()),
                };
                let text = text_watcher.poll(cx, look);
                let calls = calls_watcher.poll(cx, look);
                if text.is_ready() {
                    calls
                } else {
                    Poll::Pending
                }
            }));
        });
        let mut wake_list = WakeList::default(); // one for all logs, as the reader has it
        put(&text, &mut wake_list);
        put(&calls, &mut wake_list);
        reader.join().unwrap();
        end(&text, 1);
        end(&calls, 1);
    });
}

/// A waker of foreign code, which looks at the value.
struct Looks(Arc<Log>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.0.read(|_| {});
    }
}

#[test]
fn a_waker_may_look_at_the_value() {
    check(|| {
        let log = log();
        let mut watcher = Seat::at(&log);
        let looks = Waker::from(Arc::new(Looks(Arc::clone(&log))));
        let cx = Context::from_waker(&looks);
        let mut wait = || watcher.poll(&cx, |_| Poll::<()>::Pending).is_pending();
        assert!(wait());
        put(&log, &mut WakeList::default());
        assert!(wait());
        seal(&log);
        assert!(log.poll_drive(&cx, &mut None, |_| false).is_pending());
        close(&log);
        // They own each other: somebody else takes the owner's place.
        let other = Context::from_waker(Waker::noop());
        assert!(log.poll_drive(&other, &mut None, |_| false).is_pending());
        drop(watcher);
        end(&log, 1);
    });
}
