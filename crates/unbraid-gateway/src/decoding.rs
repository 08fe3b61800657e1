//! What decodes a whole answer for a reader, beside the runtime's own threads.

use std::{num::NonZero, sync::Arc, thread};

use tokio::{
    sync::Semaphore,
    task::{JoinError, spawn_blocking},
};

/// Decodes whole answers, as many at once as there are cores.
///
/// The runtime has hundreds of threads for blocking work. A hundred clients that ask for a long answer at once would get a
/// hundred of them, and the tasks that pass on deltas, and end the process, a hundredth of the processor.
#[derive(Clone)]
pub(crate) struct Decoding {
    turns: Arc<Semaphore>,
}

impl Default for Decoding {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            turns: Arc::new(Semaphore::new(cores)),
        }
    }
}

impl Decoding {
    /// Calls `decode` on a thread of its own once it has its turn. A caller that is dropped before gives its turn to the
    /// next one.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        decode: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // The semaphore is never closed.
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        spawn_blocking(move || {
            let _turn = turn;
            decode()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{
            Arc, Mutex,
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        time::Duration,
    };

    use futures::{FutureExt, future::join_all};

    use super::Decoding;

    #[tokio::test]
    async fn only_as_many_answers_are_decoded_at_once_as_there_are_cores() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let cores = std::thread::available_parallelism().unwrap().get();
        let decoding = Decoding::default();
        let decode = || {
            let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
            std::thread::sleep(Duration::from_millis(1));
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            running
        };
        let all = join_all((0..8 * cores).map(|_| decoding.run(decode))).await;
        assert!(all.into_iter().all(|running| running.unwrap() <= cores));
    }

    #[tokio::test]
    async fn a_caller_that_leaves_and_a_panic_give_their_turns_back() {
        let decoding = Decoding::default();
        let cores = std::thread::available_parallelism().unwrap().get();
        let panics = (0..cores).map(|_| decoding.run(|| panic!("expected")));
        assert!(join_all(panics).await.iter().all(Result::is_err));
        let (open, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        for _ in 0..2 * cores {
            let gate = Arc::clone(&gate);
            let decode = move || gate.lock().unwrap().recv().is_err();
            assert!(pin!(decoding.run(decode)).now_or_never().is_none());
        }
        drop(open);
        assert_eq!(decoding.run(|| 1).await.unwrap(), 1);
    }
}
