//! `unbraid replay`: what comes over the socket, byte for byte, and how it breaks.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use unbraid_testkit::fixture::{Fixture, workspace_root};

use crate::{PATIENCE, UNBRAID, collect, pipes};

const FIXTURE: &str = "openai_chat/openai-t28-t43-parallel-tools-two-choices";

const CHAT: &str = "/v1/chat/completions";

/// A running replay, ended with the test.
pub(crate) struct Replay {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Replay {
    pub(crate) fn start(options: &str) -> Self {
        Self::of(&format!("tests/fixtures/{FIXTURE}.sse"), options)
    }

    fn of(file: &str, options: &str) -> Self {
        let mut child = Command::new(UNBRAID)
            .arg("replay")
            .arg(file)
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
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        socket
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        Answer::read(self.connect(method, path, body))
    }

    /// Asks for the stream.
    fn stream(&self) -> Answer {
        self.ask("POST", CHAT, r#"{"stream":true}"#)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A response as it came.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    /// The chunks of the body, or its only piece.
    pieces: Vec<Vec<u8>>,
    /// How the connection ended, if not behind a whole body.
    broken: Option<io::ErrorKind>,
}

impl Answer {
    fn read(socket: TcpStream) -> Self {
        let mut input = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(input.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let mut answer = Self {
            status: head[9..12].parse().unwrap(),
            head: head.to_ascii_lowercase(),
            pieces: Vec::new(),
            broken: None,
        };
        let chunked = answer.head.contains("transfer-encoding: chunked");
        let read = if chunked {
            answer.chunks(&mut input)
        } else {
            answer.rest(&mut input)
        };
        answer.broken = read.err().map(|error| error.kind());
        answer
    }

    fn rest(&mut self, input: &mut impl Read) -> io::Result<()> {
        let mut body = Vec::new();
        input.read_to_end(&mut body)?;
        self.pieces.push(body);
        Ok(())
    }

    fn chunks(&mut self, input: &mut impl BufRead) -> io::Result<()> {
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
            self.pieces.push(chunk);
        }
    }

    fn body(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body()).unwrap()
    }
}

#[test]
fn a_recording_is_served_as_it_is_one_event_a_piece() {
    let replay = Replay::start("--port 0");
    let recorded = Fixture::named(FIXTURE).bytes;
    for path in [
        CHAT,
        "/v1/completions",
        "/openai/deployments/x/chat/completions?api-version=1",
    ] {
        let answer = replay.ask("POST", path, r#"{"stream":true,"messages":[]}"#);
        assert_eq!((answer.status, answer.broken), (200, None));
        assert!(answer.head.contains("content-type: text/event-stream"));
        assert_eq!(answer.body(), recorded);
        for piece in &answer.pieces {
            assert!(
                piece.ends_with(b"\n\n"),
                "{:?}",
                String::from_utf8_lossy(piece)
            );
        }
    }
}

#[test]
fn a_request_for_no_stream_gets_the_collected_response() {
    let replay = Replay::start("");
    let mut collected = collect(FIXTURE).json();
    collected.as_object_mut().unwrap().remove("unbraid");
    for request in ["{}", r#"{"stream":false}"#, r#"{"stream":null}"#] {
        let answer = replay.ask("POST", CHAT, request);
        assert!(answer.head.contains("content-type: application/json"));
        assert_eq!(answer.json(), collected);
    }
}

#[test]
fn what_is_no_answer_is_served_as_it_is_too() {
    let replay = Replay::of("tests/fixtures/broken/vllm-x15-error-first.sse", "");
    let recorded = Fixture::named("broken/vllm-x15-error-first").bytes;
    assert_eq!(replay.stream().body(), recorded);
    assert_eq!(replay.ask("POST", CHAT, "{}").body(), recorded);
}

#[test]
fn other_requests_are_refused() {
    let replay = Replay::start("");
    let refused = |method, path, body, status| {
        let answer = replay.ask(method, path, body);
        assert_eq!(answer.status, status, "{method} {path} {body}");
        assert!(answer.json()["error"]["message"].is_string());
    };
    refused("GET", CHAT, "", 405);
    refused("POST", "/v1/embeddings", "{}", 404);
    refused("POST", CHAT, "", 400);
    refused("POST", CHAT, "[]", 400);
    refused("POST", CHAT, "{", 400);
}

#[test]
fn a_body_is_cut_into_pieces_of_any_size() {
    let recorded = Fixture::named(FIXTURE).bytes;
    for cut in [1, 7, 100_000] {
        let answer = Replay::start(&format!("--cut {cut}")).stream();
        assert_eq!(answer.body(), recorded);
        let (last, others) = answer.pieces.split_last().unwrap();
        assert!(last.len() <= cut && others.iter().all(|piece| piece.len() == cut));
    }
}

#[test]
fn bodies_end_break_off_and_stall() {
    let kept = |fault: &str| {
        let answer = Replay::start(&format!("--fault {fault}")).stream();
        (answer.pieces.len(), answer.broken)
    };
    let (whole, _) = kept("end:9999");
    assert_eq!(kept("end:3"), (3, None));
    assert_eq!(kept("end"), (whole / 2, None));
    assert_eq!(kept("close:3"), (3, Some(io::ErrorKind::UnexpectedEof)));
    assert_eq!(kept("reset:3"), (3, Some(io::ErrorKind::ConnectionReset)));

    let replay = Replay::start("--fault stall:2");
    let socket = replay.connect("POST", CHAT, r#"{"stream":true}"#);
    socket
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    let answer = Answer::read(socket);
    assert_eq!(answer.pieces.len(), 2);
    let waited = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
    assert!(waited.contains(&answer.broken.unwrap()));
}

#[test]
fn faults_strike_whole_responses_too() {
    let replay = Replay::start("--fault close");
    let answer = replay.ask("POST", CHAT, "{}");
    assert_eq!(answer.broken, Some(io::ErrorKind::UnexpectedEof));
    assert!(answer.body().starts_with(b"{\"id\":"));
}

#[test]
fn a_status_can_fail_so_many_times() {
    let replay = Replay::start("--fault status:429 --times 2");
    for _ in 0..2 {
        let answer = replay.stream();
        assert_eq!(answer.status, 429);
        assert!(
            answer.head.contains("retry-after: 1") && answer.head.contains("x-request-id: replay-")
        );
        assert_eq!(answer.json()["error"]["code"], json!(429));
    }
    assert_eq!(replay.stream().status, 200);
}

#[test]
fn requests_are_told_and_one_may_be_the_last() {
    let mut replay = Replay::start("--once");
    let rest = pipes::watchdog(&replay.child);
    assert_eq!(replay.ask("GET", "/x\u{9b}", "").status, 404);
    assert_eq!(replay.stream().status, 200);
    let mut told = String::new();
    replay.stdout.read_to_string(&mut told).unwrap();
    assert!(told.ends_with("POST /v1/chat/completions 200\n"), "{told}");
    assert!(!told.contains('\u{9b}'));
    assert_eq!(replay.child.wait().unwrap().code(), Some(0));
    drop(rest);
}

#[test]
fn events_come_at_their_pace() {
    let recorded = Fixture::named("openai_chat/openai-m04-refusal");
    let events = Replay::of("tests/fixtures/openai_chat/openai-m04-refusal.sse", "").stream();
    let pauses = u32::try_from(events.pieces.len()).unwrap() - 1;
    let replay = Replay::of(
        "tests/fixtures/openai_chat/openai-m04-refusal.sse",
        "--speed 100",
    );
    let start = tokio::time::Instant::now();
    assert_eq!(replay.stream().body(), recorded.bytes);
    assert!(start.elapsed() >= Duration::from_millis(9) * pauses);
}

#[test]
fn many_ask_at_the_same_time() {
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
fn ctrl_c_ends_it() {
    let mut replay = Replay::start("");
    let id = replay.child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    assert_eq!(replay.child.wait().unwrap().code(), Some(0));
}
