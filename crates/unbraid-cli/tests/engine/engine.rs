//! The engine as a child process.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

use unbraid_testkit::fixture::workspace_root;

use crate::prepared;

/// How many choices it makes at a time; more wait.
pub(crate) const SLOTS: u32 = 8;

/// A server of our own: llama.cpp, or `unbraid replay`. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) base_url: String,
}

impl Server {
    /// Starts a server whose first line is its base URL.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().expect("piped");
        let (sender, told) = mpsc::channel();
        std::thread::spawn(move || {
            // All of it is read, else the server would wait at a full pipe.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _gone: Result<(), _> = sender.send(line); // only the first is waited for
            }
        });
        let base_url = told.recv_timeout(Duration::from_secs(60));
        let base_url = base_url.expect("the server tells where it listens");
        Self { child, base_url }
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _dead: io::Result<()> = self.child.kill();
        let _dead: io::Result<_> = self.child.wait();
    }
}

/// An engine of the caller's own; `None` if there is none, which is said.
pub(crate) fn own() -> Option<Server> {
    let python = python()?;
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::SeqCst);
    let log = File::create(prepared().join(format!("server-{number}.log"))).unwrap();
    let script = workspace_root().join("tests/engine/serve.py");
    let mut command = Command::new(python);
    let command = command.arg(script).arg(prepared().join("model.gguf"));
    Some(Server::start(command.stderr(log)))
}

/// The engine that most tests ask. It ends with the tests, for its standard input does.
pub(crate) fn shared() -> Option<&'static str> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let server = SHARED.get_or_init(own).as_ref();
    server.map(|server| server.base_url.as_str())
}

/// The interpreter that has the packages.
pub(crate) fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(found).as_deref()
}

fn found() -> Option<PathBuf> {
    let missing = match fs::read_to_string(prepared().join("skipped")) {
        Ok(reason) => reason.trim().to_owned(),
        Err(_) if prepared().join("model.gguf").is_file() => {
            let places = ["venv/bin/python", "venv/Scripts/python.exe"];
            let mut places = places.map(|place| prepared().join(place)).into_iter();
            return Some(places.find(|python| python.is_file()).expect("prepared"));
        }
        Err(_) => "tests/engine/prepare.py has not been run".to_owned(),
    };
    // Not by `eprintln!`, which the test harness keeps to itself where nothing fails.
    writeln!(
        io::stderr(),
        "\nskipped, all tests against a real engine: {missing}"
    )
    .unwrap();
    None
}
