//! A value between its writer, its owner and its readers, like the log of a choice.

use std::{
    future::poll_fn,
    task::{Context, Poll, Wake, Waker},
};

use loom::thread;

use super::{ScopedWatcher, check, check_most, run};
use crate::{
    sync::primitives::Arc,
    sync::shared::{ApplyPending, Pending, Shared, Watcher},
    sync::wait_list::{Interest, WakeList},
};

/// Deferred work is applied by the next task that takes the lock.
#[derive(Debug, Default)]
pub(super) struct Value {
    pending: u8,
    pub(super) applied: u8,
    /// The same for calls, which have an interest of their own.
    pending_calls: u8,
    pub(super) calls: u8,
    /// Nothing more will be deferred.
    closed: bool,
    /// The owner is gone.
    sealed: bool,
}

impl ApplyPending for Value {
    fn pending(&self) -> Pending {
        if self.pending > 0 || self.pending_calls > 0 {
            Pending::Work
        } else if self.sealed {
            Pending::End
        } else {
            Pending::Nothing
        }
    }

    fn apply_pending(&mut self) {
        self.applied += std::mem::take(&mut self.pending);
        self.calls += std::mem::take(&mut self.pending_calls);
    }
}

pub(super) type Log = Shared<Value>;

pub(super) fn log() -> Arc<Log> {
    Arc::new(Shared::new(Value::default()))
}

pub(super) fn defer_text(log: &Log, wake_list: &mut WakeList) {
    log.defer(wake_list, |value| {
        value.pending += 1;
        Interest::TEXT
    });
}

pub(super) fn defer_call(log: &Log, wake_list: &mut WakeList) {
    log.defer(wake_list, |value| {
        value.pending_calls += 1;
        Interest::CALLS
    });
}

pub(super) fn defer(log: &Log, wake_list: &mut WakeList) {
    log.defer(wake_list, |value| {
        value.pending += 1;
        Interest::ALL
    });
}

fn close(log: &Log) {
    log.notify_owner(|value| value.closed = true);
}

pub(super) fn seal(log: &Log) {
    log.modify(|value| value.sealed = true);
}

async fn applied(watcher: &mut Watcher<Value>, count: u8) {
    watcher
        .wait_for(|value| (value.applied >= count).then_some(()))
        .await;
}

pub(super) async fn sealed(watcher: &mut Watcher<Value>) {
    watcher.wait_for(|value| value.sealed.then_some(())).await;
}

pub(super) fn end(log: &Log, count: u8) {
    assert_eq!(log.read(|value| value.applied), count);
    assert_eq!(log.waiter_count(), 0, "a dropped watcher leaves no waker");
}

#[test]
fn a_watcher_sees_what_was_written_before_anybody_waited() {
    check(|| {
        let log = log();
        log.change_silently(|value| value.applied = 1);
        let mut watcher = ScopedWatcher::new(&log);
        let reader = thread::spawn(move || run(applied(&mut watcher, 2)));
        defer(&log, &mut WakeList::default());
        reader.join().unwrap();
        end(&log, 2);
    });
}

/// The work of two deltas of a read, as the reader does it: the first one is applied at once, and announced with the second one.
fn apply_and_defer(log: &Log, wake_list: &mut WakeList) {
    wake_list.prefetch();
    log.change_silently(|value| value.applied += 1);
    log.defer(wake_list, |value| {
        value.pending += 1;
        Interest::TEXT.and(Interest::TEXT)
    });
}

#[test]
fn a_watcher_sees_what_was_applied_before_it_is_notified() {
    check(|| {
        let log = log();
        let mut watcher = ScopedWatcher::new(&log);
        let reader = thread::spawn(move || run(applied(&mut watcher, 1)));
        log.change_silently(|value| value.applied = 1);
        let applied = Interest::TEXT;
        log.defer(&mut WakeList::default(), |_| applied.and(Interest::NONE));
        reader.join().unwrap();
        end(&log, 1);
    });
}

