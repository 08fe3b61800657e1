//! A child process that is killed by its id.

use std::{
    fs::File,
    io,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// A child process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program, and appends what it prints to a file.
    pub(super) fn start(command: &mut Command, output: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(output)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Ok(Self { child })
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have exited.
            let _sent = kill_process(id, signal);
        }
    }

    /// Suspends it.
    pub(super) fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it continue.
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end, as an operator does.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Its exit code, if it has exited. A signal counts as -1.
    pub(super) fn exit_code(&mut self) -> Option<i32> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(status.code().unwrap_or(-1))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has exited.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}
