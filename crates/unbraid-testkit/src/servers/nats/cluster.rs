//! Three NATS servers, each of which has a copy of every stream.

use std::net::TcpListener;

use super::{NatsConfig, NatsServer};

/// The number of servers: the least of which one may be missing.
const SERVERS: usize = 3;

/// The place of a server in its cluster.
#[derive(Debug, Clone)]
pub struct Member {
    name: String,
    port: u16,
    routes: String,
}

impl Member {
    /// The arguments of `nats-server`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let address = format!("nats://127.0.0.1:{}", self.port);
        [
            ("--name", self.name.as_str()),
            ("--cluster_name", "unbraid"),
            ("--cluster", address.as_str()),
            ("--routes", self.routes.as_str()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_owned()])
        .collect()
    }
}

/// A cluster of NATS servers with JetStream. They are killed when this is dropped.
#[derive(Debug)]
pub struct NatsCluster {
    servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts the servers. They elect a leader after that, which takes seconds. `None` if the program is not installed.
    ///
    /// # Panics
    ///
    /// If a server does not start, or is not installed although `UNBRAID_REQUIRE_ENGINES` is set.
    pub async fn start() -> Option<Self> {
        // The servers have to know the ports of one another. Nobody else takes them in the meantime, or the servers do not start.
        let free: Vec<TcpListener> = (0..SERVERS)
            .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
            .collect();
        let ports: Vec<u16> = free
            .iter()
            .map(|listener| listener.local_addr().expect("an address").port())
            .collect();
        drop(free);
        let routes: Vec<String> = ports
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        let routes = routes.join(",");
        let mut servers = Vec::new();
        for (number, port) in ports.into_iter().enumerate() {
            let member = Member {
                name: format!("server-{number}"),
                port,
                routes: routes.clone(),
            };
            let config = NatsConfig {
                member: Some(member),
                ..NatsConfig::default()
            };
            servers.push(NatsServer::start(config).await?);
        }
        Some(Self { servers })
    }

    /// The addresses of all servers.
    #[must_use]
    pub fn url(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }

    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &[NatsServer] {
        &self.servers
    }
}
