//! `unbraid replay`: serves a recording over HTTP like a provider, with the faults that providers have.

mod body;
mod endpoint;
mod fault;
#[cfg(not(feature = "chat"))]
mod no_provider;
mod playlist;
#[cfg(feature = "chat")]
mod provider;
mod recording;
mod request;
mod secrets;
mod whole;

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use clap::ValueHint;
use futures::{
    FutureExt,
    future::{BoxFuture, maybe_done},
};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use tokio::{signal, time};
use unbraid_core::Config;

#[cfg(not(feature = "chat"))]
use self::no_provider::Provider;
#[cfg(feature = "chat")]
use self::provider::Provider;
use self::{
    body::Chunks,
    fault::Fault,
    playlist::{AfterLast, Assignment, Playlist},
    recording::Recording,
    request::ClientRequest,
    whole::Whole,
};
use crate::{
    args::{self, StreamArgs},
    exit::{Failure, Status},
    input::Input,
    output::print_line,
    printable::printable,
    runtime::block_on,
    server::{Body, RequestHandler, Server},
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid replay answer.sse --port 8080 --speed 30
  unbraid replay turn1.sse turn2.sse --port 8080 --after-last error
  unbraid replay answer.sse --port 8080 --fault reset:12
  unbraid replay answer.sse --port 8080 --fault status:429 --times 2
  unbraid replay --record-from https://api.openai.com/v1 turn1.sse turn2.sse --port 8080";

#[derive(Debug, Clone, clap::Args)]
pub(super) struct ReplayArgs {
    /// The port on the loopback interface; with 0, the system chooses a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Send this many events per second; without it, events are sent as fast as they are read
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
    /// What answers a request when every recording that fits it has been served
    #[arg(long, value_name = "WHAT", value_enum, default_value = "first")]
    after_last: AfterLast,
    /// Send requests to the provider with this base URL while there are FILEs that do not exist, and record the responses
    /// in them
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with = "fault")]
    record_from: Option<String>,
    /// Answer one request, then exit
    #[arg(long)]
    once: bool,
    /// The recorded streams, or `-` for the standard input; each request gets the next one of its model
    #[arg(required = true, value_name = "FILE", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    files: Vec<Input>,
}

/// How long the end of the command waits for a recording. A client may close its connection at `[DONE]`, before the end of the
/// body.
const RECORDING_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run(args: &ReplayArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let port = args.port;
    let replay = Arc::new(Replay::new(args.clone(), &stream.config())?);
    block_on(async {
        let server = Server::start(port, Arc::clone(&replay)).await;
        let mut server = server.map_err(|error| Failure::Listen { port, error })?;
        let mut interrupted = Box::pin(maybe_done(signal::ctrl_c()));
        // The first poll installs the signal handler. It comes before the address is printed, because a caller may send the
        // signal as soon as it has read the address.
        let _installed: Poll<()> = futures::poll!(&mut interrupted);
        print_line(format_args!("http://{}/v1", server.address())).map_err(Failure::Output)?;
        tokio::select! {
            () = server.stopped() => {
                let _timed_out = time::timeout(RECORDING_TIMEOUT, replay.playlist.idle()).await;
            }
            () = interrupted => {}
        }
        Ok(Status::Finished)
    })
}

/// The recordings, and the options for serving them.
#[derive(Debug)]
struct Replay {
    playlist: Arc<Playlist>,
    provider: Option<Provider>,
    args: ReplayArgs,
    /// How many requests have been answered.
    request_count: AtomicU64,
}

impl Replay {
    fn new(args: ReplayArgs, config: &Config) -> Result<Self, Failure> {
        let is_repeated =
            |(at, file): (usize, &Input)| args.files.iter().take(at).any(|other| other == file);
        if args.record_from.is_some() && args.files.iter().enumerate().any(is_repeated) {
            let message = "--record-from: a FILE is named twice";
            return Err(Failure::Usage(message.to_owned()));
        }
        let load = |file: &Input| {
            let is_missing = file.path().is_some_and(|path| !path.exists());
            let recording = match is_missing && args.record_from.is_some() {
                true => None,
                false => Some(Recording::load(file, config)?),
            };
            Ok((file.clone(), recording))
        };
        let files = args.files.iter().map(load);
        let files = files.collect::<Result<_, Failure>>()?;
        let playlist = Arc::new(Playlist::new(files, args.after_last));
        let base = args.record_from.as_deref();
        Ok(Self {
            playlist,
            provider: base.map(|url| Provider::new(url, config)).transpose()?,
            args,
            request_count: AtomicU64::new(0),
        })
    }

