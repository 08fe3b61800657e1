//! The task that asks the server whether it is there.

use std::{sync::Weak, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{api::Store, inner::Inner, presence::limit};

/// The longest time between two questions.
const PAUSE: Duration = Duration::from_millis(250);

/// How long the server is asked after a lease was looked at.
const KEPT: Duration = Duration::from_secs(600);

/// Asks the server while leases are looked at, so that a silence is noticed although nobody else asks. Ends with the log.
pub(crate) async fn run(log: Weak<Inner>, mut used: watch::Receiver<Option<Instant>>) {
    loop {
        let last = *used.borrow_and_update();
        if last.is_none_or(|last| last.elapsed() >= KEPT) {
            if used.changed().await.is_err() {
                return;
            }
            continue;
        }
        let Some(inner) = log.upgrade() else {
            return;
        };
        let pause = PAUSE.min(limit(inner.options.lease) / 4);
        // Without waiting for the answer: a slow server is asked as often. The client gives each question up after its
        // timeout, so their number is bounded.
        tokio::spawn(async move {
            let _answer = inner.api.last(Store::Values, inner.names.clock()).await;
        });
        sleep(pause).await;
    }
}
