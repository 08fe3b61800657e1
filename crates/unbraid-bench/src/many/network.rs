//! A thread that plays the network: it makes the events of all connections available at their times.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use bytes::Bytes;
use cpu_time::ThreadTime;
use futures::{Stream, task::AtomicWaker};
use tokio::time::Instant;

use crate::body::{BRAIDED, Shape, numbered};

/// The pace of each completion.
pub(super) const EVENTS_PER_SECOND: usize = 20;

/// How often the network acts. Between two events of a connection it serves the other connections.
const TICK: Duration = Duration::from_millis(10);

const TICKS_PER_EVENT: usize = 100 / EVENTS_PER_SECOND;

/// The longest wait for consumers.
const PATIENCE: Duration = Duration::from_secs(120);

/// One connection, and what its consumers have received.
#[derive(Debug)]
pub(super) struct Connection {
    /// All connections have the same events.
    events: Arc<[Bytes]>,
    /// How many events have arrived.
    arrived: AtomicUsize,
    waker: AtomicWaker,
    items: AtomicUsize,
}

impl Connection {
    pub(super) fn stream(self: &Arc<Self>) -> Reads {
        Reads {
            connection: Arc::clone(self),
            next: 0,
        }
    }

    /// Counts something that a consumer has received.
    pub(super) fn count_item(&self) {
        self.items.fetch_add(1, Relaxed);
    }

    fn items(&self) -> usize {
        self.items.load(Relaxed)
    }

    /// Waits until the consumers have received so many items.
    fn wait_for(&self, items: usize) -> io::Result<()> {
        let mut patience = PATIENCE;
        while self.items() < items {
            patience = patience
                .checked_sub(TICK / 10)
                .ok_or_else(|| io::Error::other("some consumer did not receive every delta"))?;
            thread::sleep(TICK / 10);
        }
        Ok(())
    }

    fn receive(&self, events: usize) {
        self.arrived.fetch_add(events, Release);
        self.waker.wake();
    }
}

/// The reads of a connection: one event each.
#[derive(Debug)]
pub(super) struct Reads {
    connection: Arc<Connection>,
    next: usize,
}

impl Stream for Reads {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.next >= self.connection.arrived.load(Acquire) {
            self.connection.waker.register(cx.waker());
            if self.next >= self.connection.arrived.load(Acquire) {
                return Poll::Pending;
            }
        }
        let read = self.connection.events.get(self.next).cloned();
        self.next += 1;
        Poll::Ready(read.map(Ok))
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Network {
    connections: Vec<Arc<Connection>>,
    choices: usize,
    /// The events of each connection between its opening and its end.
    events: usize,
}

impl Network {
    pub(super) fn new(connections: usize, choices: usize, events: usize) -> Self {
        let shape = Shape { choices, ..BRAIDED };
        let all = numbered(events, shape);
        let all: Arc<[Bytes]> = all.into_iter().map(|event| event.bytes).collect();
        let connection = |_| {
            Arc::new(Connection {
                events: Arc::clone(&all),
                arrived: AtomicUsize::new(0),
                waker: AtomicWaker::new(),
                items: AtomicUsize::new(0),
            })
        };
        Self {
            connections: (0..connections).map(connection).collect(),
            choices,
            events,
        }
    }

    pub(super) fn connections(&self) -> &[Arc<Connection>] {
        &self.connections
    }

    /// Opens all choices, and gives the tasks time to read that.
    pub(super) fn open(&self) -> io::Result<()> {
        for connection in &self.connections {
            connection.receive(self.choices);
        }
        let mut last = cpu_time::ProcessTime::now();
        loop {
            thread::sleep(20 * TICK);
            let busy = last.elapsed() > TICK;
            last = cpu_time::ProcessTime::now();
            if !busy {
                return Ok(());
            }
        }
    }

    /// Sends the events at their times, and waits until all have been received. Returns the CPU time that sending took.
    pub(super) fn play(&self) -> io::Result<Duration> {
        let before: Vec<usize> = self.connections.iter().map(|c| c.items()).collect();
        let sent = thread::scope(|scope| scope.spawn(|| self.send(&before)).join());
        let spent = sent.map_err(|_| io::Error::other("the network panicked"))??;
        for (connection, before) in self.connections.iter().zip(before) {
            connection.wait_for(before + self.events)?;
        }
        Ok(spent)
    }

    /// A connection gets its next event when the last one has been received, so that events do not gather in one read if
    /// the machine is too slow, or under a profiler.
    fn send(&self, before: &[usize]) -> io::Result<Duration> {
        let started = ThreadTime::now();
        let mut next = Instant::now();
        for tick in 0..self.events * TICKS_PER_EVENT {
            next += TICK;
            thread::sleep(next.saturating_duration_since(Instant::now()));
            let turn = self.connections.iter().zip(before);
            let turn = turn.skip(tick % TICKS_PER_EVENT);
            for (connection, before) in turn.step_by(TICKS_PER_EVENT) {
                connection.wait_for(before + tick / TICKS_PER_EVENT)?;
                connection.receive(1);
            }
        }
        Ok(started.elapsed())
    }
}
