//! The models, and what they share: the checker and a minimal executor.

mod ends;
mod requests;
mod watched;

use std::{
    ops::{Deref, DerefMut},
    pin::pin,
    sync::atomic::AtomicUsize,
    task::{Context, Poll, Wake, Waker},
};

use loom::{model::Builder, sync::Notify};

use crate::{
    sync::{Arc, Ordering},
    waiting::Topics,
    watched::{Settle, Watched, Watcher},
};

/// Runs a model in every interleaving of its threads.
fn check(scene: impl Fn() + Send + Sync + 'static) {
    play(None, scene);
}

/// Like [`check`], for models with too many interleavings: only those with at most three preemptions, or with the number
/// in `LOOM_MAX_PREEMPTIONS`.
fn check_most(scene: impl Fn() + Send + Sync + 'static) {
    play(Some(3), scene);
}

fn play(preemptions: Option<usize>, scene: impl Fn() + Send + Sync + 'static) {
    let played = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&played);
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions.map(|limit| builder.preemption_bound.unwrap_or(limit));
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    println!("{} interleavings", played.load(Ordering::Relaxed));
}

/// A waker of the minimal executor.
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

/// Runs a task on this thread, which sleeps until the task is woken. Loom also models one spurious wake-up.
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

/// A watcher that is leaked if a model fails. Its drop would take a lock, which aborts the process after a failure.
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
        self.0.as_ref().expect("only the drop takes it")
    }
}

impl<T: Settle> DerefMut for Seat<T> {
    fn deref_mut(&mut self) -> &mut Watcher<T> {
        self.0.as_mut().expect("only the drop takes it")
    }
}

impl<T: Settle> Drop for Seat<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}
