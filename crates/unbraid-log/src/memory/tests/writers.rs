//! Writers of one stream, of which the last is that of its producer.

use super::{log, open};
use crate::{LogStatus, LogStore, Meta};

/// The producer has the first writer until it has the second, before which the log may have been cleared.
#[tokio::test(start_paused = true)]
async fn a_former_writer_does_not_end_the_lease_of_the_one_that_replaced_it() {
    for clears in [false, true] {
        let log = log();
        let (id, former) = open(&log).await;
        if clears {
            log.clear();
        }
        let meta = Meta::new("/v1/completions", 1);
        let writer = log.reopen(&id, &meta).await.unwrap();
        drop(former);
        let status = log.seal_lost(&id).await.unwrap();
        assert!(matches!(status, LogStatus::Running { .. }), "{status:?}");
        drop(writer);
        let status = log.seal_lost(&id).await.unwrap();
        assert!(matches!(status, LogStatus::Ended { .. }), "{status:?}");
    }
}
