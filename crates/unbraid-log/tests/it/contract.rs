//! The log in memory passes the contract, and logs that break it do not.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{BoxStream, StreamExt},
};
use unbraid_log::{
    Appended, Claim, ClaimKey, Command, End, LogError, LogStatus, LogStore, LogWriter, MemoryLog,
    MemoryOptions, Meta, Record, Seq, StreamEnd, StreamId,
    contract::{CHECKS, Engine, run},
};

use crate::interruptible::InterruptibleLog;

const TTL: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(2);

fn options() -> MemoryOptions {
    MemoryOptions::default()
        .with_ttl(TTL)
        .with_lease(LEASE)
        .with_claim_pending(2 * LEASE)
}

/// The log in memory behind a connection that can be cut.
struct Memory {
    log: MemoryLog,
    connection: InterruptibleLog,
    /// How the log is broken, for the checks of the suite itself.
    fault: Option<Fault>,
}

impl Memory {
    fn new(fault: Option<Fault>) -> Self {
        let log = MemoryLog::new(options());
        let connection = InterruptibleLog::new(Arc::new(log.clone()));
        Self {
            log,
            connection,
            fault,
        }
    }
}

impl Engine for Memory {
    fn gateway(&self) -> BoxFuture<'_, Arc<dyn LogStore>> {
        let log = self.connection.clone();
        let log: Arc<dyn LogStore> = match self.fault {
            Some(fault) => Arc::new(FaultyLog {
                log,
                fault,
                holders: Mutex::default(),
            }),
            None => Arc::new(log),
        };
        async { log }.boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async { self.connection.stop() }.boxed()
    }

    fn start(&self) -> BoxFuture<'_, ()> {
        async { self.connection.start() }.boxed()
    }

    fn empty(&self) -> BoxFuture<'_, ()> {
        async { self.log.clear() }.boxed()
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    fn lease(&self) -> Duration {
        LEASE
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_in_memory_passes() {
    run(&Memory::new(None)).await;
}

#[test]
fn every_check_has_its_own_name() {
    let mut names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CHECKS.len());
}

/// A way in which a log breaks the contract.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Duplicates are appended again, as new.
    ReportsDuplicatesAsNew,
    /// The last seal counts.
    ForgetsTheEnd,
    /// A reader misses the first record.
    SkipsARecord,
    /// Every claim is acquired.
    AcquiresEveryClaim,
    /// A claim that is repeated lasts no longer.
    RenewsNoClaim,
    /// The claim of an expired stream is held.
    HoldsExpiredClaims,
    /// A live producer is declared lost.
    SealsAtOnce,
    /// Commands are dropped.
    DropsCommands,
    /// A command to one stream may reach the receiver of another one, which drops it.
    SharesCommands,
    /// The reader does not end.
    NeverEnds,
    /// A log that has lost records can be sealed.
    SealsOverALoss,
}

/// A log in memory with a fault.
struct FaultyLog {
    log: InterruptibleLog,
    fault: Fault,
    /// The ids that have claimed.
    holders: Mutex<HashSet<StreamId>>,
}

struct FaultyWriter {
    writer: Box<dyn LogWriter>,
    fault: Fault,
}

impl LogStore for FaultyLog {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        async {
            let writer = self.log.open(id, meta).await?;
            let writer = FaultyWriter {
                writer,
                fault: self.fault,
            };
            Ok(Box::new(writer) as Box<dyn LogWriter>)
        }
        .boxed()
    }

    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        async {
            let writer = self.log.reopen(id, meta).await?;
            let writer = FaultyWriter {
                writer,
                fault: self.fault,
            };
            Ok(Box::new(writer) as Box<dyn LogWriter>)
        }
        .boxed()
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        let records = self.log.read(id, after);
        match self.fault {
            Fault::SkipsARecord => records.skip(1).boxed(),
            Fault::NeverEnds => records.chain(futures::stream::pending()).boxed(),
            _ => records,
        }
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        async {
            let mut status = self.log.status(id).await?;
            if let (Fault::ForgetsTheEnd, LogStatus::Ended { end, .. }) = (self.fault, &mut status)
            {
                *end = StreamEnd::new(End::Cancelled);
            }
            Ok(status)
        }
        .boxed()
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        async {
            if matches!(self.fault, Fault::SealsAtOnce) {
                tokio::time::advance(LEASE).await;
            }
            self.log.seal_lost(id).await
        }
        .boxed()
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        self.log.erase(id)
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        match self.fault {
            Fault::AcquiresEveryClaim => async { Ok(Claim::Acquired) }.boxed(),
            Fault::RenewsNoClaim if !self.holders.lock().unwrap().insert(id.clone()) => {
                async { Ok(Claim::Acquired) }.boxed()
            }
            Fault::HoldsExpiredClaims => async {
                let status = self.log.status(id).await?;
                let is_expired = matches!(status, LogStatus::Expired { .. });
                let unknown = StreamId::random()?;
                self.log
                    .claim(key, if is_expired { &unknown } else { id })
                    .await
            }
            .boxed(),
            _ => self.log.claim(key, id),
        }
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.log.release(key, id)
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        match self.fault {
            Fault::DropsCommands => async { Ok(()) }.boxed(),
            _ => self.log.send_command(id, command),
        }
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.log.commands()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        match self.fault {
            Fault::SharesCommands => {
                let id = id.clone();
                let commands = self.log.commands();
                let own = commands.filter_map(move |(to, command)| {
                    std::future::ready((to == id).then_some(command))
                });
                own.boxed()
            }
            _ => self.log.commands_of(id),
        }
    }
}

impl LogWriter for FaultyWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        async {
            let appended = self.writer.append(record).await?;
            Ok(match self.fault {
                Fault::ReportsDuplicatesAsNew => Appended::New,
                _ => appended,
            })
        }
        .boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        self.writer.renew()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        let sealed = self.writer.seal(end);
        match self.fault {
            Fault::SealsOverALoss => sealed.map(|_gap| Ok(())).boxed(),
            _ => sealed,
        }
    }
}

/// A suite that accepts a broken log tests nothing.
#[test]
fn the_suite_finds_every_fault() {
    for fault in [
        Fault::ReportsDuplicatesAsNew,
        Fault::ForgetsTheEnd,
        Fault::SkipsARecord,
        Fault::AcquiresEveryClaim,
        Fault::RenewsNoClaim,
        Fault::HoldsExpiredClaims,
        Fault::SealsAtOnce,
        Fault::DropsCommands,
        Fault::SharesCommands,
        Fault::NeverEnds,
        Fault::SealsOverALoss,
    ] {
        let failed = std::panic::catch_unwind(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            runtime.block_on(run(&Memory::new(Some(fault))));
        });
        assert!(failed.is_err(), "{fault:?} passes");
    }
}
