//! Brokers as child processes, each in a temporary folder, with the settings that the documentation recommends.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use unbraid_log::LogStore;
use unbraid_log_nats::{NatsLog, NatsOptions};
use unbraid_log_redis::{RedisLog, RedisOptions};
#[cfg(unix)]
use unbraid_testkit::servers::{
    RedisServer,
    nats::{NatsConfig, NatsServer},
};

/// The brokers by name.
pub(crate) const BROKERS: [&str; 2] = ["redis", "nats"];

/// A broker that runs. Dropping it ends it.
#[derive(Debug)]
pub(crate) enum Broker {
    #[cfg(unix)]
    Redis(RedisServer),
    #[cfg(unix)]
    Nats(NatsServer),
}

impl Broker {
    /// Starts a broker. Without its program there is none, and a line says so.
    #[cfg(unix)]
    pub(crate) async fn start(name: &str) -> io::Result<Option<Self>> {
        Ok(match name {
            "redis" => {
                let options = [
                    ["--appendfsync", "everysec"],
                    ["--maxmemory-policy", "noeviction"],
                ];
                RedisServer::start_with(options.as_flattened()).map(Self::Redis)
            }
            "nats" => {
                let server = NatsServer::start(NatsConfig::default()).await;
                server.map(Self::Nats)
            }
            _ => return Err(io::Error::other(format!("no broker is named {name}"))),
        })
    }

    /// The servers are for Unix.
    #[cfg(not(unix))]
    pub(crate) async fn start(_name: &str) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// The address for `--log`.
    pub(crate) fn url(&self) -> String {
        match self {
            #[cfg(unix)]
            Self::Redis(server) => server.url(),
            #[cfg(unix)]
            Self::Nats(server) => server.url(),
        }
    }

    pub(crate) async fn connect(&self) -> io::Result<Arc<dyn LogStore>> {
        match self {
            #[cfg(unix)]
            Self::Redis(server) => {
                let log = RedisLog::connect(&server.url(), RedisOptions::default()).await;
                Ok(Arc::new(log.map_err(io::Error::other)?))
            }
            #[cfg(unix)]
            Self::Nats(server) => {
                let log = NatsLog::connect(&server.url(), NatsOptions::default()).await;
                Ok(Arc::new(log.map_err(io::Error::other)?))
            }
        }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        match self {
            #[cfg(unix)]
            Self::Redis(server) => server.folder().to_owned(),
            #[cfg(unix)]
            Self::Nats(server) => server.folder().to_owned(),
        }
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> Option<u32> {
        match self {
            #[cfg(unix)]
            Self::Redis(server) => server.id(),
            #[cfg(unix)]
            Self::Nats(server) => server.id(),
        }
    }

    /// The CPU time that it has used, where the system says so.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.id()?)).ok()?;
        // After the command's name, which may contain spaces and parentheses. proc(5): utime is field 14, and stime 15.
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
    }
}

/// The bytes of the files in a folder and those below it.
pub(crate) fn files(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(folder)? {
        let file = file?;
        bytes += match file.metadata() {
            Ok(found) if found.is_dir() => files(&file.path())?,
            Ok(found) => found.len(),
            // A broker replaces its files while it runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}
