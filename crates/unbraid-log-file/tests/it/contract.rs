use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt};
use tempfile::TempDir;
use unbraid_log::{
    LogStore,
    contract::{Engine, run},
};
use unbraid_log_file::{FileLog, FileOptions, FileSync};

use crate::open_log;

const TTL: Duration = Duration::from_secs(4);
const LEASE: Duration = Duration::from_secs(1);

/// A file that is closed and opened, or deleted.
struct File {
    log: FileLog,
    path: PathBuf,
    _folder: TempDir,
}

impl File {
    async fn new(sync: FileSync) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("streams.log");
        let options = FileOptions::default()
            .with_ttl(TTL)
            .with_lease(LEASE)
            .with_claim_pending(2 * LEASE);
        Self {
            log: open_log(&path, options.with_sync(sync)).await,
            path,
            _folder: folder,
        }
    }
}

impl Engine for File {
    fn gateway(&self) -> BoxFuture<'_, Arc<dyn LogStore>> {
        let log: Arc<dyn LogStore> = Arc::new(self.log.clone());
        async { log }.boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async { self.log.close().await.unwrap() }.boxed()
    }

    fn start(&self) -> BoxFuture<'_, ()> {
        async { self.log.open_file().await.unwrap() }.boxed()
    }

    fn empty(&self) -> BoxFuture<'_, ()> {
        async {
            self.log.close().await.unwrap();
            std::fs::remove_file(&self.path).unwrap();
            self.log.open_file().await.unwrap();
        }
        .boxed()
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    fn lease(&self) -> Duration {
        LEASE
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_in_a_file_passes() {
    run(&File::new(FileSync::EachCommit).await).await;
}

#[tokio::test]
async fn the_log_in_a_file_that_is_never_synced_passes_on_one_thread() {
    run(&File::new(FileSync::Never).await).await;
}
