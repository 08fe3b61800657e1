//! A provider for one test: it answers as it is told, and keeps what it was asked.

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

/// A server that lives as long as the tests.
pub(super) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) head: String,
    pub(super) body: Value,
}

/// What comes back.
pub(super) struct Reply {
    bytes: Vec<u8>,
    /// What follows after a pause.
    rest: Option<(Duration, Vec<u8>)>,
    holds: bool,
}

impl Reply {
    pub(super) fn of(status: u16, kind: &str, body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\nx-request-id: req-7\r\nconnection: close\r\n\r\n"
        );
        Self {
            bytes: [head.as_bytes(), body].concat(),
            rest: None,
            holds: false,
        }
    }

    /// The same, and after a pause more of the body.
    pub(super) fn then(self, pause: Duration, body: &str) -> Self {
        Self {
            rest: Some((pause, body.into())),
            ..self
        }
    }

    /// The same, but the body does not end before the client hangs up.
    pub(super) fn held(self) -> Self {
        Self {
            holds: true,
            ..self
        }
    }
}

impl Server {
    /// The answers depend on how many requests came before, and on the request.
    pub(super) fn start(answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept) = (Arc::new(answer), Arc::clone(&asked));
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                thread::spawn(move || {
                    let mut socket = socket.unwrap();
                    let Some(request) = read(&socket) else {
                        return;
                    };
                    let number = {
                        let mut kept = kept.lock().unwrap();
                        kept.push(request.clone());
                        kept.len() - 1
                    };
                    let reply = answer(number, &request);
                    let _gone = socket.write_all(&reply.bytes);
                    if let Some((pause, rest)) = reply.rest {
                        thread::sleep(pause);
                        let _gone = socket.write_all(&rest);
                    }
                    if reply.holds {
                        let _until_gone = socket.read(&mut [0]);
                    }
                });
            }
        });
        Self { address, asked }
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Runs `unbraid chat` against this server.
    pub(super) fn chat(&self, words: &[&str]) -> Run {
        let url = self.base_url();
        chat(&[&["--base-url", &url], words].concat(), &[], "")
    }
}

/// Reads one request; `None` if it is none, as from a client that wants to speak TLS.
fn read(socket: &TcpStream) -> Option<Asked> {
    let mut input = BufReader::new(socket);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.first().is_some_and(|byte| *byte != b'P')
            || input.read_until(b'\n', &mut head).ok()? == 0
        {
            let _refused = (&*socket).write_all(b"HTTP/1.1 400 -\r\n\r\n");
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
    Some(Asked { head, body })
}
