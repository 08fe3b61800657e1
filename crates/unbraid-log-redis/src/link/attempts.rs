//! Several attempts to connect at once.

use std::{pin::pin, time::Duration};

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, interval_at, sleep};

use super::CONNECT;
use crate::error::Failure;

/// After this time without a result, one more attempt begins.
const NEXT: Duration = Duration::from_millis(500);

/// Returns the first connection of attempts that begin one after the other.
///
/// A packet that is lost, or a network that was cut while an attempt began, can leave that attempt without an answer although
/// a new one would have it at once. An attempt over a slow network goes on meanwhile.
///
/// # Errors
///
/// The last error once no attempt runs any more, or [`Failure::Timeout`] after [`CONNECT`].
pub(super) async fn first<T, F>(connect: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut attempts = FuturesUnordered::from_iter([connect()]);
    let mut begin = interval_at(Instant::now() + NEXT, NEXT);
    let mut end = pin!(sleep(CONNECT));
    loop {
        tokio::select! {
            Some(result) = attempts.next() => match result {
                Err(_) if !attempts.is_empty() => {}
                result => return result,
            },
            _ = begin.tick() => attempts.push(connect()),
            () = &mut end => return Err(Failure::Timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending};

    use super::*;

    /// Calls `attempt` with the number of each attempt, and returns the result and when it came.
    async fn run<F>(attempt: impl Fn(u32) -> F) -> (Result<u32, Failure>, Duration)
    where
        F: Future<Output = Result<u32, Failure>>,
    {
        let (started, begun) = (Instant::now(), Cell::new(0));
        let result = first(|| {
            begun.set(begun.get() + 1);
            attempt(begun.get())
        });
        (result.await, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_without_an_answer_does_not_delay_the_next_one() {
        let (result, after) = run(|number| async move {
            match number {
                1 | 2 => pending().await,
                _ => Ok(number),
            }
        })
        .await;
        assert_eq!(result.unwrap(), 3);
        assert_eq!(after, 2 * NEXT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_network_has_the_whole_time() {
        let slow = CONNECT - Duration::from_millis(1);
        let (result, after) = run(|number| async move {
            sleep(slow).await;
            Ok(number)
        })
        .await;
        assert_eq!((result.unwrap(), after), (1, slow));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_reported_at_once_unless_another_attempt_runs() {
        let refused = || Failure::Connection("refused".to_owned());
        let (result, after) = run(|_| async { Err(refused()) }).await;
        assert!(matches!(result, Err(Failure::Connection(_))));
        assert_eq!(after, Duration::ZERO);
        let (result, _) = run(|number| async move {
            match number {
                1 => {
                    sleep(NEXT + Duration::from_millis(1)).await;
                    Err(Failure::Connection("reset".to_owned()))
                }
                _ => {
                    sleep(NEXT / 2).await;
                    Ok(number)
                }
            }
        })
        .await;
        assert_eq!(result.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_without_an_answer_end() {
        let (result, after) = run(|_| pending()).await;
        assert!(matches!(result, Err(Failure::Timeout)));
        assert_eq!(after, CONNECT);
    }
}
