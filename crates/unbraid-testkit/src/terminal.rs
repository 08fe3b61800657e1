//! A terminal for a program under test: a pseudo-terminal and a screen that interprets its output.

use std::{
    ffi::OsStr,
    fmt,
    io::{Read, Write},
    num::NonZeroU16,
    os::fd::AsFd,
    process::{Child, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use pty_process::{
    Size,
    blocking::{Command, Pty, open},
};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use vt100::{Parser, Screen};

/// Much longer than any program takes to draw, so that a hang becomes a failure.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A program in a terminal. Dropping it kills the program.
pub struct Terminal {
    pty: Arc<Pty>,
    output: Arc<Output>,
    child: Child,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

/// The output of the program so far.
struct Output {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: Parser,
    written: Vec<u8>,
    has_exited: bool,
}

/// The result of a program that has exited.
#[derive(Debug)]
pub struct Left {
    /// The exit code, or `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Everything that it wrote, including escape sequences.
    pub written: String,
    /// The text on the screen.
    pub contents: String,
    /// Whether the main screen is displayed again, with its cursor.
    pub restored: bool,
}

impl Terminal {
    /// Runs a program in a terminal with `size` rows and columns.
    ///
    /// # Panics
    ///
    /// Panics if the system has no pseudo-terminal, or the program does not start.
    pub fn run<A: AsRef<OsStr>>(
        program: &str,
        args: impl IntoIterator<Item = A>,
        size: (u16, u16),
    ) -> Self {
        Self::run_with_stdin(program, args, size, None)
    }

    /// Like [`run`](Self::run), with a separate standard input. The keys still come from the terminal.
    ///
    /// # Panics
    ///
    /// Panics if the system has no pseudo-terminal, or the program does not start.
    pub fn run_with_stdin<A: AsRef<OsStr>>(
        program: &str,
        args: impl IntoIterator<Item = A>,
        (rows, columns): (u16, u16),
        stdin: Option<Stdio>,
    ) -> Self {
        let (pty, pts) = open().expect("a pseudo-terminal");
        pty.resize(Size::new(rows, columns))
            .expect("the terminal accepts its size");
        keep_output_at_interrupts(&pty);
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
        let output = Arc::new(Output {
            state: Mutex::new(State {
                parser: Parser::new(cells(rows), cells(columns), 1000),
                written: Vec::new(),
                has_exited: false,
            }),
            changed: Condvar::new(),
        });
        let (reader, writer) = (Arc::clone(&pty), Arc::clone(&output));
        thread::spawn(move || writer.read(&reader));
        Self { pty, output, child }
    }

    /// The write end of its standard input, if that is a pipe.
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
    /// Panics if the terminal is closed.
    pub fn press(&self, keys: &str) {
        (&*self.pty)
            .write_all(keys.as_bytes())
            .expect("the terminal is open");
    }

    /// Resizes the terminal.
    ///
    /// # Panics
    ///
    /// Panics if the terminal is closed.
    pub fn resize(&self, (rows, columns): (u16, u16)) {
        let mut state = self.output.lock();
        state.parser.set_size(cells(rows), cells(columns));
        self.pty
            .resize(Size::new(rows, columns))
            .expect("the terminal is open");
    }

    /// Waits until the screen satisfies a condition, and returns its text.
    ///
    /// # Panics
    ///
    /// Panics if it never does.
    #[track_caller]
    pub fn wait(&self, wanted: impl Fn(&Screen) -> bool) -> String {
        let state = self.output.lock();
        let is_waiting = |state: &mut State| !wanted(state.parser.screen()) && !state.has_exited;
        let waited = self
            .output
            .changed
            .wait_timeout_while(state, TIMEOUT, is_waiting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let screen = state.parser.screen();
        assert!(
            wanted(screen),
            "the screen never showed it:\n{}",
            screen.contents()
        );
        screen.contents()
    }

    /// Waits until the screen contains a text.
    ///
    /// # Panics
    ///
    /// Panics if it never does.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(|screen| screen.contents().contains(text))
    }

    /// Waits until the program exits.
    ///
    /// # Panics
    ///
    /// Panics if it does not exit.
    #[track_caller]
    pub fn end(mut self) -> Left {
        let state = self.output.lock();
        let waited = self
            .output
            .changed
            .wait_timeout_while(state, TIMEOUT, |state| !state.has_exited);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let screen = state.parser.screen();
        assert!(state.has_exited, "still running:\n{}", screen.contents());
        let (contents, written) = (screen.contents(), String::from_utf8_lossy(&state.written));
        let (restored, written) = (
            !screen.alternate_screen() && !screen.hide_cursor(),
            written.into_owned(),
        );
        drop(state);
        let code = self.child.wait().expect("the program has exited").code();
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
        let _already_exited: std::io::Result<()> = self.child.kill();
        let _reaped: std::io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

/// Lets Ctrl-C keep what waits in the terminal. Linux otherwise discards it, and at times also what the program writes in response
/// to the signal.
fn keep_output_at_interrupts(terminal: impl AsFd) {
    let mut attributes = tcgetattr(&terminal).expect("the terminal has attributes");
    attributes.local_modes |= LocalModes::NOFLSH;
    tcsetattr(&terminal, OptionalActions::Now, &attributes).expect("the terminal accepts them");
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut pty: &Pty) {
        let mut buffer = [0; 4096];
        // Linux reports the exit of the last program as an error.
        while let Ok(n @ 1..) = pty.read(&mut buffer) {
            let read = buffer.get(..n).unwrap_or_default();
            let mut state = self.lock();
            state.parser.process(read);
            state.written.extend_from_slice(read);
            self.changed.notify_all();
        }
        self.lock().has_exited = true;
        self.changed.notify_all();
    }
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).expect("a terminal has rows and columns")
}
