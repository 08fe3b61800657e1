//! A provider for one test, with scripted replies. It keeps the requests that it received.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::chat;
use crate::Run;

/// A server that runs until the end of the test process.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A request that the server received.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// The response to a request.
pub(crate) struct Reply {
    bytes: Vec<u8>,
    /// Further bytes, after a pause.
    rest: Option<(Duration, Vec<u8>)>,
    /// Whether the connection stays open after the bytes.
    stays_open: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, kind: &str, body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\nx-request-id: req-7\r\nconnection: close\r\n\r\n"
        );
        Self {
            bytes: [head.as_bytes(), body].concat(),
            rest: None,
            stays_open: false,
        }
    }

    /// Adds more of the body, after a pause.
    pub(crate) fn then(self, pause: Duration, body: &str) -> Self {
        Self {
            rest: Some((pause, body.into())),
            ..self
        }
    }

    /// Keeps the connection open until the client closes it.
    pub(crate) fn keep_open(self) -> Self {
        Self {
            stays_open: true,
            ..self
        }
    }
}

impl Server {
    /// Starts a server. The reply depends on the number of earlier requests, and on the request.
    pub(crate) fn start(
        reply: impl Fn(usize, &ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (reply, received) = (Arc::new(reply), Arc::clone(&requests));
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (reply, received) = (Arc::clone(&reply), Arc::clone(&received));
                thread::spawn(move || {
                    let mut socket = socket.unwrap();
                    let Some(request) = read(&socket) else {
                        return;
                    };
                    let number = {
                        let mut received = received.lock().unwrap();
                        received.push(request.clone());
                        received.len() - 1
                    };
                    let reply = reply(number, &request);
                    let _closed = socket.write_all(&reply.bytes);
                    if let Some((pause, rest)) = reply.rest {
                        thread::sleep(pause);
                        let _closed = socket.write_all(&rest);
                    }
                    if reply.stays_open {
                        let _until_closed = socket.read(&mut [0]);
                    }
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Runs `unbraid chat` against this server.
    pub(crate) fn chat(&self, args: &[&str]) -> Run {
        let url = self.base_url();
        chat(&[&["--base-url", &url], args].concat(), &[], "")
    }
}

/// Reads one request. Returns `None` for other data, such as a TLS handshake.
fn read(socket: &TcpStream) -> Option<ReceivedRequest> {
    let mut input = BufReader::new(socket);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.first().is_some_and(|byte| *byte != b'P')
            || input.read_until(b'\n', &mut head).ok()? == 0
        {
            let _rejected = (&*socket).write_all(b"HTTP/1.1 400 -\r\n\r\n");
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let lower = head.to_ascii_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    input.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).ok()?;
    Some(ReceivedRequest { head, body })
}
