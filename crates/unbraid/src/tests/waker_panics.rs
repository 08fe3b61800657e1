//! Wakers that panic when they are cloned, woken or dropped: the panic reaches only the task that registered the waker.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{
    read, soon,
    wakers::{counter, on_clone, poll_next, wait},
};
use crate::{
    sync::command_queue::CommandQueue,
    sync::shared::{Shared, Watcher},
    sync::wait_list::{Interest, WakeList},
};

const SECOND: Duration = Duration::from_secs(1);

fn panics(work: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

/// Makes the next clone of a waker check that another thread can do `work` meanwhile, and then panic.
fn fail_clone_during(work: impl Fn() + Send + Sync + 'static) {
    let work = Arc::new(work);
    on_clone(move || {
        let (done, result) = mpsc::channel();
        let work = Arc::clone(&work);
        thread::spawn(move || {
            work();
            done.send(())
        });
        let free = result.recv_timeout(Duration::from_secs(10)).is_ok();
        FREE.set(Some(free));
        panic!("on purpose");
    });
}

thread_local! {
    /// Whether the lock was free when a waker was cloned.
    static FREE: std::cell::Cell<Option<bool>> = const { std::cell::Cell::new(None) };
}

#[test]
fn a_clone_that_panics_runs_in_the_polling_task_and_without_the_lock() {
    let shared = Arc::new(Shared::new(0_u8));
    let (mut watcher, mut other) = (Watcher::new(&shared), Watcher::new(&shared));
    let ((one, waker), (two, other_waker)) = (counter(false), counter(false));
    wait(&mut other, &other_waker);
    let same = Arc::clone(&shared);
    fail_clone_during(move || same.read(|_| {}));
    assert!(
        panics(|| wait(&mut watcher, &waker)),
        "the panic is the polling task's"
    );
    assert_eq!(FREE.take(), Some(true), "the lock is free during the clone");
    on_clone(|| {});
    shared.defer(&mut WakeList::default(), |_| Interest::ALL);
    assert_eq!(two.woken.load(Ordering::Relaxed), 1);
    wait(&mut watcher, &waker);
    shared.modify(|_| {});
    assert_eq!(one.woken.load(Ordering::Relaxed), 1, "it can wait again");
}

#[test]
fn changing_a_value_clones_no_waker() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut watchers: Vec<Watcher<u8>> = (0..4).map(|_| Watcher::new(&shared)).collect();
    let wakers: Vec<_> = (0..4).map(|_| counter(false)).collect();
    for (watcher, (_, waker)) in watchers.iter_mut().zip(&wakers) {
        wait(watcher, waker);
    }
    let owner = counter(false);
    let cx = Context::from_waker(&owner.1);
    assert!(shared.poll_drive(&cx, &mut None, |_| false).is_pending());
    on_clone(|| panic!("on purpose"));
    shared.defer(&mut WakeList::default(), |_| Interest::ALL);
    shared.notify_owner(|_| {});
    shared.modify(|_| {});
    on_clone(|| {});
    for (counter, _) in wakers.iter().chain([&owner]) {
        assert_eq!(counter.woken.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn an_owners_clone_runs_without_the_lock() {
    let shared = Arc::new(Shared::new(0_u8));
    let same = Arc::clone(&shared);
    fail_clone_during(move || same.read(|_| {}));
    let cx = Context::from_waker(Waker::noop());
    assert!(panics(|| {
        let _pending = shared.poll_drive(&cx, &mut None, |_| false);
    }));
    assert_eq!(FREE.take(), Some(true));
    on_clone(|| {});
}

#[test]
fn a_clone_that_panics_loses_no_command() {
    let commands = Arc::new(CommandQueue::<u8>::default());
    let same = Arc::clone(&commands);
    fail_clone_during(move || assert!(same.send(1)));
    let cx = Context::from_waker(Waker::noop());
    let mut registered = None;
    for _ in 0..2 {
        assert!(panics(|| {
            let _pending = commands.poll(&cx, &mut registered);
        }));
        assert_eq!(FREE.take(), Some(true));
    }
    on_clone(|| {});
    assert_eq!(commands.poll(&cx, &mut registered), Poll::Ready(vec![1]));
}

/// Panics when its last waker is dropped.
struct PanicsOnDrop;

impl Wake for PanicsOnDrop {
    fn wake(self: Arc<Self>) {}
    fn wake_by_ref(self: &Arc<Self>) {}
}

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(thread::panicking(), "on purpose");
    }
}

/// A wake list that holds the last clone of a waker.
fn kept_waker(shared: &Arc<Shared<u8>>) -> WakeList {
    let mut wake_list = WakeList::default();
    let mut watcher = Watcher::new(shared);
    wait(&mut watcher, &Waker::from(Arc::new(PanicsOnDrop)));
    shared.defer(&mut wake_list, |_| Interest::ALL);
    wake_list
}

#[test]
fn a_kept_waker_whose_drop_panics_is_released() {
    let shared = Arc::new(Shared::new(0_u8));
    let wake_list = kept_waker(&shared);
    assert!(!panics(|| drop(wake_list)), "when the writer ends");
    let mut wake_list = kept_waker(&shared);
    let defer = || {
        shared.defer(&mut wake_list, |_| Interest::ALL);
    };
    assert!(!panics(defer), "at the next wake-up");
}

#[test]
fn sending_or_closing_may_drop_a_waker_that_panics() {
    let register = |commands: &CommandQueue<u8>| {
        let waker = Waker::from(Arc::new(PanicsOnDrop));
        let mut registered = None;
        let polled = commands.poll(&Context::from_waker(&waker), &mut registered);
        assert!(polled.is_pending());
    };
    let commands = CommandQueue::<u8>::default();
    register(&commands);
    assert!(!panics(|| assert!(commands.send(1))));
    let commands = CommandQueue::<u8>::default();
    register(&commands);
    assert!(!panics(|| assert!(commands.close().is_empty())));
}

#[test]
fn an_owner_whose_waker_panics_in_its_drop_still_seals_the_value() {
    let shared = Shared::new(0_u8);
    let mut registered = None;
    let waker = Waker::from(Arc::new(PanicsOnDrop));
    let polled = shared.poll_drive(&Context::from_waker(&waker), &mut registered, |_| false);
    assert!(polled.is_pending());
    drop((registered, waker));
    assert!(!panics(|| shared.detach_owner(|value| *value = 7)));
    assert_eq!(shared.read(|value| *value), 7);
}

#[tokio::test(start_paused = true)]
async fn a_waker_whose_drop_panics_does_not_end_the_reader() {
    let texts = ["b", "c", "d"].map(|text| [Step::Pause(SECOND), bytes(content(0, text))]);
    let steps = [bytes(content(0, "a"))]
        .into_iter()
        .chain(texts.into_iter().flatten())
        .chain([bytes(finish(0, "stop")), bytes(DONE)]);
    let completions = read(steps);
    let choice = soon(completions.first()).await.unwrap();
    let mut content = choice.content();
    assert_eq!(soon(content.next()).await.unwrap().unwrap(), "a");
    poll_next(&mut content, &Waker::from(Arc::new(PanicsOnDrop)));
    tokio::time::sleep(SECOND * 3 / 2).await;
    drop(content); // the reader keeps the last copy of its waker
    assert_eq!(soon(choice.text()).await.unwrap(), "abcd");
    assert!(soon(completions.closed()).await.is_ok());
}
