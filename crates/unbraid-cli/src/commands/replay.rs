//! `unbraid replay`: serves a recording over HTTP like a provider, with the faults that providers have.

mod body;
mod fault;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use clap::ValueHint;
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

use self::{body::Chunks, fault::Fault};
use crate::{
    args::{self, StreamArgs},
    exit::{Failure, Status},
    input::{Input, split_events},
    output::print_line,
    printable::printable,
    runtime::block_on,
    server::{self, Body, RequestHandler, Server},
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid replay answer.sse --port 8080 --speed 30
  unbraid replay answer.sse --port 8080 --fault reset:12
  unbraid replay answer.sse --port 8080 --fault status:429 --times 2";

#[derive(Debug, Clone, clap::Args)]
pub(super) struct ReplayArgs {
    /// The port on the loopback interface; with 0, the system chooses a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Send this many events per second; by default, events are sent as fast as they are read
    #[arg(long, value_name = "PER_SECOND", value_parser = args::events_per_second)]
    speed: Option<f64>,
    /// Send the body in chunks of this many bytes instead of one chunk for each event
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    cut: Option<u32>,
    /// The fault: `end`, `close`, `reset` or `stall`, in the middle of the body or after `:N` events; or `status:CODE`
    #[arg(long)]
    fault: Option<Fault>,
    /// Apply the fault to this many requests only, from the first on
    #[arg(long, value_name = "N", requires = "fault")]
    times: Option<u64>,
    /// Answer one request, then exit
    #[arg(long)]
    once: bool,
    /// The recorded stream, or `-` for the standard input
    #[arg(value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

/// The longest request body. It is buffered, and no prompt is longer than this.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The ends of the paths that are served, after any prefix.
const PATHS: [&str; 2] = ["/chat/completions", "/completions"];

pub(super) fn run(args: &ReplayArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let bytes = args.file.read_to_end()?;
    let port = args.port;
    let replay = Arc::new(Replay::new(bytes.into(), stream, args.clone()));
    block_on(async {
        let server = Server::start(port, replay).await;
        let mut server = server.map_err(|error| Failure::Listen { port, error })?;
        let mut interrupted = Box::pin(maybe_done(signal::ctrl_c()));
        // The first poll installs the signal handler. It comes before the address is printed, because a caller may send the
        // signal as soon as it has read the address.
        let _installed: Poll<()> = futures::poll!(&mut interrupted);
        print_line(format_args!("http://{}/v1", server.address())).map_err(Failure::Output)?;
        tokio::select! {
            () = server.stopped() => {}
            () = interrupted => {}
        }
        Ok(Status::Finished)
    })
}

/// A recording, and the options for serving it.
#[derive(Debug)]
struct Replay {
    bytes: Bytes,
    events: Arc<[Bytes]>,
    /// The response to a request without `"stream": true`, or `None` if the recording holds no answer.
    collected: Option<String>,
    args: ReplayArgs,
    /// How many requests have been answered.
    request_count: AtomicU64,
}

impl Replay {
    fn new(bytes: Bytes, stream: &StreamArgs, args: ReplayArgs) -> Self {
        let mut demux = Demux::new(stream.config());
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            demux.feed(line);
            while demux.next_event().is_some() {} // the demux would keep the events otherwise
        }
        demux.finish();
        let holds_answer = demux.choices().next().is_some();
        Self {
            events: split_events(bytes.clone()).into(),
            bytes,
            collected: holds_answer.then(|| demux.aggregate_json()),
            args,
            request_count: AtomicU64::new(0),
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some(rejection) = server::reject_invalid(&request, &PATHS) {
            return rejection;
        }
        let wants_stream = match wants_stream(request).await {
            Ok(wants_stream) => wants_stream,
            Err(rejection) => return rejection,
        };
        let number = self.request_count.fetch_add(1, Ordering::SeqCst);
        let applies = self.args.times.is_none_or(|times| number < times);
        let fault = self.args.fault.filter(|_| applies);
        let mut response = match (fault, &self.collected) {
            (Some(Fault::Status(status)), _) => failed_response(status),
            (fault, Some(collected)) if !wants_stream => {
                let chunks = Chunks::from_response(collected.clone().into());
                self.response("application/json", chunks, fault)
            }
            (fault, _) => {
                let chunks = Chunks::from_events(&self.events);
                self.response(content_type(&self.bytes), chunks, fault)
            }
        };
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::try_from(format!("replay-{number}")) {
            headers.insert("x-request-id", id);
        }
        if self.args.once {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn response(
        &self,
        content_type: &'static str,
        chunks: Chunks,
        fault: Option<Fault>,
    ) -> Response<Body> {
        let interval = self
            .args
            .speed
            .map(|per_second| Duration::try_from_secs_f64(per_second.recip()).unwrap_or_default());
        let cut = self.args.cut.map(|bytes| bytes as usize);
        let mut response = server::response(content_type, chunks.into_body(interval, cut, fault));
        let no_cache = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        response
    }
}

impl RequestHandler for Replay {
    fn handle(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let response = self.respond(request).await;
            print_request(&method, &path, response.status());
            response
        }
        .boxed()
    }

    fn is_done(&self) -> bool {
        self.args.once && self.request_count.load(Ordering::SeqCst) > 0
    }
}

/// Returns whether a request has `"stream": true`, or an error response for an invalid body.
async fn wants_stream(request: Request<Incoming>) -> Result<bool, Response<Body>> {
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES)
        .collect()
        .await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            server::error_response(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long")
        } else {
            server::error_response(StatusCode::BAD_REQUEST, "the request body is incomplete")
        }
    })?;
    match serde_json::from_slice(&body.to_bytes()) {
        Ok(Value::Object(fields)) => Ok(fields.get("stream") == Some(&Value::Bool(true))),
        _ => Err(server::error_response(
            StatusCode::BAD_REQUEST,
            "the request is not a JSON object",
        )),
    }
}

fn failed_response(status: StatusCode) -> Response<Body> {
    let mut response = server::error_response(status, "this replay is set to fail");
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        let second = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, second);
    }
    response
}

/// The content type that a server would have sent with these bytes.
fn content_type(bytes: &[u8]) -> &'static str {
    match bytes.trim_ascii_start().first() {
        Some(b'{') if serde_json::from_slice::<Value>(bytes).is_ok() => "application/json",
        Some(b'{') => "application/x-ndjson",
        Some(b'<') => "text/html",
        _ => "text/event-stream",
    }
}

/// Prints one line for each request.
fn print_request(method: &Method, path: &str, status: StatusCode) {
    let (path, status) = (printable(path), status.as_u16());
    // The caller may close the pipe after it has read the address. Its requests must still be served.
    let _unread: io::Result<()> = print_line(format_args!("{method} {path} {status}"));
}
