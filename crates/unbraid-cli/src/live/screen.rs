//! The terminal while the live view has it, and its way back, whatever happens.

use std::{
    io::{self, Stdout, Write as _},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use crossterm::{
    cursor::{Hide, Show},
    event::EventStream,
    execute,
    terminal::{
        EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend};

use super::view::View;

/// Whether the live view has the terminal.
static OPEN: AtomicBool = AtomicBool::new(false);

/// The alternate screen. Dropping it, a panic on any thread and [`leave`] give the terminal back.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// The keys, if a terminal has them: the standard input may be the stream, and there may be no other.
    pub(super) keys: Option<EventStream>,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        leave_on_panic();
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        OPEN.store(true, Ordering::SeqCst);
        let mut screen = Self {
            terminal,
            keys: None,
        };
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        // A terminal that cannot be made raw gives no keys, and the stream of keys would panic.
        screen.keys = enable_raw_mode().is_ok().then(EventStream::new);
        Ok(screen)
    }

    /// Draws the view, unless the terminal was given back meanwhile.
    pub(super) fn draw(&mut self, view: &mut View) -> io::Result<()> {
        if is_open() {
            self.terminal.draw(|frame| view.draw(frame))?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Whether there is a screen that can be drawn on.
pub(super) fn is_possible() -> bool {
    // A dumb terminal has no screen to draw on, and some that are none say that they have no room.
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        && size().is_ok_and(|(columns, rows)| columns > 0 && rows > 0)
}

pub(super) fn is_open() -> bool {
    OPEN.load(Ordering::SeqCst)
}

/// Gives the terminal back as it was, once.
pub(crate) fn leave() {
    if !OPEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // A terminal that is gone needs nothing.
    let _gone: io::Result<()> = execute!(out, LeaveAlternateScreen, Show);
    let _gone: io::Result<()> = out.flush();
    let _cooked: io::Result<()> = disable_raw_mode();
}

/// A panic is told on the ordinary screen, where it stays.
fn leave_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave();
            tell(panic);
        }));
    });
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
