//! A terminal for a program under test: a pseudo-terminal, and a screen that understands what is written to it.

use std::{
    ffi::OsStr,
    fmt,
    io::{Read, Write},
    num::NonZeroU16,
    process::{Child, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use pty_process::{
    Size,
    blocking::{Command, Pty, open},
};
use vt100::{Parser, Screen};

/// Far beyond what any program takes to draw; a hang becomes a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program in a terminal. Dropping it kills the program.
pub struct Terminal {
    pty: Arc<Pty>,
    shown: Arc<Shown>,
    child: Child,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

/// What the program has written so far.
struct Shown {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: Parser,
    written: Vec<u8>,
    over: bool,
}

/// What a program left behind.
#[derive(Debug)]
pub struct Left {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Everything that it has written, escape sequences included.
    pub written: String,
    /// What stands on the screen.
    pub contents: String,
    /// Whether the ordinary screen is shown again, with its cursor.
    pub restored: bool,
}

impl Terminal {
    /// Runs a program in a terminal of so many rows and columns.
    ///
    /// # Panics
    ///
    /// If the system gives no pseudo-terminal, or the program does not start.
    pub fn run<A: AsRef<OsStr>>(
        program: &str,
        args: impl IntoIterator<Item = A>,
        size: (u16, u16),
    ) -> Self {
        Self::run_with_stdin(program, args, size, None)
    }

    /// The same, but the standard input is another one; the keys still come from the terminal.
    ///
    /// # Panics
    ///
    /// If the system gives no pseudo-terminal, or the program does not start.
    pub fn run_with_stdin<A: AsRef<OsStr>>(
        program: &str,
        args: impl IntoIterator<Item = A>,
        (rows, columns): (u16, u16),
        stdin: Option<Stdio>,
    ) -> Self {
        let (pty, pts) = open().expect("a pseudo-terminal");
        pty.resize(Size::new(rows, columns)).expect("it has a size");
        let mut command = Command::new(program)
            .args(args)
            .env("TERM", "xterm-256color");
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command = command.env_remove(variable);
        }
        if let Some(stdin) = stdin {
            command = command.stdin(stdin);
        }
        let child = command.spawn(pts).expect("the program starts");
        let pty = Arc::new(pty);
        let shown = Arc::new(Shown {
            state: Mutex::new(State {
                parser: Parser::new(cells(rows), cells(columns), 1000),
                written: Vec::new(),
                over: false,
            }),
            changed: Condvar::new(),
        });
        let (reader, writer) = (Arc::clone(&pty), Arc::clone(&shown));
        thread::spawn(move || writer.read(&reader));
        Self { pty, shown, child }
    }

    /// The other end of its standard input, if it is a pipe.
    pub fn stdin(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// The id of the program's process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Presses keys.
    ///
    /// # Panics
    ///
    /// If the terminal is gone.
    pub fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Makes the terminal larger or smaller.
    ///
    /// # Panics
    ///
    /// If the terminal is gone.
    pub fn resize(&self, (rows, columns): (u16, u16)) {
        let mut state = self.shown.lock();
        state.parser.set_size(cells(rows), cells(columns));
        self.pty
            .resize(Size::new(rows, columns))
            .expect("a terminal");
    }

    /// Waits until the screen shows what is wanted, and gives its text.
    ///
    /// # Panics
    ///
    /// If it never does.
    #[track_caller]
    pub fn wait(&self, wanted: impl Fn(&Screen) -> bool) -> String {
        let state = self.shown.lock();
        let waits = |state: &mut State| !wanted(state.parser.screen()) && !state.over;
        let waited = self
            .shown
            .changed
            .wait_timeout_while(state, PATIENCE, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let screen = state.parser.screen();
        assert!(wanted(screen), "never came:\n{}", screen.contents());
        screen.contents()
    }

    /// Waits until the screen has a text.
    ///
    /// # Panics
    ///
    /// If it never has.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(|screen| screen.contents().contains(text))
    }

    /// Waits for the end of the program.
    ///
    /// # Panics
    ///
    /// If it does not end.
    #[track_caller]
    pub fn end(mut self) -> Left {
        let state = self.shown.lock();
        let waited = self
            .shown
            .changed
            .wait_timeout_while(state, PATIENCE, |s| !s.over);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let screen = state.parser.screen();
        assert!(state.over, "it goes on:\n{}", screen.contents());
        let (contents, written) = (screen.contents(), String::from_utf8_lossy(&state.written));
        let (restored, written) = (
            !screen.alternate_screen() && !screen.hide_cursor(),
            written.into_owned(),
        );
        drop(state);
        let code = self.child.wait().expect("it has ended").code();
        Left {
            code,
            written,
            contents,
            restored,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended_before: std::io::Result<()> = self.child.kill();
        let _reaped: std::io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

impl Shown {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut pty: &Pty) {
        let mut buffer = [0; 4096];
        // Linux reports the end of the last program as an error.
        while let Ok(n @ 1..) = pty.read(&mut buffer) {
            let read = buffer.get(..n).unwrap_or_default();
            let mut state = self.lock();
            state.parser.process(read);
            state.written.extend_from_slice(read);
            self.changed.notify_all();
        }
        self.lock().over = true;
        self.changed.notify_all();
    }
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).expect("a terminal has cells")
}
