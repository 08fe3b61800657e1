//! `WakeGate`: waits for what is rarely ready without polling it each time that its task runs.
//!
//! A gateway has thousands of tasks, and the memory of one has left the caches when its next delta arrives. What such a task
//! examines for each delta costs more than what it computes.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Polls something only after it has woken this task.
pub(crate) struct WakeGate {
    flag: Arc<Flag>,
    /// Sets the flag.
    waker: Waker,
    /// The task that was registered last.
    task: Option<Waker>,
}

struct Flag {
    is_woken: AtomicBool,
    /// It stays here when it is woken. If a wake-up took it, one that comes late, after the poll that it is for, would leave
    /// nothing for the next one.
    task: Mutex<Option<Waker>>,
}

impl Flag {
    fn set_task(&self, task: &Waker) {
        let mut kept = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let former = kept.replace(task.clone());
        // Its drop may run foreign code.
        drop(kept);
        drop(former);
    }

    fn wake_task(&self) {
        let kept = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let task = kept.clone();
        drop(kept);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.wake_task();
    }
}

impl Default for WakeGate {
    fn default() -> Self {
        let flag = Arc::new(Flag {
            is_woken: AtomicBool::new(true),
            task: Mutex::default(),
        });
        Self {
            waker: Waker::from(Arc::clone(&flag)),
            flag,
            task: None,
        }
    }
}

impl WakeGate {
    /// Calls `poll` if it has not been called yet, was ready, or has woken the task since it was pending.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let is_registered = |task: &Waker| task.will_wake(cx.waker());
        if !self.task.as_ref().is_some_and(is_registered) {
            // Before the flag is read: what sets it later wakes this task.
            self.flag.set_task(cx.waker());
            self.task = Some(cx.waker().clone());
        }
        // Most calls end here, without a write.
        if !self.flag.is_woken.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // What wakes before this line is seen by the poll that follows.
        self.flag.is_woken.swap(false, Ordering::AcqRel);
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.flag.is_woken.store(true, Ordering::Release);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn, sync::atomic::AtomicUsize, time::Duration};

    use futures::{FutureExt, StreamExt, channel::mpsc, future::join};
    use tokio::time::{sleep, timeout};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

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

    /// The two steps of a wake-up, with polls between them.
    #[test]
    fn a_wake_up_that_is_late_does_not_hide_the_next_one() {
        let wakes = Arc::new(Count::default());
        let task = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&task);
        let mut gate = WakeGate::default();
        let mut inner = None;
        let pending = gate.poll(&mut cx, |cx| {
            inner = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        assert!(pending.is_pending());
        gate.flag.is_woken.store(true, Ordering::Release);
        assert!(gate.poll(&mut cx, |_| Poll::Ready(())).is_ready());
        assert!(gate.poll(&mut cx, |_| Poll::<()>::Pending).is_pending());
        gate.flag.wake_task();
        let polled = gate.poll(&mut cx, |_| -> Poll<()> { panic!("the flag is not set") });
        assert!(polled.is_pending());
        let before = wakes.0.load(Ordering::Relaxed);
        inner.unwrap().wake();
        assert_eq!(wakes.0.load(Ordering::Relaxed), before + 1);
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
}
