//! Drains of connections that do what a test says.

use std::{future::pending, sync::OnceLock, time::Duration};

use hyper::Version;
use tokio::time::{Instant, sleep};

use super::*;
use crate::server::activity::ActiveRequest;

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
        let (_drain, drained) = watch::channel(true);
        let shutdown = Shutdown::new(is_http2, Arc::clone(&self.activity), drained);
        let announce = |_: Pin<&mut _>| {
            self.announced.set(self.started.elapsed()).unwrap();
        };
        drive(Box::pin(connection), announce, shutdown).await;
        self.started.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_goaway_follows_a_moment_after_the_answers() {
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
async fn a_connection_without_a_request_is_closed_soon() {
    for is_http2 in [true, false] {
        let served = Drained::new().serve(is_http2, pending()).await;
        assert_eq!(served, CLOSE_GRACE);
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
