//! A gateway that is killed, suspended, or asked to exit while it works.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use tokio::time::Instant;

use super::{Serve, TIMEOUT, read_request};

const REQUEST: &str = r#"{"model":"m","stream":true}"#;

/// An upstream whose answers a function writes. The receiver gets a message when a connection has been closed.
fn upstream(answer: impl Fn(&mut TcpStream) + Send + 'static) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (closed, is_closed) = channel();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            read_request(&socket);
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            socket.write_all(head.as_bytes()).unwrap();
            answer(&mut socket);
            // Until the gateway closes the connection.
            let _ended = socket.read_to_end(&mut Vec::new());
            let _test_is_over = closed.send(());
        }
    });
    (url, is_closed)
}

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn write(socket: &mut TcpStream, text: &str) {
    // The gateway may have been killed.
    let _result = socket.write_all(text.as_bytes());
}

/// A connection that has sent a request.
fn open(address: SocketAddr, method: &str, path: &str, body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    socket.write_all(head.as_bytes()).unwrap();
    socket
}

/// Reads until the text contains something. Returns everything so far.
fn read_until(socket: &mut TcpStream, part: &str) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = socket.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        let last = bytes.len().saturating_sub(read + part.len());
        if String::from_utf8_lossy(&bytes[last..]).contains(part) {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        assert!(read > 0, "the answer has no {part:?}");
    }
}

/// Everything until the connection ends, in whatever way.
fn rest(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _cut = socket.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn stream_id(answer: &str) -> String {
    let id = answer.split_once("x-stream-id: ").unwrap().1;
    id.split_once("\r\n").unwrap().0.to_owned()
}

/// The events of a response, without the framing of its chunks and pings.
fn events(answer: &str) -> Vec<String> {
    let lines = answer.lines();
    lines
        .filter(|line| line.starts_with("data: ") || line.starts_with("id: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_gateway_that_is_killed_cuts_its_readers_and_its_upstream() {
    let (url, is_closed) = upstream(|socket| write(socket, &chunk("a")));
    let mut serve = Serve::start(&["--upstream", &url], &[]);
    let mut post = open(serve.address, "POST", "/v1/chat/completions", REQUEST);
    let head = read_until(&mut post, "\"a\"");
    let id = stream_id(&head);
    let path = format!("/v1/streams/{id}/choices/0");
    let mut view = open(serve.address, "GET", &path, "");
    read_until(&mut view, "\"a\"");
    serve.signal("-KILL");
    serve.child.wait().unwrap();
    for reader in [&mut post, &mut view] {
        let rest = rest(reader);
        // A client must notice: neither the end of the answer nor of the body has arrived.
        assert!(
            !rest.contains("[DONE]") && !rest.ends_with("0\r\n\r\n"),
            "{rest}"
        );
    }
    is_closed
        .recv_timeout(TIMEOUT)
        .expect("the upstream is closed");
    // A log in memory is gone with its process, and the answer says so.
    let serve = Serve::start(&["--upstream", &url], &[]);
    let answer = serve.send("GET", &path, "", "");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("stream_not_found"), "{answer}");
}

#[test]
fn a_gateway_that_was_suspended_past_its_lease_ends_every_stream() {
    let (url, _) = upstream(|socket| {
        for number in 0..40 {
            write(socket, &chunk(&format!("t{number} ")));
            thread::sleep(Duration::from_millis(25));
        }
        write(socket, END);
    });
    let serve = Serve::start(&["--upstream", &url, "--lease", "400ms"], &[]);
    let mut post = open(serve.address, "POST", "/v1/chat/completions", REQUEST);
    let mut answer = read_until(&mut post, "\"t3 \"");
    let path = format!("/v1/streams/{}/events", stream_id(&answer));
    let mut view = open(serve.address, "GET", &path, "");
    let mut second = read_until(&mut view, "\"t3 \"");
    serve.signal("-STOP");
    thread::sleep(Duration::from_millis(1500));
    serve.signal("-CONT");
    answer += &rest(&mut post);
    second += &rest(&mut view);
    let whole = serve.send("GET", &path, "", "");
    let all = events(&whole);
    let last = all.last().unwrap();
    let is_complete = last == "data: [DONE]";
    assert!(
        is_complete || last.contains("\"code\":\"producer_lost\""),
        "{last}"
    );
    for number in 0..40 {
        let times = whole.matches(&format!("\"t{number} \"")).count();
        assert!(
            times <= 1 && (times == 1 || !is_complete),
            "t{number}: {times}"
        );
    }
    assert_eq!(events(&answer), all);
    assert_eq!(events(&second), all);
}

#[test]
fn sigterm_ends_the_command_although_a_view_is_open() {
    let (url, is_closed) = upstream(|socket| write(socket, &chunk("a")));
    let mut serve = Serve::start(&["--upstream", &url, "--drain", "300ms"], &[]);
    let mut post = open(serve.address, "POST", "/v1/chat/completions", REQUEST);
    let head = read_until(&mut post, "\"a\"");
    let path = format!("/v1/streams/{}/events", stream_id(&head));
    let mut view = open(serve.address, "GET", &path, "");
    read_until(&mut view, "\"a\"");
    let started = Instant::now();
    serve.signal("-TERM");
    assert_eq!(serve.child.wait().unwrap().code(), Some(0));
    assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
    assert!(
        rest(&mut view).ends_with("0\r\n\r\n"),
        "the view ends cleanly, to be resumed"
    );
    let end = rest(&mut post);
    assert!(
        end.contains("producer_lost") && !end.contains("[DONE]"),
        "{end}"
    );
    is_closed
        .recv_timeout(TIMEOUT)
        .expect("the upstream is closed");
}

/// What decodes an answer for a reader has a thread of its own, and must not delay the exit.
#[test]
fn the_command_exits_while_streams_are_decoded() {
    let (url, _) = upstream(|socket| {
        let text = chunk(&"word ".repeat(40)).repeat(100);
        for _ in 0..1000 {
            write(socket, &text);
        }
        write(socket, END);
    });
    let mut serve = Serve::start(&["--upstream", &url, "--drain", "10ms"], &[]);
    let mut post = open(serve.address, "POST", "/v1/chat/completions", REQUEST);
    let answer = read_until(&mut post, "data: [DONE]");
    let path = format!("/v1/streams/{}/events?stream=false", stream_id(&answer));
    let started = Instant::now();
    let one = serve.send("GET", &path, "", "");
    assert!(one.starts_with("HTTP/1.1 200"));
    let each = started.elapsed();
    // All of them together take four times as long, or longer, and nearly four seconds at least: what takes less than the second
    // that last events have is answered. A stream has up to 64 readers.
    let threads = thread::available_parallelism().unwrap().get();
    let address = serve.address;
    let rounds = (5.0 / each.as_secs_f64()).ceil().clamp(4.0, 60.0) as usize;
    let mut open_requests: Vec<_> = (0..(rounds * threads).min(60))
        .map(|_| open(address, "GET", &path, ""))
        .collect();
    thread::sleep(each / 4);
    let started = Instant::now();
    serve.signal("-TERM");
    serve.child.wait().unwrap();
    let exit = started.elapsed();
    let bound = 2 * each + Duration::from_secs(2);
    assert!(exit < bound, "{exit:?}, and one request takes {each:?}");
    let mut answers = open_requests.iter_mut().map(rest);
    assert!(
        answers.any(|answer| answer.is_empty()),
        "the requests were being decoded"
    );
}
