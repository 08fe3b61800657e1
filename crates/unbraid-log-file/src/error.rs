//! Why a file cannot be opened, and what a transaction may report.

use std::io;

use unbraid_log::LogError;

/// Why a log cannot be opened. The messages contain no payload.
///
/// # Examples
///
/// ```
/// use unbraid_log_file::{FileLog, FileLogError, FileOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let opened = FileLog::open("/no/such/folder/streams.log", FileOptions::default()).await;
/// assert!(matches!(opened, Err(FileLogError::Io { .. })));
/// # });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileLogError {
    /// Another process, or another log of this process, uses the file.
    #[error("the file is in use by another process")]
    InUse,
    /// The file is something else than a log. It was not changed.
    #[error("the file is not a log of unbraid")]
    Foreign,
    /// A later version has written the file. It was not changed.
    #[error("the file has format {version}, which this version of unbraid cannot read")]
    UnsupportedVersion {
        /// The format that the file states.
        version: u64,
    },
    /// The file is damaged.
    #[error("the file is damaged: {reason}")]
    Damaged {
        /// What is wrong, without payload.
        reason: String,
    },
    /// The disk has no room for the file.
    #[error("the disk is full")]
    Full,
    /// The file cannot be opened, read or written.
    #[error("the file cannot be used: {reason}")]
    Io {
        /// The operating system's message.
        reason: String,
    },
}

impl FileLogError {
    /// What a call of the log reports while this is the state of its file.
    pub(crate) fn to_log_error(&self) -> LogError {
        LogError::unavailable(self.to_string())
    }
}

impl From<io::Error> for FileLogError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, InvalidData, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full,
            // redb reports a file of another format as this.
            InvalidData => Self::Foreign,
            _ => Self::Io {
                reason: error.to_string(),
            },
        }
    }
}

impl From<redb::Error> for FileLogError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => Self::InUse,
            redb::Error::Io(error) => error.into(),
            redb::Error::UpgradeRequired(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TypeDefinitionChanged { .. } => Self::Foreign,
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => Self::Io {
                reason: error.to_string(),
            },
            other => Self::Damaged {
                reason: other.to_string(),
            },
        }
    }
}

macro_rules! from_redb {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for FileLogError {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )*};
}

from_redb!(
    CommitError,
    CompactionError,
    DatabaseError,
    StorageError,
    TableError,
    TransactionError
);

/// What a record of the file that cannot be decoded says about the file.
impl From<LogError> for FileLogError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::UnsupportedVersion { version } => Self::UnsupportedVersion {
                version: version.into(),
            },
            other => Self::Damaged {
                reason: other.to_string(),
            },
        }
    }
}
