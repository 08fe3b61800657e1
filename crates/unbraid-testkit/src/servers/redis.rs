//! `redis-server`.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tempfile::TempDir;

use super::{PATIENCE, Process, find_program, free_port, wait_until};

/// A Redis server in a folder of its own, which keeps what it has acknowledged (`appendfsync always`).
///
/// It listens on a port of the loopback address and on a Unix socket. Both stay the same when it is started again.
#[derive(Debug)]
pub struct RedisServer {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    options: Vec<String>,
    process: Mutex<Option<Process>>,
}

impl RedisServer {
    /// Starts a server with further options, as `["--requirepass", "secret"]`. `None` if Redis is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start_with(options: &[&str]) -> Option<Self> {
        let program = find_program("redis-server", "redis-server")?;
        let server = Self {
            program,
            folder: TempDir::with_prefix("unbraid-redis-").expect("a temporary folder"),
            port: free_port(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            process: Mutex::new(None),
        };
        server.start();
        Some(server)
    }

    /// Starts a server. `None` if Redis is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn new() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// `unix:///PATH`.
    #[must_use]
    pub fn unix_url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The folder with everything that it writes.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The id of its process, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process().as_ref().map(Process::id)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts it again, with what it contained.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(&self) {
        let mut process = self.process();
        // Another process may have the port for a moment.
        wait_until("redis-server starts", || {
            let mut started = Process::start(&mut self.command_line());
            wait_until("redis-server is ready or exits", || {
                started.has_exited() || self.is_ready()
            });
            let has_started = !started.has_exited();
            *process = Some(started);
            has_started
        });
    }

    fn command_line(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(self.folder.path())
            .args(["--port", &self.port.to_string()])
            .args(["--bind", "127.0.0.1", "--unixsocket"])
            .arg(self.socket())
            .args(["--dir", ".", "--daemonize", "no", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(&self.options);
        command
    }

    fn is_ready(&self) -> bool {
        let answer = self.try_command(&["PING"]);
        answer.is_some_and(|answer| answer == "+PONG" || answer.starts_with("-NOAUTH"))
    }

    /// Stops it as an operator does. What it contains is kept.
    ///
    /// # Panics
    ///
    /// If it does not stop within 30 seconds.
    pub fn stop(&self) {
        let process = self.process().take();
        if let Some(process) = process {
            process.terminate();
        }
        let _removed = fs::remove_file(self.socket());
    }

    /// Kills it (`SIGKILL`). What it has acknowledged is kept.
    pub fn kill(&self) {
        drop(self.process().take());
        let _removed = fs::remove_file(self.socket());
    }

    /// Deletes what a stopped server contains.
    ///
    /// # Panics
    ///
    /// If it cannot be deleted.
    pub fn delete_data(&self) {
        let data = self.folder.path().join("appendonlydir");
        if data.exists() {
            fs::remove_dir_all(data).expect("the data can be deleted");
        }
    }

    /// Suspends it: connections stay open, and no request is answered.
    pub fn pause(&self) {
        if let Some(process) = &*self.process() {
            process.pause();
        }
    }

    /// Resumes it.
    pub fn resume(&self) {
        if let Some(process) = &*self.process() {
            process.resume();
        }
    }

    /// Sends a command, and returns the first line of its answer, as `+OK` or `:1`, or a text in full.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    #[must_use]
    pub fn command(&self, command: &[&str]) -> String {
        self.try_command(command).expect("the server answers")
    }

    fn try_command(&self, command: &[&str]) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(stream, "*{}\r\n", command.len()).ok()?;
        for part in command {
            write!(stream, "${}\r\n{part}\r\n", part.len()).ok()?;
        }
        let mut answer = BufReader::new(stream);
        let mut first = String::new();
        answer.read_line(&mut first).ok()?;
        let first = first.strip_suffix("\r\n")?.to_owned();
        let length = first
            .strip_prefix('$')
            .and_then(|length| length.parse().ok());
        let Some(length) = length else {
            return Some(first);
        };
        let mut text = vec![0; length];
        answer.read_exact(&mut text).ok()?;
        String::from_utf8(text).ok()
    }
}
