//! The writer of one stream of a log in a file.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use unbraid_log::{Appended, LogError, LogWriter, Record, Seq, StreamEnd};

use crate::{job::Job, log::Inner, shared::Running};

pub(crate) struct FileWriter {
    log: Arc<Inner>,
    stream: Arc<Running>,
    /// The last event that it has appended.
    appended: Seq,
}

impl FileWriter {
    pub(crate) fn new(log: Arc<Inner>, stream: Arc<Running>) -> Self {
        Self {
            log,
            stream,
            appended: Seq::START,
        }
    }
}

impl LogWriter for FileWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        let (stream, last) = (Arc::clone(&self.stream), record.last());
        let record = record.clone();
        async move {
            let append = |reply| Job::Append {
                stream,
                record,
                reply,
            };
            let appended = self.log.call(append).await?;
            self.appended = self.appended.max(last);
            Ok(appended)
        }
        .boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async {
            self.log.check_open()?;
            self.stream.renew(self.log.shared.options.lease)
        }
        .boxed()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        let (stream, end) = (Arc::clone(&self.stream), end.clone());
        let appended = self.appended;
        self.log
            .call(move |reply| Job::Seal {
                stream,
                end,
                appended,
                reply,
            })
            .boxed()
    }
}
