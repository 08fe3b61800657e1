//! Wakers run foreign code: how many there may be, what they may do, and how long they are kept.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures::FutureExt;
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{read, soon};
use crate::{
    Choice, Content,
    sync::shared::{Shared, Watcher},
    sync::wait_list::{Interest, WakeList},
};

thread_local! {
    static ON_CLONE: RefCell<Box<dyn FnMut()>> = RefCell::new(Box::new(|| {}));
}

/// Every clone of a waker calls this first.
pub(crate) fn in_clone() {
    ON_CLONE.with_borrow_mut(|work| work());
}

/// Sets what every clone of a waker on this thread runs first.
pub(super) fn on_clone(work: impl FnMut() + 'static) {
    ON_CLONE.set(Box::new(work));
}

const SECOND: Duration = Duration::from_secs(1);

/// Counts its wake-ups, and may panic at each.
#[derive(Default)]
pub(super) struct CountingWaker {
    pub(super) woken: AtomicU64,
    panics: bool,
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "on purpose");
    }
}

pub(super) fn counter(panics: bool) -> (Arc<CountingWaker>, Waker) {
    let counter = Arc::new(CountingWaker {
        panics,
        ..CountingWaker::default()
    });
    let waker = Waker::from(Arc::clone(&counter));
    (counter, waker)
}

pub(super) fn wait(watcher: &mut Watcher<u8>, waker: &Waker) {
    let pending: Poll<()> = watcher.poll(&Context::from_waker(waker), |_| Poll::Pending);
    assert!(pending.is_pending());
}

/// Waits for the next delta of a text with its own waker.
pub(super) fn poll_next(content: &mut Content, waker: &Waker) {
    let next = pin!(content.next());
    assert!(next.poll(&mut Context::from_waker(waker)).is_pending());
}

