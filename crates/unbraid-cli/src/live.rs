//! The live view: shows a completion in columns while it streams, if the standard output is a terminal.
//!
//! Commands call only [`show()`]. The [`view`] is a function of events, keys and times, and the loop here supplies all three,
//! so that tests can draw it without a terminal.

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

use crossterm::event::{Event as TerminalEvent, EventStream};
use futures::{FutureExt, StreamExt};
use tokio::time::{self, Instant, MissedTickBehavior};
use unbraid::{AllEvents, Completions, StreamError};

pub(crate) use self::screen::restore_terminal;
use self::{
    screen::Screen,
    view::{KeyAction, View},
};
use crate::{
    args::DisplayArgs,
    lines::{self, Summary},
    output::stdout,
};

/// The time between two frames. More frames would not be visible, and would delay a slow terminal.
const FRAME_INTERVAL: Duration = Duration::from_millis(40);

/// How long a stream must last before the view opens. The view of a recording, which ends at once, would only flicker.
const OPENING_DELAY: Duration = Duration::from_millis(150);

/// Shows a completion as it streams, then prints all of it with a summary, which stays on the terminal.
///
/// `has_keys` is false if the stream itself is typed at the keyboard. The error is the output's.
pub(crate) async fn show(
    completions: &Completions,
    display: DisplayArgs,
    title: &str,
    has_keys: bool,
) -> io::Result<Summary> {
    if display.plain || !has_keys || !io::stdout().is_terminal() || !screen::is_possible() {
        return lines::print_live(completions, &mut stdout()).await;
    }
    let start = Instant::now();
    let is_over = time::timeout(OPENING_DELAY, completions.closed())
        .await
        .is_ok();
    if !is_over || display.stay {
        run_view(completions, display, title, start).await?;
    }
    lines::print_finished(completions, &mut stdout()).await
}

/// Runs the view until the stream is over or the user quits, which cancels the stream.
async fn run_view(
    completions: &Completions,
    display: DisplayArgs,
    title: &str,
    start: Instant,
) -> io::Result<()> {
    let mut screen = Screen::enter()?;
    let mut session = Session {
        view: View::new(title, screen.keys.is_some()),
        start,
        open: true,
    };
    let mut signal = Box::pin(exit_signal()?);
    let mut events = completions.events();
    let mut frames = time::interval(FRAME_INTERVAL);
    // After a late frame the next one still waits a full interval, so that a slow terminal has time to catch up.
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A panic on another thread restores the terminal. This loop ends then, and the lines are still printed.
    while screen::is_open() {
        tokio::select! {
            event = events.next(), if session.open => {
                let cancelled = session.apply_events(event, &mut events);
                let stays = display.stay || session.view.is_used();
                if !session.open && (cancelled || !stays || screen.keys.is_none()) {
                    break;
                }
            }
            event = next_terminal_event(&mut screen.keys) => match event {
                Some(TerminalEvent::Key(key)) => match session.view.press(key) {
                    KeyAction::Quit => {
                        completions.cancel(); // does nothing if the stream is over
                        break;
                    }
                    KeyAction::Redraw => screen.draw(&mut session.view)?,
                    KeyAction::Ignore => {}
                },
                Some(_) => screen.draw(&mut session.view)?,
                // Without keys the view goes on until the stream ends. After that nothing else could close it.
                None if session.open => screen.keys = None,
                None => break,
            },
            _ = frames.tick() => {
                session.view.tick(session.start.elapsed());
                screen.draw(&mut session.view)?;
            }
            code = &mut signal => {
                restore_terminal();
                std::process::exit(code);
            }
        }
    }
    Ok(())
}

/// The view of a stream that is being shown.
struct Session {
    view: View,
    start: Instant,
    /// Whether the stream is not over yet.
    open: bool,
}

impl Session {
    /// Applies an event and all others that are available. Returns true if the stream was cancelled.
    fn apply_events(
        &mut self,
        first: Option<<AllEvents as futures::Stream>::Item>,
        events: &mut AllEvents,
    ) -> bool {
        const MAX_EVENTS: usize = 1024; // so that frames and keys are not delayed
        let now = self.start.elapsed();
        let more = || events.next().now_or_never();
        for event in iter::once(first)
            .chain(iter::from_fn(more))
            .take(MAX_EVENTS)
        {
            let result = match event {
                Some(Ok(event)) => {
                    self.view.apply(&event, now);
                    continue;
                }
                Some(Err(error)) => Err(error),
                None => Ok(()),
            };
            self.open = false;
            let name = result
                .as_ref()
                .map_or_else(StreamError::as_str, |()| "closed");
            self.view.close(name, now);
            return matches!(result, Err(StreamError::Cancelled));
        }
        false
    }
}

/// Returns the next event of the terminal, or `None` if reading it failed. Without keys it waits forever.
async fn next_terminal_event(keys: &mut Option<EventStream>) -> Option<TerminalEvent> {
    match keys {
        Some(keys) => keys.next().await?.ok(),
        None => future::pending().await,
    }
}

/// Waits for a signal that ends the process, and returns its exit code. The caller first restores the terminal, which the
/// default handler of the signal would not do.
#[cfg(unix)]
fn exit_signal() -> io::Result<impl Future<Output = i32>> {
    use tokio::signal::unix::{SignalKind, signal};
    const SIGNAL_BASE: i32 = 128; // the exit code of a shell for a signal is 128 plus its number
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        let kind = tokio::select! {
            _ = terminate.recv() => SignalKind::terminate(),
            _ = hang_up.recv() => SignalKind::hangup(),
        };
        SIGNAL_BASE + kind.as_raw_value()
    })
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the signature on Unix")]
fn exit_signal() -> io::Result<impl Future<Output = i32>> {
    Ok(future::pending())
}
