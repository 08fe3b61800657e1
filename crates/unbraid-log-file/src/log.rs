//! `FileLog`: the handle of a log in a file.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{SyncSender, sync_channel},
    },
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use tokio::{sync::oneshot, time::timeout};
use unbraid_log::{
    Claim, ClaimKey, Command, LogError, LogStatus, LogStore, LogWriter, Meta, Record, Seq,
    StreamId, internal::CommandQueue,
};

use crate::{
    FileLogError, FileOptions,
    job::{Control, Job, Reply},
    read::{ANSWER, read_ended, read_file, row},
    shared::Shared,
    space::Space,
    worker::Worker,
    writer::FileWriter,
};

/// Requests that wait for the thread. Each stream has one append in flight, so more than this means that the disk stands still.
const MAX_JOBS: usize = 65_536;

/// A hundred years.
const FAR: std::time::Duration = std::time::Duration::from_secs(3600 * 24 * 36_500);

/// A log in one file, for one process: streams survive its restart, and its death.
///
/// What was acknowledged is in the file. The streams that a process leaves running are sealed as
/// [`ProducerLost`](unbraid_log::End::ProducerLost) when the file is opened again. The file is locked: another process that
/// opens it gets [`FileLogError::InUse`].
///
/// One thread writes, and groups the appends of all streams into one transaction. Streams that run are read from memory,
/// those that have ended from the file, and no reader waits for the thread. `Clone` gives another handle of the same log.
/// When the last handle or writer is dropped, the thread closes the file; [`close`](Self::close) waits for that.
///
/// # Examples
///
/// ```
/// use unbraid_log::{End, LogStatus, LogStore, Meta, StreamEnd, StreamId};
/// use unbraid_log_file::{FileLog, FileOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("streams.log");
/// let log = FileLog::open(&path, FileOptions::default()).await?;
/// let id = StreamId::random()?;
/// let mut writer = log.open(&id, &Meta::new("/v1/completions", 1)).await?;
/// writer.seal(&StreamEnd::new(End::Finished)).await?;
/// log.close().await?;
///
/// // Another process, later.
/// let log = FileLog::open(&path, FileOptions::default()).await?;
/// assert!(matches!(log.status(&id).await?, LogStatus::Ended { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct FileLog {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    jobs: SyncSender<Job>,
    commands: CommandQueue,
}

impl Inner {
    fn send(&self, job: Job) -> Result<(), LogError> {
        let sent = self.jobs.try_send(job);
        sent.map_err(|_| LogError::unavailable("too many requests wait for the disk"))
    }

    /// Requests something of the thread, and waits for its answer.
    pub(crate) async fn call<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, LogError> {
        let (reply, answer) = oneshot::channel();
        self.send(job(reply))?;
        match timeout(ANSWER, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(self.failure().await),
            Err(_) => Err(LogError::unavailable("the disk does not answer")),
        }
    }

    /// Why a request was dropped. The thread states it after it has dropped the requests.
    async fn failure(&self) -> LogError {
        let (reply, stated) = oneshot::channel();
        if self.send(Job::Control(Control::Barrier(reply))).is_ok() {
            // An error has the same meaning: the thread does nothing else.
            drop(timeout(ANSWER, stated).await);
        }
        self.shared.fault().to_log_error()
    }

    async fn control(
        &self,
        control: impl FnOnce(oneshot::Sender<Result<(), FileLogError>>) -> Control,
    ) -> Result<(), FileLogError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.jobs.try_send(Job::Control(control(reply)));
        let failed = || FileLogError::Io {
            reason: "the thread of the log does not answer".to_owned(),
        };
        sent.map_err(|_| failed())?;
        answer.await.map_err(|_| failed())?
    }

    pub(crate) fn check_open(&self) -> Result<(), LogError> {
        if self.shared.is_open() {
            Ok(())
        } else {
            Err(self.shared.fault().to_log_error())
        }
    }

    async fn status(&self, id: &StreamId) -> Result<LogStatus, LogError> {
        self.check_open()?;
        if let Some(stream) = self.shared.running(id) {
            return Ok(stream.status());
        }
        let wanted = id.clone();
        let row = read_file(&self.shared, move |database| row(database, &wanted)).await?;
        self.shared.status_of(row)
    }
}

impl FileLog {
    /// Opens a file, or creates it, and seals the streams that an earlier process has left running.
    ///
    /// A file whose process was killed is read completely, as is any file of at most one GiB: about a second for each GiB.
    ///
    /// # Errors
    ///
    /// All of [`FileLogError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the file again, in the background.
    pub async fn open(
        path: impl AsRef<Path>,
        mut options: FileOptions,
    ) -> Result<Self, FileLogError> {
        // A time that far from now can still be written: `Duration::MAX` means forever.
        options.ttl = options.ttl.min(FAR);
        options.lease = options.lease.min(FAR);
        let shared = Arc::new(Shared::new(path.as_ref().to_owned(), options));
        let (jobs, waiting) = sync_channel(MAX_JOBS);
        let worker = Worker::new(Arc::clone(&shared), waiting);
        std::thread::Builder::new()
            .name("unbraid-log-file".to_owned())
            .spawn(|| worker.run())?;
        let log = Self {
            inner: Arc::new(Inner {
                shared,
                jobs,
                commands: CommandQueue::default(),
            }),
        };
        log.open_file().await?;
        Ok(log)
    }

