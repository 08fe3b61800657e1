//! CommandQueue between handles and the task that looks for them, as the reader does.

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use loom::thread;

use super::{Seat, check, check_most, run};
use crate::{
    sync::command_queue::CommandQueue,
    sync::primitives::Arc,
    sync::shared::{ApplyPending, Shared},
    sync::wait_list::{Interest, SharedWaker, WakeList},
};

fn open() -> Arc<CommandQueue<u8>> {
    Arc::new(CommandQueue::default())
}

fn asks(requests: &Arc<CommandQueue<u8>>, request: u8) -> thread::JoinHandle<()> {
    let requests = Arc::clone(requests);
    thread::spawn(move || assert!(requests.send(request)))
}

/// Waits until so many requests have come, each of them once.
async fn heard(
    requests: &CommandQueue<u8>,
    left: &mut Option<SharedWaker>,
    count: usize,
) -> Vec<u8> {
    let mut heard = Vec::new();
    while heard.len() < count {
        heard.extend(poll_fn(|cx| requests.poll(cx, left)).await);
    }
    heard.sort_unstable();
    heard
}

#[test]
fn requests_of_two_threads_are_heard_both() {
    check_most(|| {
        let requests = open();
        let askers = [asks(&requests, 1), asks(&requests, 2)];
        assert_eq!(run(heard(&requests, &mut None, 2)), [1, 2]);
        for asker in askers {
            asker.join().unwrap();
        }
    });
}

#[test]
fn one_request_behind_another_is_heard() {
    check(|| {
        let requests = open();
        let asked = Arc::clone(&requests);
        let asker = thread::spawn(move || {
            assert!(asked.send(1));
            assert!(asked.send(2));
            assert!(asked.send(3));
        });
        assert_eq!(run(heard(&requests, &mut None, 3)), [1, 2, 3]);
        asker.join().unwrap();
    });
}

#[test]
fn a_request_is_heard_by_a_task_with_another_waker() {
    check_most(|| {
        let requests = open();
        let askers = [asks(&requests, 1), asks(&requests, 2)];
        let mut left = None;
        // It waits here first, then elsewhere.
        let first = requests.poll(&Context::from_waker(Waker::noop()), &mut left);
        let mut all = match first {
            Poll::Ready(requests) => requests,
            Poll::Pending => Vec::new(),
        };
        all.extend(run(heard(&requests, &mut left, 2 - all.len())));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        for asker in askers {
            asker.join().unwrap();
        }
    });
}

#[test]
fn a_request_asked_twice_is_heard_behind_the_second() {
    check_most(|| {
        let requests = open();
        let askers = [asks(&requests, 1), asks(&requests, 1)];
        let mut left = None;
        assert_eq!(run(heard(&requests, &mut left, 1)), [1]);
        for asker in askers {
            asker.join().unwrap();
        }
        let rest = requests.poll(&Context::from_waker(Waker::noop()), &mut left);
        assert!(rest.is_pending() || rest == Poll::Ready(vec![1]));
    });
}

impl ApplyPending for u8 {
    fn apply_pending(&mut self) {}
}

#[test]
fn a_task_that_is_woken_for_other_work_as_well_hears_every_request() {
    check_most(|| {
        let requests = open();
        let source = Arc::new(Shared::new(0_u8));
        let mut watcher = Seat::at(&source);
        let asker = asks(&requests, 1);
        let writer = thread::spawn(move || {
            let mut wake_list = WakeList::default();
            for _ in 0..2 {
                source.defer(&mut wake_list, |value| {
                    *value += 1;
                    Interest::ALL
                });
            }
        });
        let (mut left, mut heard, mut read) = (None, false, 0);
        run(poll_fn(|cx| {
            while let Poll::Ready(requests) = requests.poll(cx, &mut left) {
                assert_eq!(requests, [1]);
                heard = true;
            }
            while read < 2 {
                let more = |value: &u8| match *value {
                    value if value > read => Poll::Ready(value),
                    _ => Poll::Pending,
                };
                let Poll::Ready(value) = watcher.poll(cx, more) else {
                    return Poll::Pending;
                };
                read = value;
            }
            if heard {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        asker.join().unwrap();
        writer.join().unwrap();
    });
}

/// A choice appears, and is cancelled, while the thread that starts its reader has not yet gone on.
#[test]
fn a_request_while_the_task_is_being_started_is_heard() {
    check_most(|| {
        let requests = open();
        let spawned = Arc::clone(&requests);
        let task = thread::spawn(move || {
            assert_eq!(run(heard(&spawned, &mut None, 1)), [1]);
            assert!(spawned.close().is_empty());
        });
        let asker = asks(&requests, 1);
        asker.join().unwrap();
        task.join().unwrap();
        assert!(!requests.send(2), "it has ended");
    });
}

#[test]
fn a_request_beside_the_end_is_heard_or_given_back_or_refused() {
    check_most(|| {
        let requests = open();
        let askers = [1, 2].map(|request| {
            let requests = Arc::clone(&requests);
            thread::spawn(move || (request, requests.send(request)))
        });
        let cx = Context::from_waker(Waker::noop());
        let mut all = match requests.poll(&cx, &mut None) {
            Poll::Ready(heard) => heard,
            Poll::Pending => Vec::new(),
        };
        all.extend(requests.close());
        for asker in askers {
            let (request, taken) = asker.join().unwrap();
            assert_eq!(all.contains(&request), taken);
        }
    });
}

#[test]
fn nothing_is_heard_behind_the_end() {
    check(|| {
        let requests = open();
        let asked = Arc::clone(&requests);
        let asker = thread::spawn(move || asked.send(1));
        let given_back = requests.close();
        assert_eq!(asker.join().unwrap(), given_back == [1]);
        let heard = requests.poll(&Context::from_waker(Waker::noop()), &mut None);
        assert!(heard.is_pending());
    });
}
