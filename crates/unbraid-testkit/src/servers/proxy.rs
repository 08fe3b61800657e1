//! A proxy that fails as networks do.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

/// A TCP proxy on the loopback address. Dropping it closes it and its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    target: Arc<Mutex<String>>,
    faults: watch::Sender<Faults>,
    task: JoinHandle<()>,
}

/// How the proxy fails.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// Connections of an earlier generation are closed.
    generation: u64,
    /// How long each byte that the server sends takes.
    delay: Duration,
    /// How many bytes of the server each connection delivers in a second.
    rate: Option<u32>,
    /// The age at which a connection is closed.
    max_age: Option<Duration>,
    is_refusing: bool,
    is_holding: bool,
}

impl Proxy {
    /// Listens, and connects each client to this address.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn start(target: impl Into<String>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let faults = watch::Sender::new(Faults::default());
        let target = Arc::new(Mutex::new(target.into()));
        let task = tokio::spawn(serve(listener, Arc::clone(&target), faults.subscribe()));
        Self {
            address,
            target,
            faults,
            task,
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects new clients to this address, as a name does after a failover. Connections stay open.
    pub fn redirect(&self, target: impl Into<String>) {
        *lock(&self.target) = target.into();
    }

    /// Closes all connections. New ones are accepted.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.generation += 1);
    }

    /// Closes each connection at this age.
    pub fn cut_after(&self, age: Option<Duration>) {
        self.faults.send_modify(|faults| faults.max_age = age);
    }

    /// Delivers what the server sends later by this time.
    pub fn delay(&self, delay: Duration) {
        self.faults.send_modify(|faults| faults.delay = delay);
    }

    /// Delivers at most this many bytes of the server in a second, on each connection.
    pub fn throttle(&self, rate: Option<u32>) {
        self.faults.send_modify(|faults| faults.rate = rate);
    }

    /// Closes all connections, and new ones at once, until `false`.
    pub fn refuse(&self, is_refusing: bool) {
        self.faults.send_modify(|faults| {
            faults.is_refusing = is_refusing;
            faults.generation += 1;
        });
    }

    /// Forwards nothing, and closes nothing, until `false`: a network that loses every packet.
    pub fn hold(&self, is_holding: bool) {
        self.faults
            .send_modify(|faults| faults.is_holding = is_holding);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The connections end when their faults have no sender any more.
        self.task.abort();
    }
}

fn lock(target: &Mutex<String>) -> MutexGuard<'_, String> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, target: Arc<Mutex<String>>, faults: watch::Receiver<Faults>) {
    loop {
        // An error of one connection, as a client that is gone again.
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        if !faults.borrow().is_refusing {
            let target = lock(&target).clone();
            tokio::spawn(connect(client, target, faults.clone()));
        }
    }
}

/// Forwards in both directions until either end closes, or a fault does.
async fn connect(client: TcpStream, target: String, mut faults: watch::Receiver<Faults>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    // Small messages are forwarded as they are.
    let _client_set = client.set_nodelay(true);
    let _server_set = server.set_nodelay(true);
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let first = *faults.borrow();
    let settings = faults.clone();
    let is_cut = async {
        let born = Instant::now();
        loop {
            let now = *faults.borrow_and_update();
            if now.generation != first.generation {
                return;
            }
            let age = async {
                match now.max_age {
                    Some(age) => sleep_until(born + age).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = faults.changed() => if changed.is_err() { return },
                () = age => return,
            }
        }
    };
    tokio::select! {
        () = forward(client_in, server_out, settings.clone(), false) => {}
        () = forward(server_in, client_out, settings, true) => {}
        () = is_cut => {}
    }
}

/// Forwards one direction. The delay is a latency: it does not add up over messages.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut faults: watch::Receiver<Faults>,
    is_delayed: bool,
) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(1024);
    let delays = faults.clone();
    let read = async move {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let Ok(length @ 1..) = from.read(&mut buffer).await else {
                return;
            };
            let delay = match is_delayed {
                true => delays.borrow().delay,
                false => Duration::ZERO,
            };
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            if sender.send((Instant::now() + delay, bytes)).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            sleep_until(due).await;
            let rate = faults.borrow().rate.filter(|_| is_delayed);
            if let Some(rate) = rate {
                sleep(Duration::from_secs(bytes.len() as u64) / rate).await;
            }
            let is_open = faults.wait_for(|faults| !faults.is_holding).await.is_ok();
            if !is_open || to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        // The other end has read everything before the connection closes.
        sleep(Duration::from_millis(1)).await;
    };
    tokio::join!(read, write);
}
