//! Drains of connections that do what a test says.

use std::{future::pending, sync::OnceLock, time::Duration};

use hyper::Version;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::server::activity::ActiveRequest;

const MOMENT: Duration = Duration::from_millis(100);

/// A connection whose gateway drains from the start.
struct Drained {
    activity: Arc<Activity>,
    started: Instant,
    /// After how long it takes no further requests.
    announced: OnceLock<Duration>,
}

impl Drained {
    fn new() -> Self {
        Self {
            activity: Arc::default(),
            started: Instant::now(),
            announced: OnceLock::new(),
        }
    }

    fn request(&self, version: Version) -> ActiveRequest {
        ActiveRequest::new(&self.activity, version)
    }

    /// Serves a connection until it is closed. Returns how long that took.
    async fn serve(&self, is_http2: bool, connection: impl Future<Output = ()>) -> Duration {
        let (drain, drained) = watch::channel(false);
        // Not ready at the first poll, so that the connection has to be woken.
        let begins = async {
            tokio::task::yield_now().await;
            drain.send(true).unwrap();
        };
        let shutdown = Shutdown::new(is_http2, Arc::clone(&self.activity));
        let announce = |_: &mut _| {
            self.announced.set(self.started.elapsed()).unwrap();
        };
        let connection = Box::pin(connection);
        let served = Served::new(connection, announce, shutdown, drained);
        tokio::join!(served, begins);
        self.started.elapsed()
    }

    /// Takes a request each moment, and answers it during the next one, so that there is always one.
    async fn is_busy(&self) {
        loop {
            let request = self.request(Version::HTTP_2);
            sleep(MOMENT).await;
            let _next = self.request(Version::HTTP_2);
            drop(request);
            sleep(MOMENT).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_goaway_follows_a_moment_after_the_answers_of_before_the_drain() {
    let drained = Drained::new();
    let early = drained.request(Version::HTTP_2);
    let answer = async {
        sleep(Duration::from_secs(20)).await;
        drop(early);
        pending().await
    };
    let served = drained.serve(true, answer).await;
    let announced = *drained.announced.get().unwrap();
    assert_eq!(announced, Duration::from_secs(20) + GOAWAY_DELAY);
    assert_eq!(served, Duration::from_secs(20) + LAST_WRITES);
}

#[tokio::test(start_paused = true)]
async fn a_goaway_does_not_wait_for_requests_that_follow_without_a_pause() {
    let drained = Drained::new();
    let early = drained.request(Version::HTTP_2);
    let connection = async {
        let answer = async {
            sleep(Duration::from_secs(3)).await;
            drop(early);
        };
        tokio::join!(answer, drained.is_busy());
    };
    let served = timeout(Duration::from_secs(10), drained.serve(true, connection)).await;
    assert!(served.is_err(), "the requests are answered");
    let announced = *drained.announced.get().unwrap();
    assert_eq!(announced, Duration::from_secs(3) + GOAWAY_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn requests_of_before_the_drain_are_waited_for_on_a_busy_connection() {
    let drained = Drained::new();
    let _early = drained.request(Version::HTTP_2);
    let connection = drained.serve(true, drained.is_busy());
    assert!(timeout(Duration::from_secs(30), connection).await.is_err());
    assert_eq!(drained.announced.get(), None);
}

#[tokio::test(start_paused = true)]
async fn the_last_answers_are_written_to_a_slow_reader() {
    let drained = Drained::new();
    drop(drained.request(Version::HTTP_2));
    let writes = async {
        for _ in 0..8 {
            sleep(Duration::from_secs(3)).await;
            drained.activity.has_written();
        }
        pending().await
    };
    let served = drained.serve(true, writes).await;
    assert_eq!(served, Duration::from_secs(24) + LAST_WRITES);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_of_an_answer_that_ended_before_the_drain_has_as_long() {
    for is_blocked in [true, false] {
        let drained = Drained::new();
        drop(drained.request(Version::HTTP_2));
        sleep(LAST_WRITES).await;
        drained.activity.set_blocked(is_blocked);
        let served = drained.serve(true, pending()).await;
        let grace = if is_blocked { LAST_WRITES } else { CLOSE_GRACE };
        assert_eq!(served, LAST_WRITES + grace);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_closed_soon() {
    for is_http2 in [true, false] {
        // Frames of its own may be written.
        let drained = Drained::new();
        let pings = async {
            loop {
                sleep(MOMENT).await;
                drained.activity.has_written();
            }
        };
        assert_eq!(drained.serve(is_http2, pings).await, CLOSE_GRACE);
    }
}

/// The rest of its head arrives during the grace, and the request is answered before the connection is polled again.
#[tokio::test(start_paused = true)]
async fn an_http1_request_that_is_answered_at_once_ends_the_grace() {
    let drained = Drained::new();
    let connection = async {
        sleep(CLOSE_GRACE / 2).await;
        drop(drained.request(Version::HTTP_11));
        // Until the client has read the answer.
        sleep(CLOSE_GRACE * 4).await;
    };
    let served = drained.serve(false, connection).await;
    assert_eq!(served, CLOSE_GRACE / 2 + CLOSE_GRACE * 4);
}