#[test]
fn the_owner_applies_what_follows_an_applied_delta() {
    check(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 2)));
        apply_and_defer(&log, &mut WakeList::default());
        owner.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_watcher_sees_every_value_and_the_end() {
    check(|| {
        let log = log();
        let mut watcher = ScopedWatcher::new(&log);
        let reader = thread::spawn(move || {
            run(async {
                applied(&mut watcher, 1).await;
                applied(&mut watcher, 2).await;
                sealed(&mut watcher).await;
            });
        });
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        defer(&log, &mut wake_list);
        seal(&log);
        reader.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn the_owner_applies_what_no_reader_waits_for() {
    check(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 2)));
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        defer(&log, &mut wake_list);
        owner.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn the_owner_ends_once_it_is_notified_with_all_applied() {
    check(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let owner = thread::spawn(move || {
            run(driven.drive(|value| {
                assert_eq!(value.pending, 0);
                assert!(!value.closed || value.applied == 2);
                value.closed
            }));
        });
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        defer(&log, &mut wake_list);
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
        let mut watcher = ScopedWatcher::new(&log);
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
        defer(&log, &mut WakeList::default());
        close(&log);
        owner.join().unwrap();
        reader.join().unwrap();
        end(&log, 1);
    });
}

/// Waits for the log once and never reads again, whether it is woken or not.
fn cancelled(log: &Arc<Log>) -> thread::JoinHandle<()> {
    let mut watcher = ScopedWatcher::new(log);
    let cx = Context::from_waker(Waker::noop());
    let pending: Poll<()> = watcher.poll(&cx, |_| Poll::Pending);
    assert!(pending.is_pending());
    thread::spawn(move || drop(watcher))
}

#[test]
fn work_that_woke_a_cancelled_watcher_is_applied_by_the_owner() {
    check(|| {
        let log = log();
        let driven = Arc::clone(&log);
        let cancelled = cancelled(&log);
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 2)));
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        cancelled.join().unwrap();
        defer(&log, &mut wake_list);
        owner.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn work_that_woke_a_cancelled_watcher_is_applied_by_the_next_one() {
    check(|| {
        let log = log();
        let mut next = ScopedWatcher::new(&log);
        let cancelled = cancelled(&log);
        let reader = thread::spawn(move || run(applied(&mut next, 2)));
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        cancelled.join().unwrap();
        defer(&log, &mut wake_list);
        reader.join().unwrap();
        end(&log, 2);
    });
}

#[test]
fn a_watcher_that_never_reads_leaves_the_next_work_to_the_owner() {
    check(|| {
        let log = log();
        let (driven, mut shared) = (Arc::clone(&log), ScopedWatcher::new(&log));
        let cx = Context::from_waker(Waker::noop());
        let pending: Poll<()> = shared.poll(&cx, |_| Poll::Pending);
        assert!(pending.is_pending());
        let owner = thread::spawn(move || run(driven.drive(|value| value.applied == 2)));
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        defer(&log, &mut wake_list);
        owner.join().unwrap();
        drop(shared);
        end(&log, 2);
    });
}

#[test]
fn two_watchers_that_wait_again_and_again_miss_nothing() {
    check_most(|| {
        let log = log();
        let readers = [ScopedWatcher::new(&log), ScopedWatcher::new(&log)].map(|mut watcher| {
            thread::spawn(move || {
                // Each wait is a task of its own, and registers another waker.
                run(applied(&mut watcher, 1));
                run(applied(&mut watcher, 2));
            })
        });
        let mut wake_list = WakeList::default();
        defer(&log, &mut wake_list);
        defer(&log, &mut wake_list);
        for reader in readers {
            reader.join().unwrap();
        }
        end(&log, 2);
    });
}

#[test]
fn a_task_that_waits_for_two_values_is_woken_for_each() {
    check(|| {
        let (text, calls) = (log(), log());
        let (mut text_watcher, mut calls_watcher) =
            (ScopedWatcher::new(&text), ScopedWatcher::new(&calls));
        let reader = thread::spawn(move || {
            run(poll_fn(|cx| {
                let read = |value: &Value| match value.applied {
                    0 => Poll::Pending,
                    _ => Poll::Ready(()),
                };
                let text = text_watcher.poll(cx, read);
                let calls = calls_watcher.poll(cx, read);
                if text.is_ready() {
                    calls
                } else {
                    Poll::Pending
                }
            }));
        });
        let mut wake_list = WakeList::default(); // one for both, as a reader may share it
        defer(&text, &mut wake_list);
        defer(&calls, &mut wake_list);
        reader.join().unwrap();
        end(&text, 1);
        end(&calls, 1);
    });
}

/// A waker that reads the value, as foreign code may.
struct ReadingWaker(Arc<Log>);

impl Wake for ReadingWaker {
    fn wake(self: Arc<Self>) {
        self.0.read(|_| {});
    }
}

#[test]
fn a_waker_may_read_the_value() {
    check(|| {
        let log = log();
        let mut watcher = ScopedWatcher::new(&log);
        let reading = Waker::from(Arc::new(ReadingWaker(Arc::clone(&log))));
        let cx = Context::from_waker(&reading);
        let mut wait = || watcher.poll(&cx, |_| Poll::<()>::Pending).is_pending();
        assert!(wait());
        defer(&log, &mut WakeList::default());
        assert!(wait());
        seal(&log);
        assert!(log.poll_drive(&cx, &mut None, |_| false).is_pending());
        close(&log);
        // The waker and the value own each other, so another waker takes the owner's slot.
        let other = Context::from_waker(Waker::noop());
        assert!(log.poll_drive(&other, &mut None, |_| false).is_pending());
        drop(watcher);
        end(&log, 1);
    });
}
