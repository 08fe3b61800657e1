//! Long work on a thread that may block: decoding a large event, counting tokens.
//!
//! The value that is worked on always comes back: after a panic, and also if the thread never starts because the runtime
//! shuts down or all of its blocking threads are taken. Those threads may be waiting for this very work, so the wait for
//! one of them has a bound; after it, the work runs on the task itself.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    thread,
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot, time::Instant};
use unbraid_core::internal::UpdateReader;

/// The size from which an event is decoded on a blocking thread. It is so small that this many bytes and one portion more
/// take a few milliseconds at worst, and so large that only images and audio reach it.
const LARGE: usize = 128 * 1024;

/// How long a thread may take to start. A new thread takes less than a tenth of a millisecond.
const GRACE: Duration = Duration::from_millis(20);

/// How often the waiting task yields before the thread should have started, for a clock that stands still.
const YIELDS: usize = 1_000_000;

/// Whether so much of the current event is buffered that its end should be decoded on a blocking thread.
#[inline]
pub(crate) fn is_large(reader: &UpdateReader) -> bool {
    reader.buffered_bytes() >= LARGE
}

/// Whether these bytes may end a large event. All others are only added to it, which is quick.
#[inline]
pub(crate) fn may_end_large(reader: &UpdateReader, input: &[u8]) -> bool {
    is_large(reader) && reader.may_end(input)
}

/// The result of work.
#[derive(Debug)]
pub(crate) struct Completed<T, R> {
    /// The value that was worked on, also after a panic.
    pub(crate) value: T,
    /// What the work returned, or its panic.
    pub(crate) result: thread::Result<R>,
    /// Whether no thread took the work in time, so that it ran on the task itself.
    pub(crate) ran_inline: bool,
}

struct Job<T, W, R> {
    value: T,
    work: W,
    reply: oneshot::Sender<(T, thread::Result<R>)>,
}

impl<T, R, W: FnOnce(&mut T) -> R> Job<T, W, R> {
    fn run(self) {
        let Self {
            mut value,
            work,
            reply,
        } = self;
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut value)));
        let _receiver_dropped = reply.send((value, result));
    }
}

/// A job that is taken once: by the thread, or back by the task. If nobody has taken it, it is dropped with the task.
struct JobSlot<J>(Arc<Mutex<Option<J>>>);

impl<J> JobSlot<J> {
    fn take(&self) -> Option<J> {
        self.lock().take()
    }

    fn is_taken(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<J>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Yields to other tasks until the job is taken, within bounds.
    async fn wait_until_taken(&self) {
        let since = Instant::now();
        for _ in 0..YIELDS {
            if self.is_taken() || since.elapsed() >= GRACE {
                return;
            }
            yield_once().await;
        }
    }
}

/// Runs work on a blocking thread of the runtime. Without a runtime it runs on the task itself.
///
/// If the future is dropped, a job that has started runs to its end and drops the value.
pub(crate) async fn run_blocking<T, R, W>(value: T, work: W) -> Completed<T, R>
where
    T: Send + 'static,
    R: Send + 'static,
    W: FnOnce(&mut T) -> R + Send + 'static,
{
    #[cfg(test)]
    crate::tests::large::count_job();
    let (reply, received) = oneshot::channel();
    let job = Job { value, work, reply };
    let slot = JobSlot(Arc::new(Mutex::new(Some(job))));
    if request_thread(&slot, Job::run) {
        slot.wait_until_taken().await;
    }
    let taken_back = slot.take();
    let ran_inline = taken_back.is_some();
    if let Some(job) = taken_back {
        job.run();
    }
    match received.await {
        Ok((value, result)) => Completed {
            value,
            result,
            ran_inline,
        },
        // A job that runs always replies; this one was dropped with a thread that did not unwind.
        Err(lost) => resume_unwind(Box::new(lost)),
    }
}

/// Asks the runtime for a thread; returns false if there can be none.
fn request_thread<J: Send + 'static>(slot: &JobSlot<J>, run: fn(J)) -> bool {
    let Ok(runtime) = Handle::try_current() else {
        return false;
    };
    let shared = Arc::downgrade(&slot.0);
    let job = move || {
        // The slot is upgraded only here, so that a job which has not started is dropped with the task that made it.
        let job = shared.upgrade().and_then(|shared| {
            let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take()
        });
        job.map(run);
    };
    // `spawn_blocking` panics if the system has no thread to give.
    catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(job))).is_ok()
}

/// Yields to other tasks once, in any runtime.
pub(crate) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
