//! The live view: a completion in columns while it streams, where the standard output is a terminal.
//!
//! [`show()`] is all that a command needs. The picture ([`view`]) is drawn from events and keys alone; the loop here
//! brings both, and the clock.

mod grid;
mod pane;
mod rate;
mod screen;
mod text;
mod view;
mod wrap;

use std::{
    future,
    io::{self, IsTerminal},
    iter,
    time::Duration,
};

use crossterm::event::{Event as Input, EventStream};
use futures::{FutureExt, StreamExt};
use tokio::time::{self, Instant, MissedTickBehavior};
use unbraid::{AllEvents, Completions, StreamError};

pub(crate) use screen::leave;

use self::{
    screen::Screen,
    view::{Pressed, View},
};
use crate::watch::{self, Shown, stdout};

/// How a completion is shown, as the command line says.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Display {
    /// Print lines, as when the output is no terminal
    #[arg(long)]
    plain: bool,
    /// Keep the view open when the stream is over, until q is pressed
    #[arg(long, conflicts_with = "plain")]
    stay: bool,
}

/// Time between two pictures: a terminal shows no more, and a slow one no faster.
const FRAME: Duration = Duration::from_millis(40);

/// Time after which a stream is worth a picture; nobody notices the delay.
const MOMENT: Duration = Duration::from_millis(150);

/// Shows a completion as it streams, then all of it and how each choice ended, so that this stays on the terminal.
///
/// `keys` says whether the keyboard is free: it is not where the stream itself is typed. The error is the output's.
pub(crate) async fn show(
    completions: &Completions,
    display: Display,
    title: &str,
    keys: bool,
) -> io::Result<Shown> {
    if display.plain || !keys || !io::stdout().is_terminal() || !screen::is_possible() {
        return watch::show(completions, &mut stdout()).await;
    }
    // A recording is read in no time: a picture of it would only flicker.
    let start = Instant::now();
    let over = time::timeout(MOMENT, completions.closed()).await.is_ok();
    if !over || display.stay {
        view(completions, display, title, start).await?;
    }
    watch::recount(completions, &mut stdout()).await
}

/// Has the terminal until the stream is over, or somebody has seen enough: then what is open is cancelled.
async fn view(
    completions: &Completions,
    display: Display,
    title: &str,
    start: Instant,
) -> io::Result<()> {
    let mut screen = Screen::enter()?;
    let mut show = Show {
        view: View::new(title, screen.keys.is_some()),
        start,
        open: true,
    };
    let mut ended = Box::pin(ended_by_signal()?);
    let mut events = completions.events();
    let mut frames = time::interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A panic elsewhere has given the terminal back; what it left is still to be told.
    while screen::is_open() {
        tokio::select! {
            event = events.next(), if show.open => {
                let leaves = show.take(event, &mut events);
                let stays = display.stay || show.view.is_used();
                if !show.open && (leaves || !stays || screen.keys.is_none()) {
                    break;
                }
            }
            input = next(&mut screen.keys) => match input {
                Some(Input::Key(key)) => match show.view.press(key) {
                    Pressed::Quit => {
                        completions.cancel(); // nothing, if the stream is over
                        break;
                    }
                    Pressed::Seen => screen.draw(&mut show.view)?,
                    Pressed::Unknown => {}
                },
                Some(_) => screen.draw(&mut show.view)?,
                None if show.open => screen.keys = None,
                None => break,
            },
            _ = frames.tick() => {
                show.view.tick(show.start.elapsed());
                screen.draw(&mut show.view)?;
            }
            code = &mut ended => {
                leave();
                std::process::exit(code);
            }
        }
    }
    Ok(())
}

struct Show {
    view: View,
    start: Instant,
    /// The stream is not over.
    open: bool,
}

impl Show {
    /// Takes an event and those behind it that are there; true if the stream was called off.
    fn take(
        &mut self,
        first: Option<<AllEvents as futures::Stream>::Item>,
        events: &mut AllEvents,
    ) -> bool {
        const AT_ONCE: usize = 1024; // then a picture, and the keys
        let now = self.start.elapsed();
        let more = || events.next().now_or_never();
        for event in iter::once(first).chain(iter::from_fn(more)).take(AT_ONCE) {
            let how = match event {
                Some(Ok(stamped)) => {
                    self.view.apply(&stamped, now);
                    continue;
                }
                Some(Err(error)) => Err(error),
                None => Ok(()),
            };
            self.open = false;
            let name = how.as_ref().map_or_else(StreamError::as_str, |()| "closed");
            self.view.close(name, now);
            return matches!(how, Err(StreamError::Cancelled));
        }
        false
    }
}

/// The next input; `None` once it has failed, never if there is none.
async fn next(keys: &mut Option<EventStream>) -> Option<Input> {
    match keys {
        Some(keys) => keys.next().await?.ok(),
        None => future::pending().await,
    }
}

/// Waits for a signal that ends the process, and gives its exit code: first the terminal is given back.
#[cfg(unix)]
fn ended_by_signal() -> io::Result<impl Future<Output = i32>> {
    use tokio::signal::unix::{SignalKind, signal};
    const SIGNALLED: i32 = 128; // what a shell adds to the signal's number
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        let kind = tokio::select! {
            _ = terminate.recv() => SignalKind::terminate(),
            _ = hang_up.recv() => SignalKind::hangup(),
        };
        SIGNALLED + kind.as_raw_value()
    })
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn ended_by_signal() -> io::Result<impl Future<Output = i32>> {
    Ok(future::pending())
}
