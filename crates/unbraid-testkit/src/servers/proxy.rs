//! A TCP proxy whose connections can be cut, delayed and interrupted.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

/// A proxy in front of one port of this machine. It stops when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    /// The delay of the server's answers, in milliseconds.
    delay: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy for a server. With `cut_after`, each connection is cut at this age.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub async fn start(server: u16, cut_after: Option<Duration>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let delay = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&delay);
        let task = tokio::spawn(async move {
            // The connections end with the proxy.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(serve(client, server, cut_after, Arc::clone(&shared)));
            }
        });
        Ok(Self { port, delay, task })
    }

    /// Its port on the loopback address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Delays everything that the server sends from now on.
    pub fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.delay.store(millis, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(client: TcpStream, server: u16, cut_after: Option<Duration>, delay: Arc<AtomicU64>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
        return;
    };
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let copy = async {
        tokio::select! {
            () = forward(client_in, server_out, Arc::default()) => {}
            () = forward(server_in, client_out, delay) => {}
        }
    };
    // Both sockets are closed when this ends.
    let _cut = timeout(cut_after.unwrap_or(Duration::MAX), copy).await;
}

/// Copies bytes, each of them as late as the delay says, however many follow.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Arc<AtomicU64>) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let due = Instant::now() + Duration::from_millis(delay.load(Ordering::Relaxed));
            if sender.send((due, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    };
    let write = async {
        while let Some((due, bytes)) = receiver.recv().await {
            sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = write => {}
    }
}
