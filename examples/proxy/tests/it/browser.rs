//! The page in a real, headless Chromium. Without one the tests are skipped, and one line says why.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use axum::Router;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdout, Command},
    sync::{Mutex, MutexGuard, watch},
    task::JoinSet,
    time::timeout,
};

use crate::support::{HAIKUS, PATIENCE, Running, recorded, start, texts};

const WEATHER: &str = include_str!("../../../streams/weather.sse");

/// Three answers that try to be markup, each with another kind of text.
const HOSTILE: &str = include_str!("hostile.sse");

/// Long enough for a browser on a busy machine to connect in time.
const GRACE: Duration = Duration::from_secs(4);

/// The time that the browser may take to start and to finish a scenario.
const SCENARIO: Duration = Duration::from_secs(120);

/// The directory of the browser. Prints a message and returns `None` if it is not installed.
fn prepared() -> Option<PathBuf> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), PathBuf::from);
    let browser = target.join("browser");
    if browser.join("ready.json").is_file() {
        return Some(browser);
    }
    let skipped = fs::read_to_string(browser.join("skipped"));
    let reason =
        skipped.unwrap_or_else(|_| "tests/browser/prepare.mjs has not been run".to_owned());
    // The test harness captures `eprintln!` of passing tests, so this writes to the standard error directly.
    writeln!(
        std::io::stderr(),
        "\nskipped a test in a browser: {}",
        reason.trim()
    )
    .unwrap();
    None
}

/// A browser with the page open. Dropping it kills the process.
struct Browser {
    child: Child,
    /// One browser at a time: several would take each other's time, and see less of the growing texts.
    _turn: MutexGuard<'static, ()>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Browser {
    /// Opens the page and asks for this many choices.
    async fn open(directory: PathBuf, address: SocketAddr, choices: u32, scenario: &str) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/browser/drive.mjs");
        let mut command = Command::new("node");
        let command = command
            .arg(script)
            .arg(directory)
            .arg(format!("http://{address}/"));
        let command = command.arg(choices.to_string()).arg(scenario);
        let mut child = command
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self {
            child,
            lines,
            _turn: turn,
        }
    }

    async fn line(&mut self) -> Value {
        let line = timeout(SCENARIO, self.lines.next_line())
            .await
            .expect("the browser answers");
        let line = line.unwrap().expect("the scenario ends without an error");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits until every choice has text.
    async fn writing(&mut self) {
        assert_eq!(self.line().await["writing"], true);
    }

    /// What the user saw, once the scenario is over.
    async fn report(&mut self) -> Value {
        let report = self.line().await;
        assert!(self.child.wait().await.unwrap().success());
        report
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn str_of<'v>(pane: &'v Value, field: &str) -> &'v str {
    pane[field].as_str().unwrap()
}

/// The final text of each pane equals the recording's choice, as another reader understands it.
#[track_caller]
fn check_texts(report: &Value, recording: &str) {
    let panes = list(&report["panes"]);
    for (index, text) in texts(recording) {
        let pane = &panes[index as usize];
        assert_eq!(str_of(pane, "title"), format!("choice {index}"));
        assert_eq!(str_of(pane, "text"), text);
        assert_eq!(pane["elements"], 0, "text is never markup: {pane}");
    }
}

/// All panes are in one row, next to each other.
#[track_caller]
fn check_side_by_side(panes: &[Value]) {
    let number = |pane: &Value, field: &str| pane[field].as_f64().unwrap();
    for pane in panes {
        assert_eq!(pane["visible"], true, "{pane}");
        assert!(
            number(pane, "width") > 100.0 && number(pane, "height") > 20.0,
            "{pane}"
        );
    }
    for pair in panes.windows(2) {
        assert_eq!(number(&pair[0], "y"), number(&pair[1], "y"));
        assert!(number(&pair[0], "x") + number(&pair[0], "width") <= number(&pair[1], "x"));
    }
}

/// Each of two panes grew while the other did not, and texts only grew at their ends.
#[track_caller]
fn check_independent_growth(report: &Value) {
    let samples: Vec<&[Value]> = list(&report["samples"]).iter().map(list).collect();
    let count = list(&report["panes"]).len();
    for one in 0..count {
        for other in (0..count).filter(|other| *other != one) {
            let alone = samples.windows(2).any(|pair| {
                let grew = |pane: usize| {
                    let [before, after] = [pair[0].get(pane), pair[1].get(pane)];
                    before
                        .zip(after)
                        .is_some_and(|(before, after)| before["text"] != after["text"])
                };
                grew(one) && !grew(other)
            });
            assert!(alone, "pane {one} grew without pane {other}");
        }
        let texts: Vec<&str> = samples
            .iter()
            .filter_map(|panes| Some(str_of(panes.get(one)?, "text")))
            .collect();
        assert!(texts.windows(2).all(|pair| pair[1].starts_with(pair[0])));
    }
}

#[track_caller]
fn check_no_problems(report: &Value, address: SocketAddr) {
    assert_eq!(list(&report["problems"]), [] as [Value; 0]);
    let own = format!("http://{address}/");
    for url in list(&report["urls"]) {
        let url = url.as_str().unwrap();
        assert!(url.starts_with(&own) || url.starts_with("data:"), "{url}");
    }
}

