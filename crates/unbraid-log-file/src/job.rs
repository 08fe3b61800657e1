//! What the handles of a log request of its thread.

use std::sync::Arc;

use tokio::sync::oneshot;
use unbraid_log::{
    Appended, Claim, ClaimKey, LogError, LogStatus, Meta, Record, Seq, StreamEnd, StreamId,
};

use crate::{FileLogError, shared::Running};

/// Where an answer goes. Dropped, it says that the file failed.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, LogError>>;

/// A request that one transaction carries out together with others.
pub(crate) enum Job {
    Open {
        id: StreamId,
        meta: Meta,
        /// Whether its only caller may have opened it before.
        again: bool,
        reply: Reply<Arc<Running>>,
    },
    Append {
        stream: Arc<Running>,
        record: Record,
        reply: Reply<Appended>,
    },
    Seal {
        stream: Arc<Running>,
        end: StreamEnd,
        /// The last event that its writer has appended.
        appended: Seq,
        reply: Reply<()>,
    },
    SealLost {
        id: StreamId,
        reply: Reply<LogStatus>,
    },
    Erase {
        id: StreamId,
        reply: Reply<()>,
    },
    Claim {
        key: ClaimKey,
        id: StreamId,
        reply: Reply<Claim>,
    },
    Release {
        key: ClaimKey,
        id: StreamId,
        reply: Reply<()>,
    },
    /// Not a transaction.
    Control(Control),
}

pub(crate) enum Control {
    /// Answers at once.
    Barrier(oneshot::Sender<()>),
    Open(oneshot::Sender<Result<(), FileLogError>>),
    Close(oneshot::Sender<Result<(), FileLogError>>),
    Compact(oneshot::Sender<Result<(), FileLogError>>),
}

impl Job {
    /// The stream whose journal it reads, which may have one such job in a transaction.
    pub(crate) fn stream(&self) -> Option<u64> {
        match self {
            Self::Append { stream, .. } | Self::Seal { stream, .. } => Some(stream.number()),
            Self::Open { .. }
            | Self::SealLost { .. }
            | Self::Erase { .. }
            | Self::Claim { .. }
            | Self::Release { .. }
            | Self::Control(_) => None,
        }
    }

    /// The stream that it opens, which may be opened once in a transaction.
    pub(crate) fn opens(&self) -> Option<&StreamId> {
        match self {
            Self::Open { id, .. } => Some(id),
            Self::Append { .. }
            | Self::Seal { .. }
            | Self::SealLost { .. }
            | Self::Erase { .. }
            | Self::Claim { .. }
            | Self::Release { .. }
            | Self::Control(_) => None,
        }
    }

    /// Whether it may change a stream that another job of the same transaction concerns.
    pub(crate) fn is_exclusive(&self) -> bool {
        match self {
            Self::SealLost { .. } | Self::Erase { .. } | Self::Control(_) => true,
            Self::Open { .. }
            | Self::Append { .. }
            | Self::Seal { .. }
            | Self::Claim { .. }
            | Self::Release { .. } => false,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Append { record, .. } => record.encoded().len(),
            Self::Seal { stream, .. } => stream.journal().bytes(),
            Self::Open { .. }
            | Self::SealLost { .. }
            | Self::Erase { .. }
            | Self::Claim { .. }
            | Self::Release { .. }
            | Self::Control(_) => 256,
        }
    }
}

/// What becomes visible once the transaction is committed. If it is not, dropping this reports the failure.
pub(crate) enum Effect {
    Opened(Arc<Running>, Reply<Arc<Running>>),
    Appended(Arc<Running>, Record, Reply<Appended>),
    Ended {
        stream: Arc<Running>,
        end: Result<StreamEnd, LogError>,
        then: Box<Self>,
    },
    Answer(Box<dyn FnOnce() + Send>),
    None,
}

impl Effect {
    /// Answers a request that has changed nothing else.
    pub(crate) fn answer<T: Send + 'static>(reply: Reply<T>, result: Result<T, LogError>) -> Self {
        Self::Answer(Box::new(move || answer(reply, result)))
    }
}

/// Answers, if the caller still waits.
pub(crate) fn answer<T>(reply: Reply<T>, result: Result<T, LogError>) {
    let _is_awaited = reply.send(result);
}