    /// Returns the response to a request, and what is printed about it.
    async fn respond(&self, request: Request<Incoming>) -> (Response<Body>, Note<'_>) {
        let request = match ClientRequest::read(request).await {
            Ok(request) => request,
            Err(rejection) => return (rejection, Note::default()),
        };
        let number = self.request_count.fetch_add(1, Ordering::SeqCst);
        let applies = self.args.times.is_none_or(|times| number < times);
        let fault = self.args.fault.filter(|_| applies);
        let (mut response, note) = match fault {
            Some(Fault::Status(status)) => (failed_response(&request, status), Note::default()),
            fault => self.respond_from_recording(&request, fault).await,
        };
        let headers = response.headers_mut();
        if !headers.contains_key(REQUEST_ID)
            && let Ok(id) = HeaderValue::try_from(format!("replay-{number}"))
        {
            headers.insert(REQUEST_ID, id);
        }
        if self.args.once {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        (response, note)
    }

    async fn respond_from_recording(
        &self,
        request: &ClientRequest,
        fault: Option<Fault>,
    ) -> (Response<Body>, Note<'_>) {
        // The client repeats a request whose response broke, and must find the same recording.
        let takes_turn = fault.is_none();
        let Some(slot) = self.playlist.select(request.wanted(), takes_turn) else {
            let message = "no recording is left for this request";
            let response = request.error_response(StatusCode::NOT_FOUND, message);
            return (response, Note::default());
        };
        let mut note = Note {
            file: self.playlist.file(slot).filter(|_| self.playlist.len() > 1),
            fault,
            is_recorded: false,
        };
        let response = match (self.playlist.assign(slot).await, &self.provider) {
            (Assignment::Serve(recording), _) => self.serve(&recording, request, fault),
            (Assignment::Record, Some(provider)) => {
                note.is_recorded = true;
                let response = provider.record(request, &self.playlist, slot);
                Box::pin(response).await
            }
            (Assignment::Record, None) => {
                self.playlist.complete(slot, None); // a file is only missing if there is a provider
                request.error_response(StatusCode::NOT_FOUND, "the recording is missing")
            }
        };
        (response, note)
    }

    fn serve(
        &self,
        recording: &Recording,
        request: &ClientRequest,
        fault: Option<Fault>,
    ) -> Response<Body> {
        let json = || HeaderValue::from_static("application/json");
        let (content_type, chunks) = match &recording.whole {
            Whole::Response(response) if !request.wants_stream() => {
                (json(), Chunks::from_response(response.clone()))
            }
            Whole::None(reason) if !request.wants_stream() => {
                return request.error_response(StatusCode::NOT_IMPLEMENTED, reason);
            }
            _ => match recording.reframed(request) {
                Some((content_type, chunks)) => (
                    HeaderValue::from_static(content_type),
                    Chunks::from_events(&chunks.into()),
                ),
                None => {
                    let chunks = Chunks::from_events(&recording.events);
                    (recording.content_type.clone(), chunks)
                }
            },
        };
        let interval = self
            .args
            .speed
            .map(|per_second| Duration::try_from_secs_f64(per_second.recip()).unwrap_or_default());
        let cut = self.args.cut.map(|bytes| bytes as usize);
        let mut response = Response::new(chunks.into_body(interval, cut, fault));
        let no_cache = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        response
    }
}

const REQUEST_ID: &str = "x-request-id";

/// What the line of a request says behind its status.
#[derive(Debug, Default)]
struct Note<'n> {
    /// The recording, if there are several.
    file: Option<&'n Input>,
    fault: Option<Fault>,
    /// Whether the response comes from the provider.
    is_recorded: bool,
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_recorded {
            f.write_str(" recording")?;
        }
        if let Some(file) = self.file {
            write!(f, " {file}")?;
        }
        match self.fault {
            Some(Fault::Body(fault, _)) => write!(f, " ({fault})"),
            Some(Fault::Status(_)) | None => Ok(()),
        }
    }
}

impl RequestHandler for Replay {
    fn handle(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let (response, note) = self.respond(request).await;
            print_request(&method, &path, response.status(), &note);
            response
        }
        .boxed()
    }

    fn is_done(&self) -> bool {
        self.args.once && self.request_count.load(Ordering::SeqCst) > 0
    }
}

fn failed_response(request: &ClientRequest, status: StatusCode) -> Response<Body> {
    let mut response = request.error_response(status, "this replay is set to fail");
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        let second = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, second);
    }
    response
}

/// Prints one line for each request.
fn print_request(method: &Method, path: &str, status: StatusCode, note: &Note<'_>) {
    let (path, status) = (printable(path), status.as_u16());
    // The caller may close the pipe after it has read the address. Its requests must still be served.
    let _unread: io::Result<()> = print_line(format_args!("{method} {path} {status}{note}"));
}
