//! The task that asks the server although nobody else does.

use std::time::Duration;

use tokio::time::sleep;

use super::Link;
use crate::{keys::Keys, script::Request};

/// The time between two questions. With a slow answer, it is still well below the silence that counts as an outage.
const PERIOD: Duration = Duration::from_millis(400);

impl Link {
    /// Asks until the task is aborted. Without it, nothing would be known of a time in which this gateway asked nothing, or only
    /// read: the server may have been suspended or have refused writes, and producers could not renew their leases.
    pub(crate) async fn keep_in_contact(self, keys: Keys) {
        // It writes nothing, because the key never exists. But it is refused where a renewal would be.
        let question = Request::command("PEXPIRE").arg(keys.present()).arg(1);
        loop {
            sleep(PERIOD).await;
            // The answer is noted, whatever it is.
            let _answer = self.call(&question).await;
        }
    }
}
