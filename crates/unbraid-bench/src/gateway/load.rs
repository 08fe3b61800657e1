//! The client: it opens the generations evenly over the ramp, and reads all of them in one thread.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{Clock, block_on, meter::Meter, upstream::Plan};

/// Where and how a candidate is reached.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    /// Further lines of the request's head.
    pub(super) headers: &'static str,
}

impl Target {
    pub(super) fn request(&self, choices: usize) -> Vec<u8> {
        let body = format!(
            r#"{{"model":"m","n":{choices},"stream":true,"messages":[{{"role":"user","content":"Name a colour."}}]}}"#
        );
        let (headers, length) = (self.headers, body.len());
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk-bench\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        )
        .into_bytes()
    }
}

/// A load that runs in a thread.
#[derive(Debug)]
pub(super) struct Load {
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<Tally>>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    /// The latencies of deltas that were stamped in this interval are kept.
    from: AtomicU64,
    until: AtomicU64,
    latencies: Mutex<Vec<u64>>,
    received: AtomicU64,
    /// The latency of the last delta.
    last: AtomicU64,
}

/// What all clients have received.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    pub(super) deltas: u64,
    pub(super) bytes: u64,
    /// Deltas that are missing, repeated or out of order.
    pub(super) wrong: u64,
    /// Answers without their end.
    pub(super) incomplete: u64,
}

impl Load {
    /// Opens so many generations, and reads each to its end, or until `limit` is over.
    pub(super) fn start(
        target: &Target,
        plan: Plan,
        generations: u32,
        ramp: Duration,
        limit: Duration,
        clock: Clock,
    ) -> Self {
        let shared = Arc::new(Shared {
            clock,
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(u64::MAX),
            latencies: Mutex::default(),
            received: AtomicU64::new(0),
            last: AtomicU64::new(0),
        });
        let (reading, target) = (Arc::clone(&shared), target.clone());
        let run = move || block_on(run(target, plan, generations, ramp, limit, reading))?;
        let thread = thread::spawn(run);
        Self { shared, thread }
    }

    /// Keeps the latencies of deltas that are stamped from now on.
    pub(super) fn begin(&self) {
        self.shared.from.store(self.shared.clock.nanos(), Relaxed);
    }

    /// Keeps no latencies of deltas that are stamped later.
    pub(super) fn end(&self) {
        self.shared.until.store(self.shared.clock.nanos(), Relaxed);
    }

    pub(super) fn received(&self) -> u64 {
        self.shared.received.load(Relaxed)
    }

    /// The latency of the last delta that arrived.
    pub(super) fn last_latency(&self) -> Duration {
        Duration::from_nanos(self.shared.last.load(Relaxed))
    }

    pub(super) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end. Returns the tally, and the latencies in nanoseconds, sorted.
    pub(super) fn finish(self) -> io::Result<(Tally, Vec<u64>)> {
        let panicked = |_| io::Error::other("the load panicked");
        let tally = self.thread.join().map_err(panicked)??;
        let mut latencies = self
            .shared
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        latencies.sort_unstable();
        Ok((tally, std::mem::take(&mut latencies)))
    }
}

async fn run(
    target: Target,
    plan: Plan,
    generations: u32,
    ramp: Duration,
    limit: Duration,
    shared: Arc<Shared>,
) -> io::Result<Tally> {
    let request: Arc<[u8]> = target.request(plan.choices).into();
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for number in 0..generations {
        sleep_until(started + ramp * number / generations).await;
        let (request, shared) = (Arc::clone(&request), Arc::clone(&shared));
        let address = target.address;
        clients.spawn(async move {
            let mut meter = Meter::default();
            let read = client(address, &request, &shared, &mut meter);
            let left = limit.saturating_sub(started.elapsed());
            // Whatever ended it, the meter says what is missing.
            let _ended = timeout(left, read).await;
            meter
        });
    }
    let mut tally = Tally::default();
    while let Some(meter) = clients.join_next().await {
        let meter = meter.map_err(io::Error::other)?;
        tally.deltas += meter.deltas;
        tally.bytes += meter.bytes;
        tally.wrong += meter.wrong + plan.total().abs_diff(meter.deltas);
        tally.incomplete += u64::from(!meter.is_done);
    }
    Ok(tally)
}

async fn client(
    address: SocketAddr,
    request: &[u8],
    shared: &Shared,
    meter: &mut Meter,
) -> io::Result<()> {
    let mut socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    socket.write_all(request).await?;
    let mut buffer = vec![0; 16 * 1024];
    let mut head = Vec::new();
    loop {
        let read = socket.read(&mut buffer).await?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(body) = after_head(&mut head, bytes) {
            meter.read(body, |stamp| shared.received(stamp));
        }
        if meter.is_done {
            return Ok(());
        }
    }
}

/// What a read has of the body. `head` is what was read of the head, and `b"\n"` once it is complete.
fn after_head<'a>(head: &mut Vec<u8>, bytes: &'a [u8]) -> Option<&'a [u8]> {
    if head == b"\n" {
        return Some(bytes);
    }
    let before = head.len();
    head.extend_from_slice(bytes);
    let end = memchr::memmem::find(head, b"\r\n\r\n")? + 4;
    *head = b"\n".to_vec();
    bytes.get(end - before..)
}

impl Shared {
    /// Takes the stamp of a delta that has arrived now.
    fn received(&self, stamp: u64) {
        let latency = self.clock.nanos().saturating_sub(stamp);
        self.received.fetch_add(1, Relaxed);
        self.last.store(latency, Relaxed);
        if (self.from.load(Relaxed)..self.until.load(Relaxed)).contains(&stamp) {
            let mut latencies = self
                .latencies
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            latencies.push(latency);
        }
    }
}
