//! The provider that every candidate forwards to: it sends the deltas of all choices at an even pace.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep_until},
};

use super::{Clock, block_on, meter};

/// The answer to each request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) choices: usize,
    /// The deltas of each choice.
    pub(super) deltas: u32,
    /// The time between two deltas of one answer.
    pub(super) every: Duration,
    /// Whether the answer stays open after its last delta.
    pub(super) stays_open: bool,
}

impl Plan {
    /// The deltas of an answer.
    pub(super) fn total(self) -> u64 {
        self.choices as u64 * u64::from(self.deltas)
    }
}

/// A running upstream, in a thread of its own. It runs until the process ends.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    pub(super) clock: Clock,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    plan: Mutex<Plan>,
    deltas: AtomicU64,
    bytes: AtomicU64,
}

impl Upstream {
    pub(super) fn start() -> io::Result<Self> {
        let clock = Clock::start();
        let shared = Arc::new(Shared {
            clock,
            plan: Mutex::new(Plan {
                choices: 1,
                deltas: 1,
                every: Duration::ZERO,
                stays_open: false,
            }),
            deltas: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        let (started, starts) = mpsc::channel();
        let accepting = Arc::clone(&shared);
        thread::spawn(move || block_on(accept(started, accepting)));
        Ok(Self {
            address: starts.recv().map_err(io::Error::other)?,
            clock,
            shared,
        })
    }

    pub(super) fn set_plan(&self, plan: Plan) {
        *self
            .shared
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// The deltas, and the bytes after the heads, that were written so far.
    pub(super) fn written(&self) -> (u64, u64) {
        (
            self.shared.deltas.load(Relaxed),
            self.shared.bytes.load(Relaxed),
        )
    }
}

async fn accept(started: mpsc::Sender<SocketAddr>, shared: Arc<Shared>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let _closed = started.send(listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        let shared = Arc::clone(&shared);
        // A client may close its connection.
        tokio::spawn(async move { drop(serve(socket, &shared).await) });
    }
}

/// Reads the head and the body of a request. Returns its first line.
async fn read_request(socket: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(1024);
    let end = loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.map_or(Ok(0), |length| length.trim().parse::<usize>());
    let length = length.map_err(io::Error::other)?;
    while bytes.len() < end + length {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head.lines().next().unwrap_or_default().to_owned())
}

async fn serve(mut socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let first = read_request(&mut socket).await?;
    if !first.starts_with("post ") || !first.contains("/chat/completions") {
        let refused = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return socket.write_all(refused).await;
    }
    let plan = *shared.plan.lock().unwrap_or_else(PoisonError::into_inner);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    let mut next = Instant::now();
    for number in 0..plan.deltas {
        for choice in 0..plan.choices {
            if !plan.every.is_zero() {
                next += plan.every;
                sleep_until(next).await;
            }
            let stamp = meter::stamp(choice, number, shared.clock);
            let delta = match number {
                0 => format!(r#"{{"role":"assistant","content":"{stamp}"}}"#),
                _ => format!(r#"{{"content":"{stamp}"}}"#),
            };
            write(&mut socket, shared, &event(choice, &delta, "null")).await?;
            shared.deltas.fetch_add(1, Relaxed);
        }
    }
    if plan.stays_open {
        let _closed = socket.read_u8().await;
        return Ok(());
    }
    for choice in 0..plan.choices {
        write(&mut socket, shared, &event(choice, "{}", "\"stop\"")).await?;
    }
    write(&mut socket, shared, "data: [DONE]\n\n").await?;
    socket.write_all(b"0\r\n\r\n").await
}

/// An event with the fields that the API sends.
fn event(choice: usize, delta: &str, reason: &str) -> String {
    format!(
        r#"data: {{"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012","object":"chat.completion.chunk","created":1790000000,"model":"gpt-4o-2024-08-06","system_fingerprint":"fp_0123456789","choices":[{{"index":{choice},"delta":{delta},"logprobs":null,"finish_reason":{reason}}}]}}"#
    ) + "\n\n"
}

async fn write(socket: &mut TcpStream, shared: &Shared, event: &str) -> io::Result<()> {
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    shared.bytes.fetch_add(chunk.len() as u64, Relaxed);
    socket.write_all(chunk.as_bytes()).await
}
