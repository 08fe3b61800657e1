//! The writers of the log.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tokio::time::Instant;

use super::{Stream, log::TestLog};
use crate::{Appended, LogError, LogStatus, LogWriter, Meta, Record, Seq, StreamEnd, StreamId};

/// The writer of one stream.
pub(super) struct TestWriter {
    log: TestLog,
    id: StreamId,
    /// The last event whose append was acknowledged.
    appended: Seq,
}

impl TestWriter {
    pub(super) fn new(log: TestLog, id: StreamId) -> Self {
        Self {
            log,
            id,
            appended: Seq::START,
        }
    }
}

impl LogWriter for TestWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        let (id, record) = (self.id.clone(), record.clone());
        let last = record.last();
        let (owner, meta_of) = (self.log.number(), self.id.clone());
        let appended = self.log.call(move |state, lease| {
            // The writer of a stream that the engine has lost creates it again.
            let stream = state.streams.entry(id).or_insert_with(|| {
                let meta = Arc::new(Meta::new(meta_of.as_str(), 1));
                Stream::new(meta, owner, lease)
            });
            append(stream, record)
        });
        async move {
            let result = appended.await;
            if result.is_ok() {
                self.appended = self.appended.max(last);
            }
            result
        }
        .boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        let id = self.id.clone();
        self.log.call(move |state, lease| {
            let stream = state.streams.get_mut(&id).ok_or(LogError::Unknown)?;
            match stream.status() {
                LogStatus::Ended { .. } => Err(LogError::Sealed),
                LogStatus::Expired { .. } => Err(LogError::Expired),
                _ => {
                    stream.lease_until = Instant::now() + lease;
                    Ok(())
                }
            }
        })
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        let (id, end, appended) = (self.id.clone(), end.clone(), self.appended);
        self.log.call(move |state, _| {
            let stream = state.streams.get_mut(&id).ok_or(LogError::Unknown)?;
            if stream.is_erased {
                return Err(LogError::Expired);
            }
            let tail = stream.tail();
            if stream.end.is_none() && tail < appended {
                return Err(LogError::Gap {
                    tail,
                    first: appended,
                });
            }
            stream.end.get_or_insert(end);
            Ok(())
        })
    }
}

fn append(stream: &mut Stream, record: Record) -> Result<Appended, LogError> {
    if stream.is_erased {
        return Err(LogError::Expired);
    }
    let tail = stream.tail();
    if record.first() <= tail {
        return if stream.records.contains(&record) {
            Ok(Appended::Duplicate)
        } else {
            Err(LogError::Fenced {
                first: record.first(),
            })
        };
    }
    if stream.end.is_some() {
        return Err(LogError::Sealed);
    }
    if record.first() > tail.next() {
        return Err(LogError::Gap {
            tail,
            first: record.first(),
        });
    }
    stream.records.push(record);
    Ok(Appended::New)
}
