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
    sync::shared::{Settle, Watched, Watcher},
    sync::wait_list::Topics,
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
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify();
    }
}

/// Runs a task on this thread. It sleeps until it is woken, or is woken once for no reason.
fn run<F: Future>(task: F) -> F::Output {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => bell.0.wait(),
        }
    }
}

/// A watcher that is forgotten when a scene fails: then the checker gives no locks any more, and would abort the process.
struct Seat<T: Settle>(Option<Watcher<T>>);

impl<T: Settle> Seat<T> {
    fn at(watched: &Arc<Watched<T>>) -> Self {
        Self(Some(Watcher::new(watched)))
    }

    fn of(topics: Topics, watched: &Arc<Watched<T>>) -> Self {
        Self(Some(Watcher::of(topics, watched)))
    }
}

impl<T: Settle> Deref for Seat<T> {
    type Target = Watcher<T>;

    fn deref(&self) -> &Watcher<T> {
        self.0.as_ref().expect("it is taken by the drop alone")
    }
}

impl<T: Settle> DerefMut for Seat<T> {
    fn deref_mut(&mut self) -> &mut Watcher<T> {
        self.0.as_mut().expect("it is taken by the drop alone")
    }
}

impl<T: Settle> Drop for Seat<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}
