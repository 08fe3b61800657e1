//! A running gateway in front of the scripted provider.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use unbraid_gateway::{Gateway, GatewayBuilder, Server};

use crate::upstream;

/// A gateway on a socket. Dropping it closes the socket and all connections.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    upstream: String,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(|builder| builder).await
    }

    pub(crate) async fn with(configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        let upstream = upstream::start().await;
        Self::serve(
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            upstream,
            configure,
        )
        .await
    }

    async fn serve(
        address: SocketAddr,
        upstream: String,
        configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = configure(Gateway::builder(&upstream).proxy_from_env(false))
            .build()
            .unwrap();
        let task = tokio::spawn(async move {
            Server::new(gateway)
                .serve(listener, std::future::pending())
                .await
                .unwrap();
        });
        Self {
            address,
            upstream,
            task,
        }
    }

    /// Ends the gateway at once, and starts another one at the same address, which has no streams.
    pub(crate) async fn restart(mut self) -> Self {
        self.task.abort();
        // It has been aborted.
        let _aborted = (&mut self.task).await;
        Self::serve(self.address, self.upstream.clone(), |builder| builder).await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Forwards connections to an address, and closes those that are open whenever the value changes.
pub(crate) async fn cuttable(to: SocketAddr) -> (watch::Sender<u32>, SocketAddr) {
    let (cut, mut cuts) = watch::channel(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Ok((mut browser, _)) = listener.accept() => {
                    connections.spawn(async move {
                        let mut server = TcpStream::connect(to).await.unwrap();
                        // The browser and the test both close connections.
                        let _closed = tokio::io::copy_bidirectional(&mut browser, &mut server).await;
                    });
                }
                changed = cuts.changed() => match changed {
                    Ok(()) => connections.abort_all(),
                    Err(_) => return,
                },
            }
        }
    });
    (cut, address)
}
