//! Servers for tests: child processes in temporary folders, which are killed by their id when they are dropped.
//!
//! If a server is not installed, its tests are skipped, and one line says so. With `UNBRAID_REQUIRE_ENGINES=1` they fail.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a part of tests, which say why they are skipped"
)]

mod proxy;
mod redis;

use std::{
    env,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

pub use proxy::Proxy;
pub use redis::RedisServer;
use rustix::process::{Pid, Signal, kill_process};

/// Much longer than any server takes to start or to stop, so that a hang becomes a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is checked.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// The path of an installed program. Prints why the caller's test is skipped if there is none.
///
/// # Panics
///
/// If there is none and `UNBRAID_REQUIRE_ENGINES` is 1.
#[must_use]
pub fn find_program(name: &str, package: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let mut programs = folders.map(|folder| folder.join(name));
    let found = programs.find(|program| program.is_file());
    if found.is_none() {
        assert!(
            env::var_os("UNBRAID_REQUIRE_ENGINES").is_none_or(|value| value != "1"),
            "{name} is not installed, and UNBRAID_REQUIRE_ENGINES is 1: apt-get install {package}"
        );
        eprintln!("skipped: {name} is not installed (apt-get install {package})");
    }
    found
}

/// A port of the loopback address that nothing listens on at this moment.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

/// Waits until a condition holds.
///
/// # Panics
///
/// If it takes more than 30 seconds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let attempts = PATIENCE.as_millis() / POLL.as_millis();
    for _ in 0..attempts {
        if holds() {
            return;
        }
        thread::sleep(POLL);
    }
    panic!("{what}: not within {PATIENCE:?}");
}

/// A child process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a program whose output is discarded.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self {
            child: child.expect("the program can be started"),
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // It may have exited.
        let _sent = kill_process(pid.expect("a child has an id"), signal);
    }

    /// Whether it has exited.
    pub fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it as an operator does (`SIGTERM`), and waits for it.
    ///
    /// # Panics
    ///
    /// If it takes more than 30 seconds.
    pub fn terminate(mut self) {
        self.signal(Signal::TERM);
        wait_until("the process exits", || self.has_exited());
    }

    /// Ends it at once (`SIGKILL`).
    pub fn kill(self) {
        drop(self);
    }

    /// Suspends it (`SIGSTOP`): its connections stay open, and it does not answer.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes it (`SIGCONT`).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has exited.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}
