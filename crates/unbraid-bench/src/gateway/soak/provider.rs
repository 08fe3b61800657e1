//! A provider that fails as the seed in the request says.

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::sleep,
};

use super::fault::{Plan, Upstream};
use crate::random::Random;

#[derive(Debug)]
pub(super) struct Provider {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    /// Requests by seed, until a client asks for their number.
    requests: Mutex<HashMap<u64, usize>>,
    open: AtomicUsize,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Provider {
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            // Too many open files are the only expected error, and pass.
            loop {
                let Ok((socket, _)) = listener.accept().await else {
                    sleep(Duration::from_millis(10)).await;
                    continue;
                };
                let shared = Arc::clone(&accepting);
                tokio::spawn(async move {
                    shared.open.fetch_add(1, Ordering::SeqCst);
                    let _left = serve(socket, &shared).await;
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(Self {
            address,
            shared,
            task: task.abort_handle(),
        })
    }

    /// How many requests with this seed have arrived. It is forgotten then.
    pub(super) fn requests(&self, seed: u64) -> usize {
        self.shared.requests().remove(&seed).unwrap_or(0)
    }

    /// How many connections are open.
    pub(super) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn requests(&self) -> std::sync::MutexGuard<'_, HashMap<u64, usize>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a request, and returns the seed in its body.
async fn seed(socket: &mut TcpStream) -> io::Result<u64> {
    let mut bytes = Vec::new();
    loop {
        let seed = memchr::memmem::find(&bytes, b"\"seed\":");
        let number = seed.and_then(|at| bytes.get(at + 7..));
        if let Some((number, _)) = number.and_then(|rest| {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
            rest.split_at_checked(end)
        }) {
            let number = str::from_utf8(number).unwrap_or_default().parse();
            return number.map_err(io::Error::other);
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A body of one chunk that is longer than what is sent, so that its end is an error.
const SSE_OF_MANY_BYTES: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nffffff\r\n";

async fn serve(mut socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let seed = seed(&mut socket).await?;
    *shared.requests().entry(seed).or_default() += 1;
    let plan = Plan::of(seed);
    match plan.upstream {
        Upstream::Hangup => return Ok(()),
        Upstream::Silent => return until_closed(&mut socket).await,
        Upstream::NotHttp => {
            return socket
                .write_all(b"\0\x01\x02 this is not HTTP \r\n\r\n\r\n")
                .await;
        }
        Upstream::Refuses => {
            let answer = b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: 37\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"slow down, now\"}}";
            return socket.write_all(answer).await;
        }
        Upstream::RefusesHalf => {
            let answer = b"HTTP/1.1 500 No\r\ncontent-type: application/json\r\ncontent-length: 9999\r\nconnection: close\r\n\r\n{\"error\":";
            socket.write_all(answer).await?;
            return until_closed(&mut socket).await;
        }
        Upstream::Whole => return whole(&mut socket, plan).await,
        Upstream::Cut => socket.write_all(SSE_OF_MANY_BYTES.as_bytes()).await?,
        _ => socket.write_all(SSE.as_bytes()).await?,
    }
    events(&mut socket, plan, seed).await?;
    match plan.upstream {
        Upstream::Complete => {
            for choice in 0..plan.choices {
                let reason = event(choice, "{}", "\"stop\"");
                socket.write_all(reason.as_bytes()).await?;
            }
            socket.write_all(b"data: [DONE]\n\n").await
        }
        Upstream::Cut => socket.write_all(b"data: {\"choices\":[{\"in").await,
        Upstream::Stalls => until_closed(&mut socket).await,
        Upstream::Garbage => {
            let mut random = Random::new(seed);
            let bytes: Vec<u8> = (0..5000).map(|_| random.below(256) as u8).collect();
            socket.write_all(&bytes).await
        }
        Upstream::Error => {
            let error = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
            socket.write_all(error.as_bytes()).await
        }
        Upstream::TooLong => {
            let long = event(
                0,
                &format!(r#"{{"content":"{}"}}"#, "x".repeat(20_000)),
                "null",
            );
            for _ in 0..40 {
                socket.write_all(long.as_bytes()).await?;
            }
            until_closed(&mut socket).await
        }
        _ => Ok(()),
    }
}

/// The numbered texts of all choices, some of them in one write.
async fn events(socket: &mut TcpStream, plan: Plan, seed: u64) -> io::Result<()> {
    let mut random = Random::new(seed ^ 0xABCD);
    let mut wire = String::new();
    for number in 0..plan.events {
        let text = format!(
            r#"{{"content":"w{number} {}"}}"#,
            "x".repeat(random.below(60))
        );
        wire.push_str(&event(number % plan.choices, &text, "null"));
        if random.below(3) == 0 {
            // The cut is anywhere.
            let rest = wire.split_off(random.below(wire.len()));
            socket.write_all(wire.as_bytes()).await?;
            wire = rest;
            if random.below(4) == 0 {
                sleep(Duration::from_millis(random.below(8) as u64)).await;
            }
        }
    }
    socket.write_all(wire.as_bytes()).await
}

async fn whole(socket: &mut TcpStream, plan: Plan) -> io::Result<()> {
    let entry = |index| {
        format!(
            r#"{{"index":{index},"message":{{"role":"assistant","content":"a"}},"finish_reason":"stop"}}"#
        )
    };
    let entries: Vec<String> = (0..plan.choices).map(entry).collect();
    let body = format!(
        r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{}]}}"#,
        entries.join(",")
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).await
}

fn event(choice: usize, delta: &str, reason: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":{choice},\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
    )
}

async fn until_closed(socket: &mut TcpStream) -> io::Result<()> {
    let mut rest = [0; 256];
    while socket.read(&mut rest).await? > 0 {}
    Ok(())
}
