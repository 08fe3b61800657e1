//! The terminal while the live view uses it. It is restored in every case, even after a panic.

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

/// Whether the live view uses the terminal. It is global because the panic hook and Ctrl-C restore the terminal too.
static OPEN: AtomicBool = AtomicBool::new(false);

/// The alternate screen. Dropping it, a panic on any thread and [`restore_terminal`] restore the terminal.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// The keys, if there is a terminal to read them from. The standard input may be the stream, and the process may have no
    /// controlling terminal.
    pub(super) keys: Option<EventStream>,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        restore_on_panic();
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        // Set before the first escape sequence is written, so that a panic or signal right after it restores the terminal.
        OPEN.store(true, Ordering::SeqCst);
        let mut screen = Self {
            terminal,
            keys: None,
        };
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        // Without a terminal to read keys from, raw mode fails, and `EventStream::new` would panic.
        screen.keys = enable_raw_mode().is_ok().then(EventStream::new);
        Ok(screen)
    }

    /// Takes the terminal again after the process was stopped. A shell has used it meanwhile, and has set its modes.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if !is_open() {
            return Ok(());
        }
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        if self.keys.is_some() {
            // Otherwise the terminal is taken to be in raw mode already.
            disable_raw_mode()?;
            enable_raw_mode()?;
        }
        // Unlike `clear`, this does not ask the terminal for the place of its cursor.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Draws the view, unless the terminal has been restored.
    pub(super) fn draw(&mut self, view: &mut View) -> io::Result<()> {
        if is_open() {
            self.terminal.draw(|frame| view.draw(frame))?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Whether the terminal can show the view.
pub(super) fn is_possible() -> bool {
    // A dumb terminal has no alternate screen, and some outputs that claim to be a terminal report a size of zero.
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        && size().is_ok_and(|(columns, rows)| columns > 0 && rows > 0)
}

pub(super) fn is_open() -> bool {
    OPEN.load(Ordering::SeqCst)
}

/// Restores the terminal. Further calls do nothing.
pub(crate) fn restore_terminal() {
    // The swap lets only one caller write the sequences: a panic and Ctrl-C may come at the same time.
    if !OPEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // Errors mean that the terminal has been closed, and then there is nothing to restore.
    let _closed: io::Result<()> = execute!(out, LeaveAlternateScreen, Show);
    let _closed: io::Result<()> = out.flush();
    let _closed: io::Result<()> = disable_raw_mode();
}

/// Restores the terminal before a panic is reported, because a message on the alternate screen would vanish with it.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous_hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            previous_hook(panic);
        }));
    });
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
