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

/// How many choices the engine generates at the same time. Further requests wait.
pub(crate) const SLOTS: u32 = 8;

/// A server as a child process: llama.cpp, or `unbraid replay`. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) base_url: String,
}

impl Server {
    /// Starts a server that prints its base URL on its first line.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().expect("piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // The thread reads all lines. Otherwise the server would block on a full pipe.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _unreceived: Result<(), _> = sender.send(line); // only the first line has a receiver
            }
        });
        let base_url = lines.recv_timeout(Duration::from_secs(60));
        let base_url = base_url.expect("the server prints its base URL");
        Self { child, base_url }
    }

    /// Kills the process like `kill -9`.
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

/// Starts an engine for one test. Prints a message and returns `None` if the engine is not installed.
pub(crate) fn start() -> Option<Server> {
    let python = python()?;
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::SeqCst);
    let log = File::create(prepared().join(format!("server-{number}.log"))).unwrap();
    let script = workspace_root().join("tests/engine/serve.py");
    let mut command = Command::new(python);
    let command = command.arg(script).arg(prepared().join("model.gguf"));
    Some(Server::start(command.stderr(log)))
}

/// The engine that most tests share. It exits with the test process, when its standard input closes.
pub(crate) fn shared() -> Option<&'static str> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let server = SHARED.get_or_init(start).as_ref();
    server.map(|server| server.base_url.as_str())
}

/// The Python interpreter with the packages.
pub(crate) fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(find_python).as_deref()
}

fn find_python() -> Option<PathBuf> {
    let missing = match fs::read_to_string(prepared().join("skipped")) {
        Ok(reason) => reason.trim().to_owned(),
        Err(_) if prepared().join("model.gguf").is_file() => {
            let paths = ["venv/bin/python", "venv/Scripts/python.exe"];
            let mut paths = paths.map(|path| prepared().join(path)).into_iter();
            return Some(paths.find(|python| python.is_file()).expect("prepared"));
        }
        Err(_) => "tests/engine/prepare.py has not been run".to_owned(),
    };
    // The test harness captures `eprintln!` of passing tests, so this writes to the standard error directly.
    writeln!(
        io::stderr(),
        "\nskipped all tests against a real engine: {missing}"
    )
    .unwrap();
    None
}
