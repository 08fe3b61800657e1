//! The threads of a server, each with a runtime of its own.
//!
//! A delta passes through three tasks: the connection to the upstream, the generation and the connection to the client. In a
//! runtime with several threads, each task that wakes another one may also wake a thread, which costs more than the delta. Here
//! all tasks of a connection share a thread, and a delta crosses none.

use std::{
    convert::Infallible,
    io,
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use tokio::{
    net::TcpStream,
    runtime::{Builder, Handle},
    sync::oneshot,
};

use super::connection::Connection;

/// Threads that run until this is dropped. Then their tasks are dropped, too.
#[derive(Debug)]
pub(super) struct Workers(Vec<Worker>);

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    connections: Arc<AtomicUsize>,
    /// Nothing is sent: the thread ends when it is dropped.
    _stop: oneshot::Sender<Infallible>,
}

/// A place of a connection on a worker. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// Starts the threads.
    pub(super) fn start(count: NonZero<usize>) -> io::Result<Self> {
        let workers = (0..count.get()).map(Worker::start);
        workers.collect::<io::Result<_>>().map(Self)
    }

    /// Takes a place on the worker with the fewest connections.
    pub(super) fn place(&self) -> Option<(Handle, Place)> {
        let connections = |worker: &&Worker| worker.connections.load(Ordering::Relaxed);
        let worker = self.0.iter().min_by_key(connections)?;
        worker.connections.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&worker.connections));
        Some((worker.runtime.clone(), place))
    }
}

/// Serves a connection that another runtime has accepted.
pub(super) async fn serve(connection: Connection, socket: TcpStream, place: Place) {
    let _place = place;
    // Its events are to arrive in this runtime.
    let moved = socket.into_std().and_then(TcpStream::from_std);
    match moved {
        Ok(socket) => connection.serve(socket).await,
        Err(error) => tracing::warn!(%error, "a connection could not be served"),
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let (started, runtime) = mpsc::channel();
        // The runtime is built in its thread: it must not be dropped in this one, which may run async code, if the thread fails.
        let run = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(error))),
            };
            if started.send(Ok(runtime.handle().clone())).is_err() {
                return;
            }
            let _stopped = runtime.block_on(stopped);
            // What decodes an answer for a reader that has gone must not delay the end.
            runtime.shutdown_background();
        };
        thread::Builder::new()
            .name(format!("unbraid-worker-{number}"))
            .spawn(run)?;
        let runtime = runtime.recv().map_err(io::Error::other)??;
        Ok(Self {
            runtime,
            connections: Arc::default(),
            _stop: stop,
        })
    }
}
