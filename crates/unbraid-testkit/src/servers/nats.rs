//! `nats-server`, with JetStream in a temporary folder.

mod cluster;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    time::{Instant, sleep},
};

pub use cluster::{Member, NatsCluster};

use super::{Process, find_program};

/// No server takes longer to start, not even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct NatsConfig {
    /// Whether it has JetStream.
    pub jetstream: bool,
    /// The bytes that JetStream may store.
    pub max_stored: Option<u64>,
    /// A user and a password that it requires.
    pub user: Option<(String, String)>,
    /// What this user may do, as in the server's configuration file; everything without it.
    pub permissions: Option<String>,
    /// The files of a certificate and its key, with which it requires TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Its place in a cluster.
    pub member: Option<Member>,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            jetstream: true,
            max_stored: None,
            user: None,
            permissions: None,
            tls: None,
            member: None,
        }
    }
}

/// A NATS server. It is killed when this is dropped, and its folder is removed.
#[derive(Debug)]
pub struct NatsServer {
    program: PathBuf,
    config: NatsConfig,
    folder: TempDir,
    /// It keeps its port when it is started again.
    port: u16,
    process: Mutex<Option<Process>>,
}

impl NatsServer {
    /// Starts a server on a free port. `None` if the program is not installed.
    ///
    /// # Panics
    ///
    /// If the server does not start, or is not installed although `UNBRAID_REQUIRE_ENGINES` is set.
    pub async fn start(config: NatsConfig) -> Option<Self> {
        let program = find_program("nats-server", "nats-server")?;
        let mut server = Self {
            program,
            config,
            folder: TempDir::new().expect("a temporary folder"),
            port: 0,
            process: Mutex::default(),
        };
        let id = server.spawn("-1");
        server.port = read_port(server.folder.path(), id).await;
        server.await_ready().await;
        Some(server)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its port on the loopback address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with everything that it writes.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The id of its process, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process().as_ref().map(Process::id)
    }

    /// Kills the process, as `kill -9` does. What it has written stays.
    pub fn kill(&self) {
        self.process().take();
    }

    /// Starts it again, on the same port and with the same folder. Nothing happens if it runs.
    pub async fn restart(&self) {
        if self.process().is_none() {
            self.spawn(&self.port.to_string());
            self.await_ready().await;
        }
    }

    /// Kills it, removes everything that it has written, and starts it again.
    ///
    /// # Panics
    ///
    /// If the folder cannot be removed.
    pub async fn empty(&self) {
        self.kill();
        let store = self.store();
        if store.exists() {
            fs::remove_dir_all(store).expect("the folder can be removed");
        }
        self.restart().await;
    }

    /// Suspends it: connections stay open, and no request is answered.
    pub fn pause(&self) {
        if let Some(process) = &*self.process() {
            process.pause();
        }
    }

    /// Resumes it.
    pub fn resume(&self) {
        if let Some(process) = &*self.process() {
            process.resume();
        }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn process(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, port: &str) -> u32 {
        let mut command = Command::new(&self.program);
        command.args(["-a", "127.0.0.1", "-p", port, "--ports_file_dir"]);
        command.arg(self.folder.path());
        if let Some(text) = self.configuration() {
            command.arg("-c").arg(self.write_configuration(&text));
        }
        if self.config.jetstream && self.config.max_stored.is_none() {
            command.args(["-js", "-sd"]).arg(self.store());
        }
        if let (Some((user, password)), None) = (&self.config.user, &self.config.permissions) {
            command.args(["--user", user, "--pass", password]);
        }
        if let Some((certificate, key)) = &self.config.tls {
            command.arg("--tls").arg("--tlscert").arg(certificate);
            command.arg("--tlskey").arg(key);
        }
        if let Some(member) = &self.config.member {
            command.args(member.arguments());
        }
        let process = Process::start(&mut command);
        let id = process.id();
        *self.process() = Some(process);
        id
    }

    /// What has no argument.
    fn configuration(&self) -> Option<String> {
        let NatsConfig {
            max_stored,
            user,
            permissions,
            ..
        } = &self.config;
        let store = self.store();
        let limit = max_stored.map(|bytes| {
            format!("jetstream {{ store_dir: {store:?}, max_file_store: {bytes} }}\n")
        });
        let restricted = user.as_ref().zip(permissions.as_ref());
        let restricted = restricted.map(|((user, password), permissions)| {
            let user =
                format!("user: {user:?}, password: {password:?}, permissions: {permissions}");
            format!("authorization {{ users: [{{ {user} }}] }}\n")
        });
        let text: String = limit.into_iter().chain(restricted).collect();
        Some(text).filter(|text| !text.is_empty())
    }

    fn write_configuration(&self, text: &str) -> PathBuf {
        let file = self.folder.path().join("nats.conf");
        fs::write(&file, text).expect("the folder can be written to");
        file
    }

    /// Waits until the server greets.
    async fn await_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(connection) = TcpStream::connect(("127.0.0.1", self.port)).await {
                let mut greeting = String::new();
                let read = BufReader::new(connection).read_line(&mut greeting).await;
                if read.is_ok() && greeting.starts_with("INFO ") {
                    return;
                }
            }
            assert!(Instant::now() < deadline, "nats-server does not start");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Reads the port from the file that the server writes.
async fn read_port(folder: &Path, id: u32) -> u16 {
    let file = folder.join(format!("nats-server_{id}.ports"));
    let deadline = Instant::now() + PATIENCE;
    loop {
        // The file may be incomplete.
        if let Some(port) = fs::read_to_string(&file).ok().and_then(|text| port(&text)) {
            return port;
        }
        assert!(Instant::now() < deadline, "nats-server writes no port");
        sleep(Duration::from_millis(20)).await;
    }
}

fn port(text: &str) -> Option<u16> {
    let ports: serde_json::Value = serde_json::from_str(text).ok()?;
    let url = ports.get("nats")?.get(0)?.as_str()?;
    url.rsplit(':').next()?.parse().ok()
}
