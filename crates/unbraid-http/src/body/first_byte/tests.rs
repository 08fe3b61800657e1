use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tokio::time::{Instant, sleep};
use unbraid::{BoxError, StreamError, TimedOut, Timeout};

use super::FirstByte;

const TIMEOUT: Duration = Duration::from_secs(5);

fn body(bytes: impl Stream<Item = &'static str> + Send + 'static) -> FirstByte {
    let bytes = bytes.map(|text| Ok::<_, BoxError>(Bytes::from(text)));
    let timed_out = TimedOut::new(Timeout::FirstByte, TIMEOUT);
    FirstByte::new(bytes.boxed(), Some(timed_out))
}

async fn check_timeout(mut body: FirstByte) {
    let started = Instant::now();
    let error = loop {
        match body.next().await.unwrap() {
            Ok(bytes) => assert!(bytes.is_empty()),
            Err(error) => break error,
        }
    };
    assert_eq!(started.elapsed(), TIMEOUT);
    let error = error.downcast::<StreamError>().unwrap();
    assert_eq!(error.to_string(), "first-byte timeout after 5s");
    assert!(body.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_body_without_a_byte_times_out() {
    check_timeout(body(stream::pending())).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_read_is_not_a_byte() {
    let one = stream::iter([""]).chain(stream::pending());
    check_timeout(body(one)).await;
    let many = stream::repeat("").then(|empty| async move {
        sleep(TIMEOUT / 100).await;
        empty
    });
    check_timeout(body(many)).await;
}

#[tokio::test(start_paused = true)]
async fn after_its_first_byte_a_body_may_be_silent() {
    let late = stream::once(async {
        sleep(TIMEOUT - Duration::from_millis(1)).await;
        "a"
    });
    let silent = stream::once(async {
        sleep(10 * TIMEOUT).await;
        "b"
    });
    let body = body(late.chain(silent));
    let read: Vec<Bytes> = body.map(Result::unwrap).collect().await;
    assert_eq!(read.concat(), b"ab");
}

#[tokio::test(start_paused = true)]
async fn bytes_that_arrived_in_time_count_even_if_read_late() {
    let mut body = body(stream::iter(["a"]));
    sleep(2 * TIMEOUT).await;
    assert_eq!(body.next().await.unwrap().unwrap(), "a");
}
