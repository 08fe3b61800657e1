//! Questions on the controlling terminal, which is neither the standard input nor the output: both may be pipes.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    sync::Arc,
};

#[cfg(unix)]
const PATHS: (&str, &str) = ("/dev/tty", "/dev/tty");
#[cfg(not(unix))]
const PATHS: (&str, &str) = ("CONIN$", "CONOUT$");

/// How many bytes of an answer are read.
const MAX_ANSWER: u64 = 1 << 10;

/// The terminal that controls this process.
#[derive(Debug)]
pub(super) struct Terminal {
    input: File,
    output: File,
}

impl Terminal {
    /// Opens the terminal. The error is that there is none.
    pub(super) fn open() -> io::Result<Self> {
        let open = |path| OpenOptions::new().read(true).write(true).open(path);
        Ok(Self {
            input: open(PATHS.0)?,
            output: open(PATHS.1)?,
        })
    }

    /// Asks a question, whose text must be printable. Everything but a typed `y` or `yes` means no, also the end of the
    /// input.
    ///
    /// Dropping the future leaves a thread that waits for the answer, until the process exits.
    pub(super) async fn confirm(self: &Arc<Self>, question: String) -> bool {
        let terminal = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || terminal.ask(&question));
        matches!(answer.await, Ok(Ok(true)))
    }

    fn ask(&self, question: &str) -> io::Result<bool> {
        self.discard_input();
        write!(&self.output, "unbraid: {question} [y/N] ")?;
        let mut answer = String::new();
        let read = BufReader::new((&self.input).take(MAX_ANSWER)).read_line(&mut answer)?;
        if read == 0 {
            writeln!(&self.output)?;
        }
        let answer = answer.trim();
        Ok(["y", "yes"]
            .iter()
            .any(|yes| answer.eq_ignore_ascii_case(yes)))
    }

    /// Discards what was typed before the question was asked: it cannot be an answer to it.
    fn discard_input(&self) {
        #[cfg(unix)]
        {
            use rustix::termios::{QueueSelector, tcflush};
            let _not_a_terminal = tcflush(&self.input, QueueSelector::IFlush);
        }
    }
}
