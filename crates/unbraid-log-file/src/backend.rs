//! The file below redb, which can leave it to the operating system when data reaches the disk.

use std::{fs::File, ops::Bound};

use redb::{BackendError, StorageBackend, backends::FileBackend};

use crate::FileSync;

#[derive(Debug)]
pub(crate) struct Backend {
    file: FileBackend,
    sync: FileSync,
}

impl Backend {
    pub(crate) fn new(file: File, sync: FileSync) -> Result<Self, redb::DatabaseError> {
        let file = FileBackend::new(file)?;
        Ok(Self { file, sync })
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> Result<u64, std::io::Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), std::io::Error> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), std::io::Error> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<(), std::io::Error> {
        match self.sync {
            FileSync::EachCommit => self.file.sync_data(),
            FileSync::Never => Ok(()),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), std::io::Error> {
        self.file.write(offset, data)
    }

    fn close(&self) -> Result<(), std::io::Error> {
        let synced = self.file.sync_data();
        // The lock is released in any case.
        self.file.close()?;
        synced
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
