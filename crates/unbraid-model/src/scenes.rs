//! What every scene needs: the checker, and a minimal executor.

mod command_queue;
mod ends;
mod interest;
mod shared;
mod wake_gate;

use std::{
    ops::{Deref, DerefMut},
    pin::pin,
    sync::atomic::AtomicUsize,
    task::{Context, Poll, Wake, Waker},
};

use loom::{model::Builder, sync::Notify};

use crate::{
    sync::primitives::{Arc, Ordering},
    sync::shared::{ApplyPending, Shared, Watcher},
    sync::wait_list::Interest,
};

/// Runs a scene in every order that its threads can take.
fn check(scene: impl Fn() + Send + Sync + 'static) {
    run_orders(None, scene);
}

/// As [`check`], for scenes with too many orders: runs only those with at most three preemptions, or as many as
/// `LOOM_MAX_PREEMPTIONS` says.
fn check_most(scene: impl Fn() + Send + Sync + 'static) {
    run_orders(Some(3), scene);
}

fn run_orders(preemptions: Option<usize>, scene: impl Fn() + Send + Sync + 'static) {
    let orders = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&orders);
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions.map(|most| builder.preemption_bound.unwrap_or(most));
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    println!("{} orders", orders.load(Ordering::Relaxed));
}

/// Wakes a task of a scene.
#[derive(Default)]
struct NotifyWaker(Notify);

impl Wake for NotifyWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify();
    }
}

/// Runs a task on this thread, which sleeps until it is woken. Loom also tries spurious wake-ups.
fn run<F: Future>(task: F) -> F::Output {
    let notify = Arc::new(NotifyWaker::default());
    let waker = Waker::from(Arc::clone(&notify));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => notify.0.wait(),
        }
    }
}

/// A watcher that is forgotten when a scene fails. Loom then grants no more locks, so dropping it would abort the process.
struct ScopedWatcher<T: ApplyPending>(Option<Watcher<T>>);

impl<T: ApplyPending> ScopedWatcher<T> {
    fn new(shared: &Arc<Shared<T>>) -> Self {
        Self(Some(Watcher::new(shared)))
    }

    fn with_interest(interest: Interest, shared: &Arc<Shared<T>>) -> Self {
        Self(Some(Watcher::with_interest(interest, shared)))
    }
}

impl<T: ApplyPending> Deref for ScopedWatcher<T> {
    type Target = Watcher<T>;

    fn deref(&self) -> &Watcher<T> {
        self.0.as_ref().expect("only the drop takes it")
    }
}

impl<T: ApplyPending> DerefMut for ScopedWatcher<T> {
    fn deref_mut(&mut self) -> &mut Watcher<T> {
        self.0.as_mut().expect("only the drop takes it")
    }
}

impl<T: ApplyPending> Drop for ScopedWatcher<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}
