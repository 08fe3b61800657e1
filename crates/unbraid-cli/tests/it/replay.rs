//! `unbraid replay`: its responses byte for byte, and its faults.

mod dialects;
mod environment_key;
mod record;
mod several;

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use unbraid_testkit::fixture::{Fixture, workspace_root};

use crate::{TIMEOUT, UNBRAID, collect, pipes};

const FIXTURE: &str = "openai_chat/openai-t28-t43-parallel-tools-two-choices";

const CHAT: &str = "/v1/chat/completions";

/// A running replay, which is killed at the end of the test.
pub(crate) struct Replay {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Replay {
    pub(crate) fn start(options: &str) -> Self {
        Self::of_file(&format!("tests/fixtures/{FIXTURE}.sse"), options)
    }

    fn of_file(file: &str, options: &str) -> Self {
        Self::of_files(&[file.to_owned()], options)
    }

    pub(crate) fn of_files(files: &[String], options: &str) -> Self {
        Self::of_files_with(files, options, &[])
    }

    /// Starts a replay with these variables, and without a key unless they have one.
    fn of_files_with(files: &[String], options: &str, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(UNBRAID)
            .arg("replay")
            .args(files)
            .env_remove("OPENAI_API_KEY")
            .envs(variables.iter().copied())
            .args(options.split_whitespace())
            .current_dir(workspace_root())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        let address = url.trim_end().strip_prefix("http://");
        let address = address.and_then(|rest| rest.strip_suffix("/v1")).unwrap();
        Self {
            child,
            stdout,
            address: address.parse().unwrap(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn connect(&self, method: &str, path: &str, body: &str) -> TcpStream {
        self.connect_with(method, path, "", body)
    }

    /// Sends a request with further headers, each with its line end.
    fn connect_with(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        socket
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Response {
        Response::read(self.connect(method, path, body))
    }

    /// Waits for the end of the replay, and returns everything that it printed after its address.
    fn printed(&mut self) -> String {
        let watchdog = pipes::watchdog(&self.child);
        let mut printed = String::new();
        self.stdout.read_to_string(&mut printed).unwrap();
        drop(watchdog);
        printed
    }

    /// Ends the replay, and returns its standard error.
    fn stderr(mut self) -> String {
        self.child.kill().unwrap();
        pipes::stderr(&mut self.child)
    }

    /// Requests the stream.
    fn stream(&self) -> Response {
        self.send("POST", CHAT, r#"{"stream":true}"#)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A response as received.
#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    /// The chunks of the body; a body that is not chunked is one chunk.
    chunks: Vec<Vec<u8>>,
    /// The error of the connection, if it broke before the end of the body.
    error: Option<io::ErrorKind>,
}

impl Response {
    fn read(socket: TcpStream) -> Self {
        let mut input = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(input.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let mut response = Self {
            status: head[9..12].parse().unwrap(),
            head: head.to_ascii_lowercase(),
            chunks: Vec::new(),
            error: None,
        };
        let chunked = response.head.contains("transfer-encoding: chunked");
        let read = if chunked {
            response.read_chunks(&mut input)
        } else {
            response.read_to_end(&mut input)
        };
        response.error = read.err().map(|error| error.kind());
        response
    }

    fn read_to_end(&mut self, input: &mut impl Read) -> io::Result<()> {
        let mut body = Vec::new();
        input.read_to_end(&mut body)?;
        self.chunks.push(body);
        Ok(())
    }

    fn read_chunks(&mut self, input: &mut impl BufRead) -> io::Result<()> {
        loop {
            let mut size = String::new();
            input.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim_end(), 16);
            let size = size.map_err(|_| io::ErrorKind::UnexpectedEof)?;
            let mut chunk = vec![0; size + 2];
            input.read_exact(&mut chunk)?;
            chunk.truncate(size);
            if size == 0 {
                return Ok(());
            }
            self.chunks.push(chunk);
        }
    }

    fn body(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body()).unwrap()
    }
}

#[test]
fn a_recording_is_served_unchanged_with_one_event_per_chunk() {
    let replay = Replay::start("--port 0");
    let recorded = Fixture::named(FIXTURE).bytes;
    for path in [
        CHAT,
        "/v1/completions",
        "/openai/deployments/x/chat/completions?api-version=1",
    ] {
        let response = replay.send("POST", path, r#"{"stream":true,"messages":[]}"#);
        assert_eq!((response.status, response.error), (200, None));
        assert!(response.head.contains("content-type: text/event-stream"));
        assert_eq!(response.body(), recorded);
        for chunk in &response.chunks {
            assert!(
                chunk.ends_with(b"\n\n"),
                "{:?}",
                String::from_utf8_lossy(chunk)
            );
        }
    }
}

#[test]
fn a_request_without_stream_gets_the_collected_response() {
    let replay = Replay::start("");
    let mut collected = collect(FIXTURE).json();
    collected.as_object_mut().unwrap().remove("unbraid");
    for request in ["{}", r#"{"stream":false}"#, r#"{"stream":null}"#] {
        let response = replay.send("POST", CHAT, request);
        assert!(response.head.contains("content-type: application/json"));
        assert_eq!(response.json(), collected);
    }
}

#[test]
fn a_recording_without_an_answer_is_served_unchanged() {
    let replay = Replay::of_file("tests/fixtures/broken/vllm-x15-error-first.sse", "");
    let recorded = Fixture::named("broken/vllm-x15-error-first").bytes;
    assert_eq!(replay.stream().body(), recorded);
    assert_eq!(replay.send("POST", CHAT, "{}").body(), recorded);
}

#[test]
fn invalid_requests_are_rejected() {
    let replay = Replay::start("");
    let check = |method, path, body, status| {
        let response = replay.send(method, path, body);
        assert_eq!(response.status, status, "{method} {path} {body}");
        assert!(response.json()["error"]["message"].is_string());
    };
    check("GET", CHAT, "", 405);
    check("POST", "/v1/embeddings", "{}", 404);
    check("POST", CHAT, "", 400);
    check("POST", CHAT, "[]", 400);
    check("POST", CHAT, "{", 400);
}

#[test]
fn a_body_is_cut_into_chunks_of_any_size() {
    let recorded = Fixture::named(FIXTURE).bytes;
    for cut in [1, 7, 100_000] {
        let response = Replay::start(&format!("--cut {cut}")).stream();
        assert_eq!(response.body(), recorded);
        let (last, others) = response.chunks.split_last().unwrap();
        assert!(last.len() <= cut && others.iter().all(|chunk| chunk.len() == cut));
    }
}

#[test]
fn bodies_end_break_and_stall() {
    let received = |fault: &str| {
        let response = Replay::start(&format!("--fault {fault}")).stream();
        (response.chunks.len(), response.error)
    };
    let (all, _) = received("end:9999");
    assert_eq!(received("end:3"), (3, None));
    assert_eq!(received("end"), (all / 2, None));
    assert_eq!(received("close:3"), (3, Some(io::ErrorKind::UnexpectedEof)));
    assert_eq!(
        received("reset:3"),
        (3, Some(io::ErrorKind::ConnectionReset))
    );

    let replay = Replay::start("--fault stall:2");
    let socket = replay.connect("POST", CHAT, r#"{"stream":true}"#);
    socket
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    let response = Response::read(socket);
    assert_eq!(response.chunks.len(), 2);
    let timeouts = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
    assert!(timeouts.contains(&response.error.unwrap()));
}

#[test]
fn faults_apply_to_collected_responses_too() {
    let replay = Replay::start("--fault close");
    let response = replay.send("POST", CHAT, "{}");
    assert_eq!(response.error, Some(io::ErrorKind::UnexpectedEof));
    assert!(response.body().starts_with(b"{\"id\":"));
}

#[test]
fn a_fault_applies_to_the_requested_number_of_requests() {
    let replay = Replay::start("--fault status:429 --times 2");
    for _ in 0..2 {
        let response = replay.stream();
        assert_eq!(response.status, 429);
        assert!(
            response.head.contains("retry-after: 1")
                && response.head.contains("x-request-id: replay-")
        );
        assert_eq!(response.json()["error"]["code"], json!(429));
    }
    assert_eq!(replay.stream().status, 200);
}

#[test]
fn requests_are_printed_and_once_ends_after_one() {
    let mut replay = Replay::start("--once");
    let watchdog = pipes::watchdog(&replay.child);
    assert_eq!(replay.send("GET", "/x\u{9b}", "").status, 404);
    assert_eq!(replay.stream().status, 200);
    let mut printed = String::new();
    replay.stdout.read_to_string(&mut printed).unwrap();
    assert!(
        printed.ends_with("POST /v1/chat/completions 200\n"),
        "{printed}"
    );
    assert!(!printed.contains('\u{9b}'));
    assert_eq!(replay.child.wait().unwrap().code(), Some(0));
    drop(watchdog);
}

#[test]
fn events_are_sent_at_the_requested_speed() {
    let recorded = Fixture::named("openai_chat/openai-m04-refusal");
    let events = Replay::of_file("tests/fixtures/openai_chat/openai-m04-refusal.sse", "").stream();
    let pauses = u32::try_from(events.chunks.len()).unwrap() - 1;
    let replay = Replay::of_file(
        "tests/fixtures/openai_chat/openai-m04-refusal.sse",
        "--speed 100",
    );
    let start = tokio::time::Instant::now();
    assert_eq!(replay.stream().body(), recorded.bytes);
    assert!(start.elapsed() >= Duration::from_millis(9) * pauses);
}

#[test]
fn concurrent_requests_are_served() {
    let replay = Replay::start("--cut 5");
    let recorded = Fixture::named(FIXTURE).bytes;
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(replay.stream().body(), recorded));
        }
    });
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let first = Replay::start("");
    let port = first.address.port();
    let run = crate::unbraid(&format!("replay --port {port} -"), b"data: [DONE]\n\n");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.starts_with(&format!("unbraid: port {port}: ")),
        "{}",
        run.stderr
    );
    let nowhere = crate::unbraid("replay nowhere.sse", b"");
    assert_eq!(nowhere.code, 1);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_replay() {
    let mut replay = Replay::start("");
    let id = replay.child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    assert_eq!(replay.child.wait().unwrap().code(), Some(0));
}