    /// Closes the file, after everything that was requested before. All calls fail until it is opened again; readers of
    /// running streams wait.
    ///
    /// # Errors
    ///
    /// [`FileLogError::Io`] if the last pages cannot be written. The file is closed in any case.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the file is closed.
    pub async fn close(&self) -> Result<(), FileLogError> {
        self.inner.control(Control::Close).await
    }

    /// Opens the file again after [`close`](Self::close). It may have been replaced: producers whose events it does not contain
    /// get [`LogError::Gap`], and append them again.
    ///
    /// # Errors
    ///
    /// All of [`FileLogError`]. The log stays closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the file is opened.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log_file::{FileLog, FileOptions};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("streams.log");
    /// let log = FileLog::open(&path, FileOptions::default()).await?;
    /// log.close().await?;
    /// std::fs::copy(&path, folder.path().join("backup.log"))?;
    /// log.open_file().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn open_file(&self) -> Result<(), FileLogError> {
        self.inner.control(Control::Open).await
    }

    /// Returns free space within the file to the file system. Appends and readers wait for it: about a second for each GiB.
    ///
    /// Opening does this for a file that is mostly free.
    ///
    /// # Errors
    ///
    /// [`FileLogError::Io`], [`FileLogError::Full`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the file is compacted.
    ///
    /// # Examples
    ///
    /// ```
    /// async fn free_space(log: &unbraid_log_file::FileLog) -> Result<(), unbraid_log_file::FileLogError> {
    ///     log.compact().await
    /// }
    /// ```
    pub async fn compact(&self) -> Result<(), FileLogError> {
        self.inner.control(Control::Compact).await
    }

    async fn open_stream(
        &self,
        id: &StreamId,
        meta: &Meta,
        again: bool,
    ) -> Result<Box<dyn LogWriter>, LogError> {
        let (id, meta) = (id.clone(), meta.clone());
        let open = |reply| Job::Open {
            id,
            meta,
            again,
            reply,
        };
        let stream =
            self.inner
                .call(open)
                .await
                .map_err(|error| match self.inner.shared.fault() {
                    FileLogError::Full if error.is_temporary() => LogError::Full,
                    _ => error,
                })?;
        let writer = FileWriter::new(Arc::clone(&self.inner), stream);
        Ok(Box::new(writer))
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.inner.shared.path.clone()
    }

    /// The bytes that the streams that have ended take in the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.shared.bytes.load(Ordering::Relaxed)
    }

    /// What an operator should know, one sentence each.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log_file::{FileLog, FileOptions, FileSync};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// let options = FileOptions::default().with_sync(FileSync::Never);
    /// let log = FileLog::open(folder.path().join("streams.log"), options).await?;
    /// assert_eq!(log.warnings().len(), 1);
    /// assert!(log.path().ends_with("streams.log") && log.bytes() == 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.inner.shared.options.sync == crate::FileSync::Never {
            let text = "the file is not written to the disk after each commit: a power failure may damage it";
            warnings.push(text.to_owned());
        }
        if self.inner.shared.space() < Space::Enough {
            let text = "the disk is almost full: no stream can be opened";
            warnings.push(text.to_owned());
        }
        warnings
    }
}

impl LogStore for FileLog {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        self.open_stream(id, meta, false).boxed()
    }

    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        self.open_stream(id, meta, true).boxed()
    }

    fn backend(&self) -> &'static str {
        "file"
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        match self.inner.shared.running(id) {
            Some(stream) => stream.journal().reader(after).boxed(),
            None => read_ended(&self.inner.shared, id.clone(), after),
        }
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.inner.status(id).boxed()
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        async move {
            let running = self.inner.shared.running(id);
            if running.is_none_or(|stream| stream.is_alive()) {
                return self.inner.status(id).await;
            }
            let id = id.clone();
            self.inner.call(|reply| Job::SealLost { id, reply }).await
        }
        .boxed()
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        let id = id.clone();
        self.inner.call(|reply| Job::Erase { id, reply }).boxed()
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        let (key, id) = (key.clone(), id.clone());
        self.inner
            .call(|reply| Job::Claim { key, id, reply })
            .boxed()
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        let (key, id) = (key.clone(), id.clone());
        self.inner
            .call(|reply| Job::Release { key, id, reply })
            .boxed()
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            match self.inner.status(id).await? {
                LogStatus::Unknown => return Err(LogError::Unknown),
                LogStatus::Running { .. } => {}
                // Its producer is gone.
                _ => return Ok(()),
            }
            self.inner.commands.send(id, command)
        }
        .boxed()
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.inner.commands.stream()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        self.inner.commands.stream_of(id)
    }
}

impl fmt::Debug for FileLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLog")
            .field("path", &self.inner.shared.path)
            .field("options", &self.inner.shared.options)
            .field("running", &self.inner.shared.running_count())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
