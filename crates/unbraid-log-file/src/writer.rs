//! The writer of one stream of a log in a file.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use unbraid_log::{Appended, LogError, LogWriter, Record, StreamEnd};

use crate::{job::Job, log::Inner, shared::Running};

pub(crate) struct FileWriter {
    log: Arc<Inner>,
    stream: Arc<Running>,
}

impl FileWriter {
    pub(crate) fn new(log: Arc<Inner>, stream: Arc<Running>) -> Self {
        Self { log, stream }
    }
}

impl LogWriter for FileWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        let (stream, record) = (Arc::clone(&self.stream), record.clone());
        self.log
            .call(|reply| Job::Append {
                stream,
                record,
                reply,
            })
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
        self.log
            .call(|reply| Job::Seal { stream, end, reply })
            .boxed()
    }
}
