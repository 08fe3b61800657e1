//! The HTTP clients of an upstream: one for each runtime that sends requests.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use reqwest::{Client, ClientBuilder, redirect::Policy};
use tokio::runtime::{Handle, Id};
use unbraid_core::BoxError;
use unbraid_http::internal::{SharedTls, shared_tls};

use crate::{
    error::BuildError,
    limits::{CONNECT_TIMEOUT, UPSTREAM_KEEP_ALIVE},
};

/// More runtimes than that share a client. A server has one for each core.
const MAX_CLIENTS: usize = 256;

/// Clients with pools of their own.
///
/// The task of a connection stays in the runtime in which the connection was opened. If another runtime took the connection
/// from a pool, every delta would cross two threads, and an end of that runtime would end the answer.
#[derive(Clone)]
pub(super) struct Clients {
    settings: Arc<Settings>,
    first: Client,
    by_runtime: Arc<Mutex<Vec<(Id, Client)>>>,
    /// The same without kept connections, once a provider has needed them.
    unkept: Arc<OnceLock<Self>>,
}

#[derive(Clone)]
struct Settings {
    tls: SharedTls,
    proxy_from_env: bool,
    /// Whether a connection is kept for the next request.
    keeps_connections: bool,
}

impl Clients {
    pub(super) fn new(roots: &[Vec<u8>], proxy_from_env: bool) -> Result<Self, BuildError> {
        let tls = shared_tls(roots).map_err(|error| tls_error(error.into()))?;
        let settings = Settings {
            tls,
            proxy_from_env,
            keeps_connections: true,
        };
        let first = settings.builder().build();
        let first = first.map_err(|error| tls_error(error.without_url().into()))?;
        Ok(Self {
            settings: Arc::new(settings),
            first,
            by_runtime: Arc::default(),
            unkept: Arc::default(),
        })
    }

    /// Clients that open a connection for each request.
    pub(super) fn without_kept_connections(&self) -> Self {
        self.unkept.get_or_init(|| self.unkept()).clone()
    }

    fn unkept(&self) -> Self {
        let settings = Settings {
            keeps_connections: false,
            ..Settings::clone(&self.settings)
        };
        // The first one could be built with almost the same settings.
        settings.builder().build().map_or_else(
            |_| self.clone(),
            |first| Self {
                settings: Arc::new(settings),
                first,
                by_runtime: Arc::default(),
                unkept: Arc::default(),
            },
        )
    }

    /// The client whose connections the runtime of this task has opened.
    pub(super) fn of_this_runtime(&self) -> Client {
        let Ok(runtime) = Handle::try_current() else {
            return self.first.clone();
        };
        let id = runtime.id();
        let clients = self.by_runtime.lock();
        let mut clients = clients.unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(runtime, _)| *runtime == id) {
            return client.clone();
        }
        if clients.len() >= MAX_CLIENTS {
            return self.first.clone();
        }
        let client = match clients.is_empty() {
            true => self.first.clone(),
            // The first one could be built with the same settings.
            false => self
                .settings
                .builder()
                .build()
                .unwrap_or_else(|_| self.first.clone()),
        };
        clients.push((id, client.clone()));
        client
    }
}

impl Settings {
    fn builder(&self) -> ClientBuilder {
        let http = Client::builder()
            // A redirect would carry the prompt, and perhaps the key, to another host.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .pool_idle_timeout(UPSTREAM_KEEP_ALIVE);
        let http = match self.keeps_connections {
            true => http,
            false => http.pool_max_idle_per_host(0),
        };
        let http = match self.proxy_from_env {
            true => http,
            false => http.no_proxy(),
        };
        self.tls.configure(http)
    }
}

fn tls_error(error: BoxError) -> BuildError {
    BuildError::Tls {
        why: error.to_string(),
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}
