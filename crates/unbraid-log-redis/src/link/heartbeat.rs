//! The task that asks the server although nobody else does.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Link, lock};
use crate::{keys::Keys, script::Request, server};

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
            self.ask_for_the_time().await;
        }
    }

    /// By its clock the server lets leases expire. A user may lack the permission.
    async fn ask_for_the_time(&self) {
        let sent = Instant::now();
        let info = self.call(&Request::command("INFO").arg("server")).await;
        if let Some(micros) = info.ok().as_ref().and_then(server::time) {
            lock(&self.slots).contact.note_clock(micros, sent);
        }
    }
}