#[test]
fn a_waker_that_panics_does_not_keep_others_asleep() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut watchers: Vec<Watcher<u8>> = (0..4).map(|_| Watcher::new(&shared)).collect();
    let wakers: Vec<_> = (0..4).map(|nth| counter(nth % 2 == 0)).collect();
    let mut wake_list = WakeList::default();
    for round in 0..2 {
        for (watcher, (_, waker)) in watchers.iter_mut().zip(&wakers) {
            wait(watcher, waker);
        }
        let woken = catch_unwind(AssertUnwindSafe(|| match round {
            0 => {
                shared.defer(&mut wake_list, |_| Interest::ALL);
            }
            _ => shared.modify(|_| {}),
        }));
        assert!(woken.is_ok(), "the panic is not the writer's");
        for (counter, _) in &wakers {
            assert_eq!(counter.woken.swap(0, Ordering::Relaxed), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_affects_no_other_consumer() {
    let steps = ["b", "c"].map(|text| [Step::Pause(SECOND), bytes(content(0, text))]);
    let steps = [bytes(content(0, "a"))]
        .into_iter()
        .chain(steps.into_iter().flatten())
        .chain([bytes(finish(0, "stop")), bytes(DONE)]);
    let completions = read(steps);
    let choice = soon(completions.first()).await.unwrap();
    let mut first = choice.content();
    assert_eq!(soon(first.next()).await.unwrap().unwrap(), "a");
    let (_, waker) = counter(true);
    poll_next(&mut first, &waker);
    let mut other = choice.content();
    for expected in ["a", "b", "c"] {
        assert_eq!(soon(other.next()).await.unwrap().unwrap(), expected);
    }
    assert!(soon(other.next()).await.is_none());
    assert!(soon(completions.closed()).await.is_ok());
}

/// Counting comparisons would need a hook in the code under test. Quadratic time would be minutes.
#[test]
fn many_waiting_tasks_cost_each_change_linear_time() {
    const TASKS: usize = 200_000;
    let shared = Arc::new(Shared::new(0_u8));
    let mut watchers: Vec<Watcher<u8>> = (0..TASKS).map(|_| Watcher::new(&shared)).collect();
    let wakers: Vec<_> = (0..TASKS).map(|_| counter(false)).collect();
    let mut wake_list = WakeList::default();
    let before = tokio::time::Instant::now();
    for _ in 0..5 {
        for (watcher, (_, waker)) in watchers.iter_mut().zip(&wakers) {
            wait(watcher, waker);
        }
        shared.defer(&mut wake_list, |_| Interest::ALL);
        for (counter, _) in &wakers {
            assert_eq!(counter.woken.swap(0, Ordering::Relaxed), 1);
        }
    }
    drop(watchers);
    assert_eq!(shared.waiter_count(), 0);
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[test]
fn slots_stay_correct_when_waiters_leave_in_any_order() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut wake_list = WakeList::default();
    for stride in [1, 3, 7] {
        let mut watchers: Vec<_> = (0..11)
            .map(|_| Some((Watcher::new(&shared), counter(false))))
            .collect();
        for gone in 0..watchers.len() {
            for (watcher, (_, waker)) in watchers.iter_mut().flatten() {
                wait(watcher, waker);
            }
            let at = gone * stride % watchers.len();
            watchers[at] = None;
            assert_eq!(shared.waiter_count(), watchers.iter().flatten().count());
            shared.defer(&mut wake_list, |_| Interest::ALL);
            for (_, (counter, _)) in watchers.iter().flatten() {
                assert_eq!(counter.woken.swap(0, Ordering::Relaxed), 1);
            }
        }
    }
}

/// The task is woken once for all its watchers, even if those of other tasks are in between.
#[test]
fn a_task_with_many_watchers_is_woken_once() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut watchers: Vec<Watcher<u8>> = (0..12).map(|_| Watcher::new(&shared)).collect();
    let wakers = [counter(false), counter(false), counter(false)];
    let mut wake_list = WakeList::default();
    for _ in 0..3 {
        for (nth, watcher) in watchers.iter_mut().enumerate() {
            wait(watcher, &wakers[nth % 3].1);
        }
        shared.defer(&mut wake_list, |_| Interest::ALL);
        for (counter, _) in &wakers {
            assert_eq!(counter.woken.swap(0, Ordering::Relaxed), 1);
        }
    }
}

/// A choice whose content is awaited by a task that is dropped after "b".
async fn dropped_after_b(rest: Vec<Step>) -> (Choice, Arc<CountingWaker>, crate::Completions) {
    let mut steps = vec![
        bytes(content(0, "a")),
        Step::Pause(SECOND),
        bytes(content(0, "b")),
        Step::Pause(SECOND),
    ];
    steps.extend(rest);
    let completions = read(steps);
    let choice = soon(completions.first()).await.unwrap();
    let mut content = choice.content();
    assert_eq!(soon(content.next()).await.unwrap().unwrap(), "a");
    let (counter, waker) = counter(false);
    poll_next(&mut content, &waker);
    drop(waker);
    tokio::time::sleep(SECOND * 3 / 2).await;
    assert_eq!(counter.woken.load(Ordering::Relaxed), 1);
    drop(content);
    (choice, counter, completions)
}

#[tokio::test(start_paused = true)]
async fn a_dropped_cursors_waker_is_gone_by_the_next_delta() {
    let rest = vec![bytes(content(0, "c")), Step::Stall];
    let (_choice, counter, _completions) = dropped_after_b(rest).await;
    assert!(Arc::strong_count(&counter) <= 2, "at most one copy is kept");
    tokio::time::sleep(SECOND).await;
    assert_eq!(Arc::strong_count(&counter), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_cursors_waker_is_gone_by_the_choices_end() {
    let rest = vec![
        bytes(finish(0, "stop") + &content(1, "x")),
        Step::Stall, // the stream goes on
    ];
    let (choice, counter, completions) = dropped_after_b(rest).await;
    assert!(soon(choice.finished()).await.is_ok());
    assert_eq!(Arc::strong_count(&counter), 1);
    assert!(completions.closed().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn consumers_that_wait_at_the_end_leave_no_waker_behind() {
    let steps = [
        bytes(content(0, "a")),
        Step::Pause(SECOND),
        bytes(finish(0, "stop") + &content(1, "x")),
        Step::Stall,
    ];
    let completions = read(steps);
    let choice = soon(completions.first()).await.unwrap();
    let mut content = choice.content();
    assert_eq!(soon(content.next()).await.unwrap().unwrap(), "a");
    let (counter, waker) = counter(false);
    poll_next(&mut content, &waker);
    drop(waker);
    tokio::time::sleep(SECOND * 2).await;
    assert_eq!(counter.woken.load(Ordering::Relaxed), 1, "for the end");
    drop(content);
    assert_eq!(Arc::strong_count(&counter), 1);
}

const ROLE: &str =
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";

#[tokio::test(start_paused = true)]
async fn an_update_of_one_choice_wakes_no_consumer_of_new_choices() {
    let completions = read([
        bytes(content(0, "a")),
        Step::Pause(SECOND),
        bytes(ROLE),
        Step::Stall,
    ]);
    let mut choices = completions.choices();
    assert!(soon(choices.next()).await.is_some());
    let (counter, waker) = counter(false);
    let next = pin!(choices.next());
    assert!(next.poll(&mut Context::from_waker(&waker)).is_pending());
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(counter.woken.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn metadata_without_any_delta_are_published_at_once() {
    let completions = read([
        bytes(content(0, "a").replace("\"id\":\"c\",", "")),
        Step::Pause(SECOND),
        bytes(ROLE),
        Step::Stall,
    ]);
    assert!(soon(completions.choice(0)).await.is_some());
    assert_eq!(completions.metadata().id, None);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(completions.metadata().id.as_deref(), Some("c"));
}
