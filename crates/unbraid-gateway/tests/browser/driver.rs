//! A browser that goes through a scenario, and what it reports.

use std::{fs, io::Write, net::SocketAddr, path::PathBuf, process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Mutex, MutexGuard},
    time::timeout,
};
use unbraid_testkit::fixture::workspace_root;

/// The time that the browser may take to start and to finish a scenario.
const PATIENCE: Duration = Duration::from_secs(180);

/// The directory of the browser. Prints a message and returns `None` if it is not installed.
fn prepared() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace_root().join("target"), PathBuf::from);
    let browser = target.join("browser");
    if browser.join("ready.json").is_file() {
        return Some(browser);
    }
    let reason = fs::read_to_string(browser.join("skipped"));
    let reason = reason.unwrap_or_else(|_| "tests/browser/prepare.mjs has not been run".to_owned());
    print_skipped(reason.trim());
    None
}

/// The test harness captures `eprintln!` of passing tests, so this writes to the standard error directly.
pub(crate) fn print_skipped(reason: &str) {
    writeln!(std::io::stderr(), "\nskipped a test of the page: {reason}").unwrap();
}

/// A browser in a scenario of `tests/browser/gateway.mjs`. Dropping it kills the process.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// One browser at a time: several would take each other's time, and see less of the growing texts.
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    /// Starts a scenario with a model and a number of choices, or another word. `None` if there is no browser.
    pub(crate) async fn start(
        address: SocketAddr,
        scenario: &str,
        model: &str,
        n: &str,
    ) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::const_new(());
        let directory = prepared()?.canonicalize().unwrap();
        let turn = TURN.lock().await;
        let mut child = Command::new("node")
            .arg(workspace_root().join("tests/browser/gateway.mjs"))
            .arg(directory)
            .arg(format!("http://{address}/"))
            .args([scenario, model, n])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Some(Self {
            input: child.stdin.take().expect("piped"),
            child,
            lines,
            _turn: turn,
        })
    }

    /// The next line of the scenario.
    pub(crate) async fn line(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("the browser answers").unwrap();
        serde_json::from_str(&line.expect("the scenario ends without an error")).unwrap()
    }

    /// Lets the scenario continue.
    pub(crate) async fn proceed(&mut self) {
        self.input.write_all(b"\n").await.unwrap();
    }

    /// What was seen, once the scenario is over.
    pub(crate) async fn report(mut self) -> Report {
        let report = Report(self.line().await);
        assert!(self.child.wait().await.unwrap().success());
        report.check_invariants();
        report
    }
}

/// What a scenario has seen.
pub(crate) struct Report(pub(crate) Value);

impl Report {
    /// Every page, as it was at the end.
    pub(crate) fn views(&self) -> &[Value] {
        list(&self.0["views"])
    }

    /// The sections of the first page at the end.
    pub(crate) fn sections(&self) -> &[Value] {
        list(&self.views()[0]["sections"])
    }

    pub(crate) fn samples(&self) -> &[Value] {
        list(&self.0["samples"])
    }

    pub(crate) fn requests_of(&self, path_end: &str) -> usize {
        let urls = list(&self.0["urls"]).iter().map(str_of);
        urls.filter(|url| {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            path.ends_with(path_end)
        })
        .count()
    }

    /// No page logs an error, opens a dialog, or loads anything from elsewhere, and no text becomes markup.
    fn check_invariants(&self) {
        assert_eq!(list(&self.0["problems"]), [] as [Value; 0]);
        let urls: Vec<&str> = list(&self.0["urls"]).iter().map(str_of).collect();
        let origin = |url: &str| url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        assert!(
            urls.iter().all(|url| origin(url) == origin(urls[0])),
            "{urls:?}"
        );
        for view in self.views() {
            for section in list(&view["sections"]) {
                assert_eq!(section["elements"], 0, "{section}");
            }
        }
    }

    /// The words with which the sections end.
    pub(crate) fn ends(&self) -> Vec<&str> {
        self.sections()
            .iter()
            .map(|section| str_of(&section["doing"]))
            .collect()
    }

    /// Texts only grew at their ends.
    pub(crate) fn check_growth(&self) {
        for index in 0..self.sections().len() {
            let texts: Vec<&str> = self
                .samples()
                .iter()
                .filter_map(|sample| text_of(sample, index))
                .collect();
            for pair in texts.windows(2) {
                assert!(pair[1].starts_with(pair[0]), "{pair:?}");
            }
        }
    }
}

/// The text of a choice in a sample.
pub(crate) fn text_of(sample: &Value, index: usize) -> Option<&str> {
    sample["sections"]
        .get(index)
        .map(|section| str_of(&section["text"]))
}

#[track_caller]
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[track_caller]
pub(crate) fn str_of(value: &Value) -> &str {
    value.as_str().unwrap()
}
