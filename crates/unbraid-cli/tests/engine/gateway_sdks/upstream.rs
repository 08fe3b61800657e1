//! A provider whose behaviour the prompt selects.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

/// How many words each choice has.
pub(super) const WORDS: usize = 5;

/// One word of a choice.
pub(super) fn word(index: usize, word: usize) -> String {
    format!("w{index}.{word} ")
}

/// The provider. Its threads end with the test process.
pub(super) struct Upstream {
    pub(super) base_url: String,
    closed: Arc<AtomicUsize>,
}

impl Upstream {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let closed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&closed);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || {
                    if serve(socket).is_err() {
                        counter.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        Self { base_url, closed }
    }

    /// How many answers the gateway has closed before their ends.
    pub(super) fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }
}

/// Answers one request. Fails once the gateway has closed the connection.
fn serve(socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let Some(request) = read_request(&socket) else {
        return Ok(()); // a connection that the gateway has not used
    };
    let prompt = request["messages"][0]["content"].as_str().unwrap();
    let n = usize::try_from(request["n"].as_u64().unwrap_or(1)).unwrap();
    let mut answer = Answer(socket);
    if prompt == "refuse" {
        let body = r#"{"error":{"message":"busy","type":"server_error","param":null,"code":"overloaded"}}"#;
        let head = "HTTP/1.1 429 X\r\nconnection: close\r\ncontent-type: application/json";
        let length = body.len();
        return write!(answer.0, "{head}\r\ncontent-length: {length}\r\n\r\n{body}");
    }
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream";
    write!(
        answer.0,
        "{head}\r\nx-request-id: r1\r\ntransfer-encoding: chunked\r\n\r\n"
    )?;
    answer.choices(prompt, n)
}

struct Answer(TcpStream);

impl Answer {
    fn choices(&mut self, prompt: &str, n: usize) -> io::Result<()> {
        let pause = Duration::from_secs(1);
        if prompt == "pause" {
            // Pings precede the first event.
            std::thread::sleep(pause);
        }
        for index in 0..n {
            self.chunk(index, &json!({"role": "assistant", "content": ""}), None)?;
        }
        for word in (0..).take_while(|word| *word < WORDS || prompt == "endless") {
            for index in 0..n {
                self.chunk(index, &json!({"content": self::word(index, word)}), None)?;
            }
            match (prompt, word) {
                ("cut", 0) => return Ok(()),
                ("pause", 1) | ("slow", _) => std::thread::sleep(pause),
                ("endless", _) => std::thread::sleep(Duration::from_millis(20)),
                _ => {}
            }
        }
        for index in 0..n {
            self.chunk(index, &json!({}), Some("stop"))?;
        }
        self.event("[DONE]")?;
        self.0.write_all(b"0\r\n\r\n")
    }

    fn chunk(&mut self, index: usize, delta: &Value, finish: Option<&str>) -> io::Result<()> {
        let choice = json!({"index": index, "delta": delta, "finish_reason": finish});
        let chunk = json!({
            "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice],
        });
        self.event(&chunk.to_string())
    }

    fn event(&mut self, data: &str) -> io::Result<()> {
        let event = format!("data: {data}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        self.0.write_all(chunk.as_bytes())
    }
}

fn read_request(socket: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
