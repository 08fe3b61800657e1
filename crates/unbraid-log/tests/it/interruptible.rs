//! A log behind a connection that can be cut, as that to an engine in another process.

use std::sync::Arc;

use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{self, BoxStream, StreamExt},
};
use tokio::sync::watch;
use unbraid_log::{
    Appended, Claim, ClaimKey, Command, LogError, LogStatus, LogStore, LogWriter, Meta, Record,
    Seq, StreamEnd, StreamId,
};

#[derive(Clone)]
pub(crate) struct InterruptibleLog {
    log: Arc<dyn LogStore>,
    is_stopped: watch::Sender<bool>,
}

struct Writer {
    writer: Box<dyn LogWriter>,
    is_stopped: watch::Receiver<bool>,
}

fn check(is_stopped: bool) -> Result<(), LogError> {
    if is_stopped {
        Err(LogError::unavailable("the connection is cut"))
    } else {
        Ok(())
    }
}

impl InterruptibleLog {
    pub(crate) fn new(log: Arc<dyn LogStore>) -> Self {
        Self {
            log,
            is_stopped: watch::Sender::new(false),
        }
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.send_replace(true);
    }

    pub(crate) fn start(&self) {
        self.is_stopped.send_replace(false);
    }

    fn call<'a, T: Send + 'a>(
        &'a self,
        call: BoxFuture<'a, Result<T, LogError>>,
    ) -> BoxFuture<'a, Result<T, LogError>> {
        async move {
            check(*self.is_stopped.borrow())?;
            call.await
        }
        .boxed()
    }
}

impl LogStore for InterruptibleLog {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        async {
            check(*self.is_stopped.borrow())?;
            let writer = self.log.open(id, meta).await?;
            let is_stopped = self.is_stopped.subscribe();
            Ok(Box::new(Writer { writer, is_stopped }) as Box<dyn LogWriter>)
        }
        .boxed()
    }

    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        async {
            check(*self.is_stopped.borrow())?;
            let writer = self.log.reopen(id, meta).await?;
            let is_stopped = self.is_stopped.subscribe();
            Ok(Box::new(Writer { writer, is_stopped }) as Box<dyn LogWriter>)
        }
        .boxed()
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        let mut is_stopped = self.is_stopped.subscribe();
        let cut = async move {
            // The log lives as long as its readers here.
            let _closed = is_stopped.wait_for(|stopped| *stopped).await;
        };
        let error = LogError::unavailable("the connection is cut");
        let was_cut = self.is_stopped.subscribe();
        let records = self.log.read(id, after).take_until(cut.boxed());
        let end = stream::once(async move { was_cut.borrow().then_some(Err(error)) });
        records.chain(end.filter_map(std::future::ready)).boxed()
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.call(async { self.log.status(id).await }.boxed())
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.call(async { self.log.seal_lost(id).await }.boxed())
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        self.call(async { self.log.erase(id).await }.boxed())
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        self.call(async { self.log.claim(key, id).await }.boxed())
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.call(async { self.log.release(key, id).await }.boxed())
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.call(async move { self.log.send_command(id, command).await }.boxed())
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.log.commands()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        self.log.commands_of(id)
    }
}

impl LogWriter for Writer {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        async {
            check(*self.is_stopped.borrow())?;
            self.writer.append(record).await
        }
        .boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async {
            check(*self.is_stopped.borrow())?;
            self.writer.renew().await
        }
        .boxed()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        async {
            check(*self.is_stopped.borrow())?;
            self.writer.seal(end).await
        }
        .boxed()
    }
}
