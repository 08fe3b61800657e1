//! The loop of the live view: applies events, handles keys, and draws frames.

use std::{future, io, iter, time::Duration};

use crossterm::event::{Event as TerminalEvent, EventStream};
use futures::{FutureExt, StreamExt};
use tokio::time::{self, Instant, MissedTickBehavior};
use unbraid::{AllEvents, Completions, StreamError};

use super::{
    screen::{self, Screen, restore_terminal},
    view::{KeyAction, View},
};

/// The time between two frames. More frames would not be visible, and would delay a slow terminal.
const FRAME_INTERVAL: Duration = Duration::from_millis(40);

/// The view of a stream that is being shown.
pub(super) struct Session {
    pub(super) view: View,
    events: AllEvents,
    /// Whether the stream is not over yet.
    open: bool,
    start: Instant,
    /// How long the stream has been paused, and since when it is now.
    paused: Duration,
    paused_since: Option<Instant>,
}

impl Session {
    pub(super) fn new(view: View, completions: &Completions) -> Self {
        Self {
            view,
            events: completions.events(),
            open: true,
            start: Instant::now(),
            paused: Duration::ZERO,
            paused_since: None,
        }
    }

    /// Runs the view until the stream is over or the user quits, which cancels the stream. With `stay` the user has to quit.
    pub(super) async fn run(&mut self, completions: &Completions, stay: bool) -> io::Result<()> {
        let mut screen = Screen::enter()?;
        self.view.set_has_keys(screen.keys.is_some());
        let mut signal = Box::pin(exit_signal()?);
        let mut resumptions = Resumptions::new()?;
        let mut frames = time::interval(FRAME_INTERVAL);
        let mut waits_for_cancel = true;
        // After a late frame the next one still waits a full interval, so that a slow terminal has time to catch up.
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A panic on another thread restores the terminal. This loop ends then, and the summary is still printed.
        while screen::is_open() {
            let frozen = self.view.is_frozen();
            tokio::select! {
                event = self.events.next(), if self.open && !frozen => {
                    let cancelled = self.apply_events(event);
                    let stays = stay || self.view.is_used();
                    if !self.open && (cancelled || !stays || screen.keys.is_none()) {
                        break;
                    }
                }
                // While the view is frozen, a cancellation by a signal must still end it.
                closed = completions.closed(), if frozen && waits_for_cancel => {
                    waits_for_cancel = false;
                    if matches!(closed, Err(StreamError::Cancelled)) {
                        self.view.unfreeze();
                    }
                }
                event = next_terminal_event(&mut screen.keys) => match event {
                    Some(TerminalEvent::Key(key)) => match self.press(key) {
                        KeyAction::Quit => {
                            completions.cancel(); // does nothing if the stream is over
                            break;
                        }
                        KeyAction::Redraw => screen.draw(&mut self.view)?,
                        KeyAction::Ignore => {}
                    },
                    Some(_) => screen.draw(&mut self.view)?,
                    // Without keys the view goes on until the stream ends. After that nothing else could close it.
                    None if self.open => {
                        screen.keys = None;
                        self.view.set_has_keys(false);
                        self.view.resume();
                    }
                    None => break,
                },
                _ = frames.tick() => {
                    self.view.tick(self.now());
                    screen.draw(&mut self.view)?;
                }
                () = resumptions.next() => {
                    screen.reopen()?;
                    screen.draw(&mut self.view)?;
                }
                code = &mut signal => {
                    restore_terminal();
                    std::process::exit(code);
                }
            }
        }
        Ok(())
    }

    /// Applies what arrives within this time, without a screen. Returns whether the stream is over.
    pub(super) async fn apply_for(&mut self, limit: Duration) -> bool {
        let deadline = self.start + limit;
        while self.open
            && let Ok(event) = time::timeout_at(deadline, self.events.next()).await
        {
            self.apply_events(event);
        }
        !self.open
    }

    /// Applies everything up to the end of the stream.
    pub(super) async fn finish(&mut self) {
        self.view.unfreeze();
        while self.open {
            let event = self.events.next().await;
            self.apply_events(event);
        }
    }

    /// The time since the start, without pauses.
    fn now(&self) -> Duration {
        let until = self.paused_since.unwrap_or_else(Instant::now);
        until
            .saturating_duration_since(self.start)
            .saturating_sub(self.paused)
    }

    fn press(&mut self, key: crossterm::event::KeyEvent) -> KeyAction {
        let action = self.view.press(key);
        match (self.view.is_paused(), self.paused_since) {
            (true, None) => self.paused_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.paused += since.elapsed();
                self.paused_since = None;
            }
            _ => {}
        }
        action
    }

    /// Applies an event and all others that are available. Returns true if the stream was cancelled.
    fn apply_events(&mut self, first: Option<<AllEvents as futures::Stream>::Item>) -> bool {
        const MAX_EVENTS: usize = 1024; // so that frames and keys are not delayed
        let now = self.now();
        let Self {
            view, events, open, ..
        } = self;
        let more = || events.next().now_or_never();
        for event in iter::once(first)
            .chain(iter::from_fn(more))
            .take(MAX_EVENTS)
        {
            let result = match event {
                Some(Ok(event)) => {
                    view.apply(&event, now);
                    continue;
                }
                Some(Err(error)) => Err(error),
                None => Ok(()),
            };
            *open = false;
            let name = result
                .as_ref()
                .map_or_else(StreamError::as_str, |()| "closed");
            view.close(name, now);
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
pub(crate) fn exit_signal() -> io::Result<impl Future<Output = i32>> {
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
pub(crate) fn exit_signal() -> io::Result<impl Future<Output = i32>> {
    Ok(future::pending())
}

/// When the process goes on after it was stopped.
#[cfg(unix)]
struct Resumptions(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Resumptions {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let kind = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        Ok(Self(signal(kind)?))
    }

    async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            future::pending().await
        }
    }
}

#[cfg(not(unix))]
struct Resumptions;

#[cfg(not(unix))]
impl Resumptions {
    #[expect(clippy::unnecessary_wraps, reason = "the signature on Unix")]
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        future::pending().await
    }
}
