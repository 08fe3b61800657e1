//! Work that takes long, on a thread that may block: the decoding of a large event, the counting of tokens.
//!
//! The value that is worked on goes there and comes back, whatever happens: after a panic, and also if the thread never
//! begins, because the runtime shuts down or all of its blocking threads are taken. Those may wait for this very work, so
//! that waiting for one of them without a bound could last for ever.

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

/// Bytes of an event from which on it is decoded apart: so few that these and one portion more take a few milliseconds at
/// worst, and so many that only images and audio come near.
const LARGE: usize = 128 * 1024;

/// How long a thread may take to begin; a new one takes less than a tenth of a millisecond.
const GRACE: Duration = Duration::from_millis(20);

/// Turns of the waiting task after which the thread should have begun, for a clock that stands still.
const TURNS: usize = 1_000_000;

/// Whether so much is kept of the event under way that its end should be decoded apart.
#[inline]
pub(crate) fn is_large(intake: &UpdateReader) -> bool {
    intake.buffered_bytes() >= LARGE
}

/// Whether these bytes may end a large event. All others are only added to it, which is quick.
#[inline]
pub(crate) fn may_end_large(intake: &UpdateReader, input: &[u8]) -> bool {
    is_large(intake) && intake.may_end(input)
}

/// How work went.
#[derive(Debug)]
pub(crate) struct Done<T, R> {
    /// What was worked on, also after a panic.
    pub(crate) value: T,
    /// What came of it, or its panic.
    pub(crate) result: thread::Result<R>,
    /// Whether no thread took it in time, so that it was done here.
    pub(crate) here: bool,
}

struct Job<T, W, R> {
    value: T,
    work: W,
    back: oneshot::Sender<(T, thread::Result<R>)>,
}

impl<T, R, W: FnOnce(&mut T) -> R> Job<T, W, R> {
    fn run(self) {
        let Self {
            mut value,
            work,
            back,
        } = self;
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut value)));
        let _nobody_waits = back.send((value, result));
    }
}

/// A job that is taken once: by the thread, or back by the task. It is dropped with the task if none has taken it.
struct Slot<J>(Arc<Mutex<Option<J>>>);

impl<J> Slot<J> {
    fn take(&self) -> Option<J> {
        self.lock().take()
    }

    fn is_taken(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<J>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives other tasks their turn until the job is taken, within bounds.
    async fn wait(&self) {
        let since = Instant::now();
        for _ in 0..TURNS {
            if self.is_taken() || since.elapsed() >= GRACE {
                return;
            }
            turn().await;
        }
    }
}

/// Does the work on a thread of the runtime that may block. Without a runtime it is done here.
///
/// If the future is dropped, a job that has begun goes on to its end, and drops the value.
pub(crate) async fn apart<T, R, W>(value: T, work: W) -> Done<T, R>
where
    T: Send + 'static,
    R: Send + 'static,
    W: FnOnce(&mut T) -> R + Send + 'static,
{
    #[cfg(test)]
    crate::tests::large::count_job();
    let (back, done) = oneshot::channel();
    let slot = Slot(Arc::new(Mutex::new(Some(Job { value, work, back }))));
    if begin(&slot, Job::run) {
        slot.wait().await;
    }
    let left = slot.take();
    let here = left.is_some();
    if let Some(job) = left {
        job.run();
    }
    match done.await {
        Ok((value, result)) => Done {
            value,
            result,
            here,
        },
        // A job that runs sends; this one was dropped with a thread that did not unwind.
        Err(lost) => resume_unwind(Box::new(lost)),
    }
}

/// Asks the runtime for a thread; false if there can be none.
fn begin<J: Send + 'static>(slot: &Slot<J>, run: fn(J)) -> bool {
    let Ok(runtime) = Handle::try_current() else {
        return false;
    };
    let shared = Arc::downgrade(&slot.0);
    let job = move || {
        // Upgraded only here, so that a job which has not begun is dropped with the task that asked for it.
        let job = shared.upgrade().and_then(|shared| {
            let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take()
        });
        job.map(run);
    };
    // It panics if the system has no thread to give.
    catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(job))).is_ok()
}

/// Gives other tasks their turn, in any runtime.
pub(crate) async fn turn() {
    let mut had = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut had, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
