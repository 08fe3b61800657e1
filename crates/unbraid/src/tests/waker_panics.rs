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
    wakers::{bell, on_clone, poll_next, wait},
};
use crate::{
    sync::command_queue::Requests,
    sync::shared::{Watched, Watcher},
    sync::wait_list::{Due, Topics},
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
    let watched = Arc::new(Watched::new(0_u8));
    let (mut watcher, mut other) = (Watcher::new(&watched), Watcher::new(&watched));
    let ((one, waker), (two, other_waker)) = (bell(false), bell(false));
    wait(&mut other, &other_waker);
    let same = Arc::clone(&watched);
    fail_clone_beside(move || same.read(|_| {}));
    assert!(panics(|| wait(&mut watcher, &waker)), "it is the poller's");
    assert_eq!(FREE.take(), Some(true), "a clone was made under the lock");
    on_clone(|| {});
    watched.put(&mut Due::default(), |_| Topics::ALL);
    assert_eq!(two.woken.load(Ordering::Relaxed), 1);
    wait(&mut watcher, &waker);
    watched.change(|_| {});
    assert_eq!(one.woken.load(Ordering::Relaxed), 1, "it can wait again");
}

#[test]
fn whoever_changes_a_value_clones_no_waker() {
    let watched = Arc::new(Watched::new(0_u8));
    let mut watchers: Vec<Watcher<u8>> = (0..4).map(|_| Watcher::new(&watched)).collect();
    let bells: Vec<_> = (0..4).map(|_| bell(false)).collect();
    for (watcher, (_, waker)) in watchers.iter_mut().zip(&bells) {
        wait(watcher, waker);
    }
    let owner = bell(false);
    let cx = Context::from_waker(&owner.1);
    assert!(watched.poll_tend(&cx, &mut None, |_| false).is_pending());
    on_clone(|| panic!("on purpose"));
    watched.put(&mut Due::default(), |_| Topics::ALL);
    watched.tell_owner(|_| {});
    watched.change(|_| {});
    on_clone(|| {});
    for (bell, _) in bells.iter().chain([&owner]) {
        assert_eq!(bell.woken.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn an_owners_clone_is_made_under_no_lock() {
    let watched = Arc::new(Watched::new(0_u8));
    let same = Arc::clone(&watched);
    fail_clone_beside(move || same.read(|_| {}));
    let cx = Context::from_waker(Waker::noop());
    assert!(panics(|| {
        let _pending = watched.poll_tend(&cx, &mut None, |_| false);
    }));
    assert_eq!(FREE.take(), Some(true));
    on_clone(|| {});
}

#[test]
fn a_clone_that_panics_disturbs_no_request() {
    let requests = Arc::new(Requests::<u8>::default());
    let same = Arc::clone(&requests);
    fail_clone_beside(move || assert!(same.ask(1)));
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
fn kept(watched: &Arc<Watched<u8>>) -> Due {
    let mut due = Due::default();
    let mut watcher = Watcher::new(watched);
    wait(&mut watcher, &Waker::from(Arc::new(Falls)));
    watched.put(&mut due, |_| Topics::ALL);
    due
}

#[test]
fn a_kept_waker_whose_drop_panics_is_let_go() {
    let watched = Arc::new(Watched::new(0_u8));
    let due = kept(&watched);
    assert!(!panics(|| drop(due)), "by the writer's end");
    let mut due = kept(&watched);
    let put = || watched.put(&mut due, |_| Topics::ALL);
    assert!(!panics(put), "by the next wake");
}

#[test]
fn a_request_may_drop_a_waker_that_panics() {
    let waits = |requests: &Requests<u8>| {
        let waker = Waker::from(Arc::new(Falls));
        let mut left = None;
        let polled = requests.poll(&Context::from_waker(&waker), &mut left);
        assert!(polled.is_pending());
    };
    let requests = Requests::<u8>::default();
    waits(&requests);
    assert!(!panics(|| assert!(requests.ask(1))));
    let requests = Requests::<u8>::default();
    waits(&requests);
    assert!(!panics(|| assert!(requests.close().is_empty())));
}

#[test]
fn an_owner_whose_waker_panics_in_its_drop_still_seals_the_value() {
    let watched = Watched::new(0_u8);
    let mut left = None;
    let waker = Waker::from(Arc::new(Falls));
    let polled = watched.poll_tend(&Context::from_waker(&waker), &mut left, |_| false);
    assert!(polled.is_pending());
    drop((left, waker));
    assert!(!panics(|| watched.retire(|value| *value = 7)));
    assert_eq!(watched.read(|value| *value), 7);
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
