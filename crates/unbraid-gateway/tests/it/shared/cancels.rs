//! Cancels that the log does not confirm in time.

use std::time::Duration;

use http::Method;
use serde_json::json;
use tokio::time::Instant;
use unbraid_log::internal::scripted::Fault;

use super::{path, patient_pair, silent};
use crate::support::{Json, eventually, send};

/// The producer and the log have one second together.
#[tokio::test]
async fn a_cancel_that_the_log_confirms_late_is_answered_within_a_second() {
    let pair = patient_pair(silent().await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("\"b\"").await;
    pair.logs[0].set(Fault::Slow(Duration::from_secs(4)));
    let started = Instant::now();
    let response = send(pair.a.method(Method::DELETE, &path(&id, "/choices/1"))).await;
    let elapsed = started.elapsed();
    assert_eq!(response.status(), 202);
    assert_eq!(response.value().await["state"], json!("cancelling"));
    assert!(elapsed < Duration::from_millis(1900), "{elapsed:?}");
    pair.logs[0].set(None);
    eventually("it is cancelled", async || {
        pair.b.status(&id).await["choices"][1]["end"] == "cancelled"
    })
    .await;
}
