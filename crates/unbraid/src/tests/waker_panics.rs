//! Wakers that panic when they are cloned, woken or dropped: the panic stays with the task that brought the waker.

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

/// Fails the clone if `work` cannot be done by another thread meanwhile, and then panics, too.
fn fail_clone_beside(work: impl Fn() + Send + Sync + 'static) {
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
fn a_clone_that_panics_is_made_by_the_poller_and_under_no_lock() {
    let shared = Arc::new(Shared::new(0_u8));
    let (mut watcher, mut other) = (Watcher::new(&shared), Watcher::new(&shared));
    let ((one, waker), (two, other_waker)) = (counter(false), counter(false));
    wait(&mut other, &other_waker);
    let same = Arc::clone(&shared);
    fail_clone_beside(move || same.read(|_| {}));
    assert!(panics(|| wait(&mut watcher, &waker)), "it is the poller's");
    assert_eq!(FREE.take(), Some(true), "a clone was made under the lock");
    on_clone(|| {});
    shared.defer(&mut WakeList::default(), |_| Interest::ALL);
    assert_eq!(two.woken.load(Ordering::Relaxed), 1);
    wait(&mut watcher, &waker);
    shared.modify(|_| {});
    assert_eq!(one.woken.load(Ordering::Relaxed), 1, "it can wait again");
}

#[test]
fn whoever_changes_a_value_clones_no_waker() {
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
fn an_owners_clone_is_made_under_no_lock() {
    let shared = Arc::new(Shared::new(0_u8));
    let same = Arc::clone(&shared);
    fail_clone_beside(move || same.read(|_| {}));
    let cx = Context::from_waker(Waker::noop());
    assert!(panics(|| {
        let _pending = shared.poll_drive(&cx, &mut None, |_| false);
    }));
    assert_eq!(FREE.take(), Some(true));
    on_clone(|| {});
}

#[test]
fn a_clone_that_panics_disturbs_no_request() {
    let requests = Arc::new(CommandQueue::<u8>::default());
    let same = Arc::clone(&requests);
    fail_clone_beside(move || assert!(same.send(1)));
    let cx = Context::from_waker(Waker::noop());
    let mut left = None;
    for _ in 0..2 {
        assert!(panics(|| {
            let _pending = requests.poll(&cx, &mut left);
        }));
        assert_eq!(FREE.take(), Some(true));
    }
    on_clone(|| {});
    assert_eq!(requests.poll(&cx, &mut left), Poll::Ready(vec![1]));
}

/// Panics when its last waker is dropped.
struct Falls;

impl Wake for Falls {
    fn wake(self: Arc<Self>) {}
    fn wake_by_ref(self: &Arc<Self>) {}
}

impl Drop for Falls {
    fn drop(&mut self) {
        assert!(thread::panicking(), "on purpose");
    }
}

/// A waker that a writer has kept, and of which there is no other.
fn kept(shared: &Arc<Shared<u8>>) -> WakeList {
    let mut wake_list = WakeList::default();
    let mut watcher = Watcher::new(shared);
    wait(&mut watcher, &Waker::from(Arc::new(Falls)));
    shared.defer(&mut wake_list, |_| Interest::ALL);
    wake_list
}

#[test]
fn a_kept_waker_whose_drop_panics_is_let_go() {
    let shared = Arc::new(Shared::new(0_u8));
    let wake_list = kept(&shared);
    assert!(!panics(|| drop(wake_list)), "by the writer's end");
    let mut wake_list = kept(&shared);
    let defer = || shared.defer(&mut wake_list, |_| Interest::ALL);
    assert!(!panics(defer), "by the next wake");
}

#[test]
fn a_request_may_drop_a_waker_that_panics() {
    let waits = |requests: &CommandQueue<u8>| {
        let waker = Waker::from(Arc::new(Falls));
        let mut left = None;
        let polled = requests.poll(&Context::from_waker(&waker), &mut left);
        assert!(polled.is_pending());
    };
    let requests = CommandQueue::<u8>::default();
    waits(&requests);
    assert!(!panics(|| assert!(requests.send(1))));
    let requests = CommandQueue::<u8>::default();
    waits(&requests);
    assert!(!panics(|| assert!(requests.close().is_empty())));
}

#[test]
fn an_owner_whose_waker_panics_in_its_drop_still_seals_the_value() {
    let shared = Shared::new(0_u8);
    let mut left = None;
    let waker = Waker::from(Arc::new(Falls));
    let polled = shared.poll_drive(&Context::from_waker(&waker), &mut left, |_| false);
    assert!(polled.is_pending());
    drop((left, waker));
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
    poll_next(&mut content, &Waker::from(Arc::new(Falls)));
    tokio::time::sleep(SECOND * 3 / 2).await;
    drop(content); // the reader keeps the last copy of its waker
    assert_eq!(soon(choice.text()).await.unwrap(), "abcd");
    assert!(soon(completions.closed()).await.is_ok());
}
