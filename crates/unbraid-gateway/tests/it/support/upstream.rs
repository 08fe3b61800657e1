//! An upstream that follows a script, byte for byte.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::AbortHandle,
};

/// A step of a response.
#[derive(Clone)]
pub(crate) enum Step {
    /// The head: status and further header lines.
    Head(u16, Vec<(&'static str, String)>),
    /// One chunk of the body.
    Send(String),
    /// Raw bytes of the body.
    Bytes(Vec<u8>),
    /// Bytes outside of the body's framing, for a response that says nothing about its connection.
    Raw(String),
    Sleep(Duration),
    /// Waits for a permit of the gate.
    Gate(Arc<Semaphore>),
    /// Ends the body cleanly.
    End,
    /// Closes the connection in the middle of the body.
    Cut,
    /// Resets the connection.
    Reset,
    /// Sends nothing more, and waits until the client closes or sends another request, whose connection is then closed.
    Hang,
}

/// A request that the upstream has received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

type Script = dyn Fn(&Seen, usize) -> Vec<Step> + Send + Sync;

/// A running upstream. Dropping it stops it.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    seen: Mutex<Vec<Seen>>,
    /// Connections that the client closed before the end of the response.
    closed: AtomicUsize,
    open: AtomicUsize,
    script: Box<Script>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Upstream {
    /// Answers every request with these steps.
    pub(crate) async fn steps(steps: Vec<Step>) -> Self {
        Self::script(move |_, _| steps.clone()).await
    }

    /// Answers each request as the function says; it is given the request and its ordinal.
    pub(crate) async fn script(
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::script_on(listener, script)
    }

    /// The same on this socket.
    pub(crate) fn script_on(
        listener: TcpListener,
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            closed: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            script: Box::new(script),
        });
        let accepting = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(socket, Arc::clone(&accepting)));
            }
        });
        Self {
            address,
            shared,
            task: task.abort_handle(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// How many connections the gateway has closed in the middle of a response.
    pub(crate) fn closed(&self) -> usize {
        self.shared.closed.load(Ordering::SeqCst)
    }

    /// How many responses are being sent.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    socket.set_nodelay(true).unwrap();
    let Some(seen) = read_request(&mut socket).await else {
        return;
    };
    let ordinal = {
        let mut all = shared.seen.lock().unwrap();
        all.push(seen.clone());
        all.len() - 1
    };
    shared.open.fetch_add(1, Ordering::SeqCst);
    let closed = respond(&mut socket, (shared.script)(&seen, ordinal)).await;
    if closed {
        shared.closed.fetch_add(1, Ordering::SeqCst);
    }
    shared.open.fetch_sub(1, Ordering::SeqCst);
}

async fn read_request(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if socket.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen {
        method,
        target,
        headers,
        body,
    })
}

/// Follows the steps. Returns whether the client closed the connection first.
async fn respond(socket: &mut TcpStream, steps: Vec<Step>) -> bool {
    for step in steps {
        let bytes = match step {
            Step::Head(status, headers) => head(status, &headers).into_bytes(),
            Step::Send(text) => chunked(text.as_bytes()),
            Step::Bytes(bytes) => chunked(&bytes),
            Step::Raw(text) => text.into_bytes(),
            Step::End => b"0\r\n\r\n".to_vec(),
            Step::Cut => return false,
            Step::Reset => {
                socket.set_zero_linger().unwrap();
                return false;
            }
            Step::Sleep(pause) => {
                if until_closed(socket, tokio::time::sleep(pause)).await {
                    return true;
                }
                continue;
            }
            Step::Gate(gate) => {
                let permit = async { gate.acquire().await.unwrap().forget() };
                if until_closed(socket, permit).await {
                    return true;
                }
                continue;
            }
            Step::Hang => return until_closed(socket, std::future::pending()).await,
        };
        if socket.write_all(&bytes).await.is_err() {
            return true;
        }
    }
    false
}

async fn until_closed(socket: &mut TcpStream, future: impl Future<Output = ()>) -> bool {
    let mut byte = [0; 1];
    tokio::select! {
        () = future => false,
        read = socket.read(&mut byte) => matches!(read, Ok(0) | Err(_)),
    }
}

fn head(status: u16, headers: &[(&'static str, String)]) -> String {
    let start =
        format!("HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\nconnection: close\r\n");
    let lines = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    start + &lines.collect::<String>() + "\r\n"
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// The head of an event stream.
pub(crate) fn sse() -> Step {
    Step::Head(200, vec![("content-type", "text/event-stream".into())])
}

/// A whole JSON answer.
pub(crate) fn json_body(status: u16, body: &str) -> Vec<Step> {
    vec![
        Step::Head(status, vec![("content-type", "application/json".into())]),
        Step::Send(body.to_owned()),
        Step::End,
    ]
}

/// A chunk with text for one choice.
pub(crate) fn chunk(index: u32, text: &str) -> String {
    format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":{index},"delta":{{"content":"{text}"}}}}]}}"#
    )
}

/// The chunk with the finish reason of one choice.
pub(crate) fn finish(index: u32) -> String {
    format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":{index},"delta":{{}},"finish_reason":"stop"}}]}}"#
    )
}

/// A whole stream of these events.
pub(crate) fn stream_of<T: AsRef<str>>(events: &[T]) -> Vec<Step> {
    let mut steps = vec![sse()];
    steps.extend(
        events
            .iter()
            .map(|event| Step::Send(format!("data: {}\n\n", event.as_ref()))),
    );
    steps.push(Step::End);
    steps
}