/// Runs a scenario to its end.
async fn run(provider: Router, choices: u32, scenario: &str) -> Option<(Running, Value)> {
    let directory = prepared()?;
    let running = start(provider, GRACE).await;
    let mut browser = Browser::open(directory, running.address, choices, scenario).await;
    browser.writing().await;
    let report = browser.report().await;
    check_no_problems(&report, running.address);
    Some((running, report))
}

#[tokio::test]
async fn the_choices_grow_side_by_side_to_the_texts_of_the_recording() {
    let Some((running, report)) = run(recorded(HAIKUS, 40), 4, "answer").await else {
        return;
    };
    check_texts(&report, HAIKUS);
    check_side_by_side(list(&report["panes"]));
    check_independent_growth(&report);
    let states: Vec<&str> = list(&report["panes"])
        .iter()
        .map(|pane| str_of(pane, "state"))
        .collect();
    assert_eq!(states, ["stop", "stop", "stop", "length"]);
    running.all_freed().await;
}

#[tokio::test]
async fn markup_in_an_answer_is_shown_as_text() {
    let Some((_, report)) = run(recorded(HOSTILE, 5), 3, "answer").await else {
        return;
    };
    check_texts(&report, HOSTILE);
    let panes = list(&report["panes"]);
    assert!(str_of(&panes[0], "text").contains("<img src=x onerror=alert(1)>"));
    assert_eq!(str_of(&panes[1], "reasoning"), "<script>alert(2)</script>");
    assert_eq!(
        str_of(&panes[2], "calls"),
        "<b>tool</b> {\"a\":\"</pre><script>alert(3)</script>\"}"
    );
    assert!(panes.iter().all(|pane| pane["elements"] == 0));
}

#[tokio::test]
async fn calls_are_shown_with_their_arguments() {
    let Some((_, report)) = run(recorded(WEATHER, 5), 2, "answer").await else {
        return;
    };
    for pane in list(&report["panes"]) {
        assert_eq!(str_of(pane, "state"), "tool_calls");
        assert_eq!(
            str_of(pane, "calls").matches("get_weather {").count(),
            2,
            "{pane}"
        );
    }
}

#[tokio::test]
async fn a_browser_that_leaves_frees_its_choices() {
    let Some(directory) = prepared() else { return };
    let running = start(recorded(HAIKUS, 200), GRACE).await;
    let mut browser = Browser::open(directory, running.address, 4, "leave").await;
    browser.writing().await;
    assert_eq!(running.proxy.open_requests(), 1);
    let _report = browser.report().await;
    running.all_freed().await;
}

#[tokio::test]
async fn a_stopped_pane_stops_and_the_others_continue() {
    let Some((_, report)) = run(recorded(HAIKUS, 40), 4, "stop").await else {
        return;
    };
    let panes = list(&report["panes"]);
    assert_eq!(str_of(&panes[0], "state"), "stopped");
    let expected = texts(HAIKUS);
    assert!(str_of(&panes[0], "text").len() < expected[&0].len());
    for index in 1..4 {
        assert_eq!(str_of(&panes[index as usize], "text"), expected[&index]);
    }
}

#[tokio::test]
async fn a_second_question_replaces_the_first() {
    let Some((running, report)) = run(recorded(HAIKUS, 25), 4, "again").await else {
        return;
    };
    check_texts(&report, HAIKUS);
    running.all_freed().await;
}

#[tokio::test]
async fn a_browser_reconnects_and_loses_nothing() {
    let Some(directory) = prepared() else { return };
    let running = start(recorded(HAIKUS, 30), Duration::from_secs(30)).await;
    let (cut, address) = cuttable(running.address).await;
    let mut browser = Browser::open(directory, address, 4, "answer").await;
    browser.writing().await;
    cut.send_modify(|cuts| *cuts += 1);
    let report = browser.report().await;
    check_texts(&report, HAIKUS);
    let urls = list(&report["urls"]).iter().filter_map(Value::as_str);
    let streams = urls.filter(|url| url.ends_with("/choices/0")).count();
    assert!(streams >= 2, "the browser connected again");
}

/// Forwards connections to an address, and closes those that are open whenever the value changes.
async fn cuttable(to: SocketAddr) -> (watch::Sender<u32>, SocketAddr) {
    let (cut, mut cuts) = watch::channel(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Ok((mut browser, _)) = listener.accept() => {
                    connections.spawn(async move {
                        let mut server = TcpStream::connect(to).await.unwrap();
                        // The browser and the test both close connections.
                        let _closed = tokio::io::copy_bidirectional(&mut browser, &mut server).await;
                    });
                }
                changed = cuts.changed() => match changed {
                    Ok(()) => connections.abort_all(),
                    Err(_) => return,
                },
            }
        }
    });
    (cut, address)
}

#[test]
fn patience_is_longer_than_the_grace_period() {
    assert!(PATIENCE > 4 * GRACE);
}
