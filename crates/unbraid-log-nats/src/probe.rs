//! The task that asks the server whether it stores values.

use std::{sync::Weak, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    api::Store,
    entry::clock_draft,
    inner::{Inner, within},
    presence::limit,
};

/// The longest time between two questions.
const PAUSE: Duration = Duration::from_millis(250);

/// How long the server is asked after a lease was looked at.
const KEPT: Duration = Duration::from_secs(600);

/// Stores a value again and again while leases are looked at, so that a silence is noticed although nobody else stores any. Ends
/// with the log.
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
        // Without waiting for the answer: a slow server is asked as often. Each question is given up in time, so their number
        // is bounded.
        tokio::spawn(async move {
            let value = clock_draft(inner.names.clock());
            let stored = async { Ok(inner.api.publish_anew(Store::Values, value).await?) };
            let _stored = within(stored).await;
        });
        sleep(pause).await;
    }
}
