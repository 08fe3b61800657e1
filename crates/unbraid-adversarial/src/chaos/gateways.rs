//! The gateways: child processes of the real command, each with a proxy between it and the broker.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::Method;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};
use unbraid_testkit::servers::Proxy;

use super::{
    CannotRun, LogKind, Options,
    broker::{Broker, free_port},
    client,
    history::GatewayId,
    process::Process,
    upstream::Upstream,
};

/// How a gateway is started again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Restart {
    /// On a port that it has not had before.
    pub(super) new_port: bool,
    /// Its wall clock is wrong by so many hours.
    pub(super) clock_hours: i32,
}

/// All gateways.
#[derive(Debug)]
pub(super) struct Gateways {
    slots: Vec<Slot>,
    unbraid: PathBuf,
    folder: PathBuf,
    lease: Duration,
}

#[derive(Debug)]
struct Slot {
    port: RwLock<u16>,
    incarnation: AtomicUsize,
    process: Mutex<Option<Process>>,
    log: String,
    /// `None` if the log needs no connection.
    proxy: Option<Proxy>,
}

/// No gateway takes longer to start, not even on a busy machine without its broker.
const PATIENCE: Duration = Duration::from_secs(60);

impl Gateways {
    /// Prepares the gateways; none of them runs yet.
    pub(super) async fn new(
        options: &Options,
        broker: Option<&Broker>,
        folder: &Path,
    ) -> Result<Self, CannotRun> {
        let mut slots = Vec::new();
        for _ in 0..options.gateways() {
            let proxy = match broker {
                Some(broker) => Some(Proxy::start(broker.address()).await),
                None => None,
            };
            let log = match (options.log, &proxy) {
                (LogKind::Redis, Some(proxy)) => format!("redis://{}", proxy.address()),
                (LogKind::Nats, Some(proxy)) => format!("nats://{}", proxy.address()),
                (LogKind::File, _) => format!("file:{}", folder.join("streams.db").display()),
                _ => "memory".into(),
            };
            slots.push(Slot {
                port: RwLock::new(free_port().map_err(CannotRun::io)?),
                incarnation: AtomicUsize::new(0),
                process: Mutex::default(),
                log,
                proxy,
            });
        }
        let unbraid = options.unbraid.clone();
        Ok(Self {
            slots,
            unbraid,
            folder: folder.to_owned(),
            lease: options.lease,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, slot: usize) -> &Slot {
        // Slots are numbered by this type.
        &self.slots[slot % self.slots.len()]
    }

    pub(super) fn proxy(&self, slot: usize) -> Option<&Proxy> {
        self.slot(slot).proxy.as_ref()
    }

    pub(super) fn proxies(&self) -> impl Iterator<Item = &Proxy> {
        self.slots.iter().filter_map(|slot| slot.proxy.as_ref())
    }

    /// Where a gateway listens.
    pub(super) fn address(&self, slot: usize) -> SocketAddr {
        let port = *self
            .slot(slot)
            .port
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// The process that a gateway has at the moment.
    pub(super) fn id(&self, slot: usize) -> GatewayId {
        let incarnation = self.slot(slot).incarnation.load(Ordering::Relaxed);
        GatewayId {
            slot: slot % self.slots.len(),
            incarnation,
        }
    }

    /// Kills a gateway.
    pub(super) async fn kill(&self, slot: usize) {
        self.slot(slot).process.lock().await.take();
    }

    pub(super) async fn suspend(&self, slot: usize) {
        if let Some(process) = &*self.slot(slot).process.lock().await {
            process.suspend();
        }
    }

    pub(super) async fn resume(&self, slot: usize) {
        if let Some(process) = &*self.slot(slot).process.lock().await {
            process.resume();
        }
    }

    /// Asks a gateway to drain, and returns the exit code.
    pub(super) async fn drain(&self, slot: usize, patience: Duration) -> Option<i32> {
        let mut process = self.slot(slot).process.lock().await.take()?;
        process.terminate();
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(code) = process.exit_code() {
                return Some(code);
            }
            sleep(Duration::from_millis(20)).await;
        }
        None
    }

    /// The gateways that have exited by themselves, with their exit codes.
    pub(super) fn exited(&self) -> Vec<(GatewayId, i32)> {
        let mut exited = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            // A gateway that is being started is not one that has exited.
            let Ok(mut process) = slot.process.try_lock() else {
                continue;
            };
            if let Some(code) = process.as_mut().and_then(Process::exit_code) {
                exited.push((self.id(index), code));
                *process = None;
            }
        }
        exited
    }

    /// Starts a gateway, and waits until it answers. A gateway that cannot reach its broker exits, and is started again, as a
    /// supervisor does.
    pub(super) async fn start(
        &self,
        slot: usize,
        upstream: &Upstream,
        restart: Restart,
    ) -> Result<(), CannotRun> {
        let entry = self.slot(slot);
        let mut process = entry.process.lock().await;
        *process = None;
        if restart.new_port {
            let port = free_port().map_err(CannotRun::io)?;
            *entry.port.write().unwrap_or_else(PoisonError::into_inner) = port;
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            entry.incarnation.fetch_add(1, Ordering::Relaxed);
            let mut command = self.command(slot, upstream, restart);
            let mut started =
                Process::start(&mut command, &self.output(slot)).map_err(CannotRun::io)?;
            while started.exit_code().is_none() && Instant::now() < deadline {
                let response = client::send(
                    self.address(slot),
                    Method::GET,
                    "/healthz",
                    &[],
                    String::new(),
                )
                .await;
                if response.is_ok_and(|response| response.status == 200) {
                    *process = Some(started);
                    return Ok(());
                }
                sleep(Duration::from_millis(50)).await;
            }
            sleep(Duration::from_millis(200)).await;
        }
        Err(CannotRun::new(format!(
            "the gateway does not start: see {}",
            self.output(slot).display()
        )))
    }

    /// The file with what a gateway printed.
    pub(super) fn output(&self, slot: usize) -> PathBuf {
        self.folder
            .join(format!("gateway-{}.log", slot % self.slots.len()))
    }

    fn command(&self, slot: usize, upstream: &Upstream, restart: Restart) -> Command {
        let mut command = Command::new(&self.unbraid);
        let lease = format!("{}ms", self.lease.as_millis());
        command
            .args(["serve", "--upstream", &upstream.url(self.id(slot))])
            .args(["--listen", &self.address(slot).to_string()])
            .args(["--log", &self.slot(slot).log])
            .args([
                "--lease",
                &lease,
                "--ping",
                "500ms",
                "--drain",
                "30s",
                "--max-readers",
                "256",
            ])
            .args(["--fan-out", "native"]);
        // The variables of the caller are not part of a run.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("UNBRAID_") {
                command.env_remove(name);
            }
        }
        if let (hours @ (..=-1 | 1..), Some(library)) = (restart.clock_hours, faketime()) {
            // The monotonic clock stays that of the machine.
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME", format!("{hours:+}h"));
        }
        command
    }
}

/// The library that changes the clock of a process, if it is installed. Its command is a parent process of the program, which
/// a kill would leave running.
pub(super) fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    files.find(|file| file.is_file())
}
