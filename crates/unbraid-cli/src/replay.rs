//! `unbraid replay`: serves a recording over HTTP as a provider would, with the faults that providers have.

mod body;
mod fault;

use std::{
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, maybe_done},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, CONNECTION, HeaderValue, RETRY_AFTER},
};
use serde_json::Value;
use tokio::signal;
use unbraid_core::Demux;

pub(crate) use fault::Fault;

use self::body::Pieces;
use crate::{
    args::Reading,
    exit::{self, Failure, Status},
    input::Source,
    printable::printable,
    serve::{self, Answers, Body, Server},
    watch::{block_on, events},
};

/// How a recording is served.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Manner {
    /// The port to listen on, of this machine only; 0 is any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Send so many events a second; without it, they are sent as fast as they are read
    #[arg(long, value_name = "PER_SECOND", value_parser = crate::args::per_second)]
    speed: Option<f64>,
    /// Send the body in pieces of so many bytes instead of one piece an event
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    cut: Option<u32>,
    /// What goes wrong: `end`, `close`, `reset` or `stall`, in the middle or `:N` events from the start; `status:CODE`
    #[arg(long)]
    fault: Option<Fault>,
    /// Only the first so many requests meet the fault
    #[arg(long, value_name = "N", requires = "fault")]
    times: Option<u64>,
    /// Answer one request, then end
    #[arg(long)]
    once: bool,
}

/// Bytes of a request's body; a longer one is no prompt, and would be kept in memory.
const MAX_REQUEST: usize = 64 << 20;

/// Where requests are answered, behind whatever comes before it.
const PATHS: [&str; 2] = ["/chat/completions", "/completions"];

pub(crate) fn run(source: &Source, reading: &Reading, manner: Manner) -> Result<Status, Failure> {
    let mut bytes = Vec::new();
    let read = exit::open(source)?.read_to_end(&mut bytes);
    read.map_err(|error| Failure::open(source, error))?;
    let port = manner.port;
    let replay = Arc::new(Replay::new(bytes.into(), reading, manner));
    block_on(async {
        let server = Server::start(port, replay).await;
        let mut server = server.map_err(|error| Failure::Listen { port, error })?;
        let mut interrupted = Box::pin(maybe_done(signal::ctrl_c()));
        // The first poll installs the handler: whoever has read the address may interrupt at once.
        let _asked: Poll<()> = futures::poll!(&mut interrupted);
        tell(format_args!("http://{}/v1", server.address())).map_err(Failure::Output)?;
        tokio::select! {
            () = server.ended() => {}
            () = interrupted => {}
        }
        Ok(Status::Finished)
    })
}

/// A recording, and how it is served.
#[derive(Debug)]
struct Replay {
    bytes: Bytes,
    events: Arc<[Bytes]>,
    /// The answer to a request that asks for no stream; `None` if the recording holds no answer.
    collected: Option<String>,
    manner: Manner,
    /// Requests so far.
    requests: AtomicU64,
}

impl Replay {
    fn new(bytes: Bytes, reading: &Reading, manner: Manner) -> Self {
        let mut demux = Demux::new(reading.options());
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            demux.feed(line);
            while demux.next_event().is_some() {} // else they would queue up
        }
        demux.finish();
        let holds_answer = demux.choices().next().is_some();
        Self {
            events: events(bytes.clone()).into(),
            bytes,
            collected: holds_answer.then(|| demux.aggregate_json()),
            manner,
            requests: AtomicU64::new(0),
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some(refusal) = serve::refused(&request, &PATHS) {
            return refusal;
        }
        let streams = match asks_for_stream(request).await {
            Ok(streams) => streams,
            Err(refusal) => return refusal,
        };
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let struck = self.manner.times.is_none_or(|times| number < times);
        let fault = self.manner.fault.filter(|_| struck);
        let mut response = match (fault, &self.collected) {
            (Some(Fault::Status(status)), _) => failed(status),
            (fault, Some(collected)) if !streams => {
                let pieces = Pieces::of_whole(collected.clone().into());
                self.send("application/json", pieces, fault)
            }
            (fault, _) => {
                let pieces = Pieces::of_events(&self.events);
                self.send(content_type(&self.bytes), pieces, fault)
            }
        };
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::try_from(format!("replay-{number}")) {
            headers.insert("x-request-id", id);
        }
        if self.manner.once {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn send(
        &self,
        content_type: &'static str,
        pieces: Pieces,
        fault: Option<Fault>,
    ) -> Response<Body> {
        let step = self
            .manner
            .speed
            .map(|per_second| Duration::try_from_secs_f64(per_second.recip()).unwrap_or_default());
        let cut = self.manner.cut.map(|bytes| bytes as usize);
        let mut response = serve::response(content_type, pieces.body(step, cut, fault));
        let no_cache = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        response
    }
}

impl Answers for Replay {
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let response = self.respond(request).await;
            told(&method, &path, response.status());
            response
        }
        .boxed()
    }

    fn is_done(&self) -> bool {
        self.manner.once && self.requests.load(Ordering::SeqCst) > 0
    }
}

/// Whether a request has `"stream": true`, or what is wrong with its body.
async fn asks_for_stream(request: Request<Incoming>) -> Result<bool, Response<Body>> {
    let body = Limited::new(request.into_body(), MAX_REQUEST)
        .collect()
        .await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            serve::refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long")
        } else {
            serve::refusal(StatusCode::BAD_REQUEST, "the request was cut")
        }
    })?;
    match serde_json::from_slice(&body.to_bytes()) {
        Ok(Value::Object(fields)) => Ok(fields.get("stream") == Some(&Value::Bool(true))),
        _ => Err(serve::refusal(
            StatusCode::BAD_REQUEST,
            "the request is no JSON object",
        )),
    }
}

fn failed(status: StatusCode) -> Response<Body> {
    let mut response = serve::refusal(status, "the replay was asked to fail");
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        let second = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, second);
    }
    response
}

/// What a server would have called the bytes that it sent.
fn content_type(bytes: &[u8]) -> &'static str {
    match bytes.trim_ascii_start().first() {
        Some(b'{') if serde_json::from_slice::<Value>(bytes).is_ok() => "application/json",
        Some(b'{') => "application/x-ndjson",
        Some(b'<') => "text/html",
        _ => "text/event-stream",
    }
}

/// One line on the standard output.
fn tell(line: std::fmt::Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// A line for each request. Whoever reads the address may close the output then; the requests are served anyway.
fn told(method: &Method, path: &str, status: StatusCode) {
    let (path, status) = (printable(path), status.as_u16());
    let _unread: io::Result<()> = tell(format_args!("{method} {path} {status}"));
}
