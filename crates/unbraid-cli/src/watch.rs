//! `unbraid watch`: the choices as they stream, and how each of them ended.

mod calls;
mod lines;
mod pace;
mod show;
mod summary;
mod tap;

use std::{
    future::Future,
    io::{self, Write},
    task::Poll,
};

use futures::future::maybe_done;
use tokio::{
    io::AsyncRead,
    runtime, signal,
    task::{AbortHandle, JoinHandle},
};
use unbraid::Completions;

pub(crate) use pace::events;
pub(crate) use show::{color, recount, show};
pub(crate) use summary::Shown;
pub(crate) use tap::Head;

use crate::{
    args::Reading,
    exit::{self, Failure, Status},
    input::Source,
    live::{self, Display},
};
use tap::Tap;

/// Watches an input; with a speed, so many of its events a second.
pub(crate) fn run(
    source: &Source,
    reading: &Reading,
    speed: Option<f64>,
    display: Display,
) -> Result<Status, Failure> {
    block_on(async {
        let input = source.open_async().await;
        let input = input.map_err(|error| Failure::open(source, error))?;
        let (tap, head) = Tap::new(input);
        let completions = read(tap, reading, speed);
        let _interrupt = Interrupt::cancels(&completions).await;
        let shown = live::show(
            &completions,
            display,
            &source.to_string(),
            !source.is_typed(),
        )
        .await;
        let shown = shown.map_err(Failure::Output)?;
        Ok(exit::tell(source, &shown.outcome(&head.bytes())))
    })
}

fn read(
    input: impl AsyncRead + Send + Unpin + 'static,
    reading: &Reading,
    speed: Option<f64>,
) -> Completions {
    match speed {
        Some(speed) => reading
            .builder()
            .from_byte_stream(pace::paced(input, speed)),
        None => reading.builder().from_reader(input),
    }
}

/// The standard output, with colours if it is a terminal and nobody asked for none.
pub(crate) fn stdout() -> impl Write {
    anstream::stdout().lock()
}

/// Runs a command that needs a runtime, on this thread, which may block: the actors have threads of their own.
pub(crate) fn block_on(
    command: impl Future<Output = Result<Status, Failure>>,
) -> Result<Status, Failure> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let result = runtime.block_on(command);
    // A read of the standard input cannot be called off; the process does not wait for it.
    runtime.shutdown_background();
    result
}

/// Cancels a completion at Ctrl-C, as long as it lives.
#[derive(Debug)]
pub(crate) struct Interrupt(AbortHandle);

impl Interrupt {
    pub(crate) async fn cancels(completions: &Completions) -> Self {
        let completions = completions.clone();
        let mut first = Box::pin(maybe_done(signal::ctrl_c()));
        // The first poll installs the handler: from here on, not from when the task gets its turn.
        let _asked: Poll<()> = futures::poll!(&mut first);
        let waiting: JoinHandle<io::Result<()>> = tokio::spawn(async move {
            first.as_mut().await;
            first.as_mut().take_output().unwrap_or(Ok(()))?;
            completions.cancel();
            // The first one leaves time for the summary. Whoever asks again waits for a reader that reads no more.
            signal::ctrl_c().await?;
            live::leave();
            std::process::exit(exit::UNFINISHED.into());
        });
        Self(waiting.abort_handle())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.abort();
    }
}
