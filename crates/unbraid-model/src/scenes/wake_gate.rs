//! A gate between a task and what wakes it, like the drain of a connection beside its requests.

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use loom::thread;

use super::{check, check_most, run};
use crate::sync::{
    primitives::{Arc, Mutex},
    wake_gate::WakeGate,
};

/// A counter that wakes the task which waits for it, and takes its waker to do so, as channels and tokens do.
#[derive(Default)]
struct Counter(Mutex<(u8, Option<Waker>)>);

impl Counter {
    fn add(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 += 1;
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_past(&self, cx: &Context<'_>, read: u8) -> Poll<u8> {
        let mut state = self.0.lock().unwrap();
        if state.0 > read {
            return Poll::Ready(state.0);
        }
        let former = state.1.replace(cx.waker().clone());
        drop(state);
        drop(former);
        Poll::Pending
    }
}

fn add(counter: &Arc<Counter>, times: u8) -> thread::JoinHandle<()> {
    let counter = Arc::clone(counter);
    thread::spawn(move || {
        for _ in 0..times {
            counter.add();
        }
    })
}

/// Polls the counter through the gate only, until it has reached `count`.
async fn reach(gate: &mut WakeGate, counter: &Counter, count: u8) {
    let mut read = 0;
    while read < count {
        read = poll_fn(|cx| gate.poll(cx, |cx| counter.poll_past(cx, read))).await;
    }
}

#[test]
fn a_wake_up_at_any_time_of_a_poll_is_not_lost() {
    check(|| {
        let counter = Arc::new(Counter::default());
        let adder = add(&counter, 2);
        run(reach(&mut WakeGate::default(), &counter, 2));
        adder.join().unwrap();
    });
}

/// One of the wake-ups may be late: its task is woken after the poll that it is for, and after the next wake-up was prepared.
#[test]
fn a_late_wake_up_does_not_hide_the_next_one() {
    check_most(|| {
        let counter = Arc::new(Counter::default());
        let adders = [add(&counter, 1), add(&counter, 1)];
        run(reach(&mut WakeGate::default(), &counter, 2));
        for adder in adders {
            adder.join().unwrap();
        }
    });
}

#[test]
fn a_task_that_takes_over_the_gate_is_woken() {
    check(|| {
        let counter = Arc::new(Counter::default());
        let mut gate = WakeGate::default();
        let adder = add(&counter, 1);
        let mut cx = Context::from_waker(Waker::noop());
        let first = gate.poll(&mut cx, |cx| counter.poll_past(cx, 0));
        if first.is_pending() {
            run(reach(&mut gate, &counter, 1));
        }
        adder.join().unwrap();
    });
}

/// A connection drains: its task is woken for its requests as well, and each time also polls the gate.
#[test]
fn a_task_that_is_woken_for_other_work_passes_the_gate() {
    check_most(|| {
        let (requests, drain) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let adders = [add(&requests, 2), add(&drain, 1)];
        let mut gate = WakeGate::default();
        let (mut served, mut is_draining) = (0, false);
        run(poll_fn(|cx| {
            while served < 2 {
                let Poll::Ready(count) = requests.poll_past(cx, served) else {
                    break;
                };
                served = count;
            }
            if !is_draining {
                is_draining = gate.poll(cx, |cx| drain.poll_past(cx, 0)).is_ready();
            }
            if is_draining && served == 2 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        for adder in adders {
            adder.join().unwrap();
        }
    });
}
