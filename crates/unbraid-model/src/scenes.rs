//! What every scene needs: a checker, and tasks.

mod command_queue;
mod ends;
mod shared;

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

/// Plays a scene in every order that its threads can take.
fn check(scene: impl Fn() + Send + Sync + 'static) {
    play(None, scene);
}

/// As [`check`], where three threads have too much to do: only the orders with at most three preemptions, or with as many as
/// `LOOM_MAX_PREEMPTIONS` says.
fn check_most(scene: impl Fn() + Send + Sync + 'static) {
    play(Some(3), scene);
}

fn play(preemptions: Option<usize>, scene: impl Fn() + Send + Sync + 'static) {
    let played = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&played);
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions.map(|most| builder.preemption_bound.unwrap_or(most));
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    println!("{} orders", played.load(Ordering::Relaxed));
}

/// Wakes a task of the model.
#[derive(Default)]
struct CountingWaker(Notify);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify();
    }
}

/// Runs a task on this thread. It sleeps until it is woken, or is woken once for no reason.
fn run<F: Future>(task: F) -> F::Output {
    let counter = Arc::new(CountingWaker::default());
    let waker = Waker::from(Arc::clone(&counter));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => counter.0.wait(),
        }
    }
}

/// A watcher that is forgotten when a scene fails: then the checker gives no locks any more, and would abort the process.
struct Seat<T: ApplyPending>(Option<Watcher<T>>);

impl<T: ApplyPending> Seat<T> {
    fn at(shared: &Arc<Shared<T>>) -> Self {
        Self(Some(Watcher::new(shared)))
    }

    fn of(interest: Interest, shared: &Arc<Shared<T>>) -> Self {
        Self(Some(Watcher::with_interest(interest, shared)))
    }
}

impl<T: ApplyPending> Deref for Seat<T> {
    type Target = Watcher<T>;

    fn deref(&self) -> &Watcher<T> {
        self.0.as_ref().expect("it is taken by the drop alone")
    }
}

impl<T: ApplyPending> DerefMut for Seat<T> {
    fn deref_mut(&mut self) -> &mut Watcher<T> {
        self.0.as_mut().expect("it is taken by the drop alone")
    }
}

impl<T: ApplyPending> Drop for Seat<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}
