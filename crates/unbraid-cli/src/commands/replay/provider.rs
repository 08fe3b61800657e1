//! `--record-from`: sends a request to the provider, forwards the response, and records both.

mod recorder;

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::{
    HeaderMap, Response, StatusCode,
    body::Frame,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST,
        HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
    },
};
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use unbraid::BoxError;
use unbraid_core::Config;
use unbraid_http::{Client, internal::http_client};

use self::recorder::Recorder;
use super::{playlist::Playlist, recording::Recording, request::ClientRequest, secrets};
use crate::{
    exit::Failure,
    input::Input,
    output::print_error,
    printable::printable,
    report::request_error::innermost,
    server::{self, Abort, Body},
};

/// How long the provider may be silent, before its response and within it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// The pause before a forwarded response is aborted, in which the client receives the data before it.
const BEFORE_ABORT: Duration = Duration::from_millis(50);

/// How many reads of a response wait for the client.
const QUEUED_READS: usize = 16;

/// How much of an error response is forwarded.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// Headers that concern one connection, and not the message.
const OF_CONNECTION: [hyper::header::HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HOST,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The provider whose responses are recorded.
#[derive(Debug)]
pub(super) struct Provider {
    http: reqwest::Client,
    base: reqwest::Url,
    config: Config,
}

impl Provider {
    pub(super) fn new(url: &str, config: &Config) -> Result<Self, Failure> {
        let usage = |error: &dyn Error| Failure::Usage(format!("--record-from: {error}"));
        let builder = Client::builder().base_url(url);
        let http = http_client(&builder).map_err(|error| usage(&error))?;
        builder.build().map_err(|error| usage(&error))?; // checks the address, and its message names what is wrong
        Ok(Self {
            http,
            base: reqwest::Url::parse(url).map_err(|error| usage(&error))?,
            config: config.clone(),
        })
    }

    /// Sends a request, and returns the response while a task records it. The task reports its end to the playlist.
    ///
    /// An error status is forwarded and not recorded, so that the next request is sent again.
    pub(super) async fn record(
        &self,
        request: &ClientRequest,
        playlist: &Arc<Playlist>,
        slot: usize,
    ) -> Response<Body> {
        let give_up = GiveUp::new(Arc::clone(playlist), slot);
        let sent_at = Instant::now();
        let sent = time::timeout(IDLE_TIMEOUT, self.send(request)).await;
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let cause = innermost(&error.without_url());
                return unreachable(&format!("the provider cannot be reached: {cause}"));
            }
            Err(_) => return unreachable("the provider did not respond"),
        };
        let status = response.status();
        let mut forwarded = match self.recorder(request, &response, give_up.file(), sent_at) {
            None => unrecorded(response).await,
            Some(recorder) => {
                let headers = forwarded_headers(response.headers());
                let mut forwarded = Response::new(start(recorder, response, give_up));
                *forwarded.headers_mut() = headers;
                forwarded
            }
        };
        *forwarded.status_mut() = status;
        forwarded
    }

    async fn send(&self, request: &ClientRequest) -> Result<reqwest::Response, reqwest::Error> {
        let mut url = self.base.clone();
        let below = request.endpoint.below_base(&request.path);
        let path = url.path().trim_end_matches('/').to_owned() + below;
        url.set_path(&path);
        if request.query.is_some() {
            url.set_query(request.query.as_deref());
        }
        let mut headers = request.headers.clone();
        OF_CONNECTION.iter().for_each(|name| {
            headers.remove(name);
        });
        // A recording is the text itself.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let needs_key = secrets::needs_key(request.endpoint.api, &headers, url.query());
        let mut post = self.http.post(url).headers(headers);
        if let Some(key) = secrets::key_from_env().filter(|_| needs_key) {
            post = post.bearer_auth(key);
        }
        post.body(request.bytes.clone()).send().await
    }

    /// Opens the file of a recording, or returns `None` for a response that is not recorded.
    fn recorder(
        &self,
        request: &ClientRequest,
        response: &reqwest::Response,
        file: Option<&Input>,
        sent_at: Instant,
    ) -> Option<Recorder> {
        let path = file?.path()?;
        let name = printable(&path.to_string_lossy());
        if !response.status().is_success() {
            return None;
        }
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            print_error(format_args!(
                "unbraid: {name}: not recorded: the provider compressed the response"
            ));
            return None;
        }
        let opened = Recorder::create(path, request, response, &self.config, sent_at);
        opened
            .inspect_err(|error| {
                print_error(format_args!("unbraid: {name}: not recorded: {error}"))
            })
            .ok()
    }
}

/// Marks a recording as missing when it is dropped, so that no request waits for it forever.
struct GiveUp {
    playlist: Arc<Playlist>,
    slot: usize,
    is_armed: bool,
}

impl GiveUp {
    fn new(playlist: Arc<Playlist>, slot: usize) -> Self {
        Self {
            playlist,
            slot,
            is_armed: true,
        }
    }

    fn file(&self) -> Option<&Input> {
        self.playlist.file(self.slot)
    }

    fn complete(mut self, recording: Option<Recording>) {
        self.is_armed = false;
        self.playlist.complete(self.slot, recording);
    }
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        if self.is_armed {
            self.playlist.complete(self.slot, None);
        }
    }
}

/// Starts the task that records a response, and returns the body that forwards it.
///
/// The task reads the response to its end even if the client is gone: many close the connection at `[DONE]`.
fn start(recorder: Recorder, response: reqwest::Response, give_up: GiveUp) -> Body {
    let (sender, receiver) = mpsc::channel(QUEUED_READS);
    tokio::spawn(async move {
        let name = recorder.name();
        let not_recorded = |error: BoxError| {
            print_error(format_args!("unbraid: {name}: not recorded: {error}"));
        };
        match record(recorder, response, &sender).await {
            Ok(Ok(recording)) => give_up.complete(Some(recording)),
            // The response itself is complete.
            Ok(Err(error)) => {
                not_recorded(error);
                drop(give_up);
            }
            Err(error) => {
                not_recorded(error);
                drop(give_up);
                // The abort discards what is not sent yet.
                time::sleep(BEFORE_ABORT).await;
                let _gone = sender.send(Err(Abort::Close.into())).await;
            }
        }
        // Dropped last: the end of the body shows the client that the recording is complete.
        drop(sender);
    });
    let reads = stream::unfold(receiver, |mut receiver| async move {
        let read: Result<Bytes, BoxError> = receiver.recv().await?;
        Some((read.map(Frame::data), receiver))
    });
    StreamBody::new(reads).boxed_unsync()
}

/// Records a response while it is forwarded. Returns an error if the response breaks. An error of the recording alone is in the
/// inner result: the client still gets the whole response.
async fn record(
    mut recorder: Recorder,
    response: reqwest::Response,
    client: &mpsc::Sender<Result<Bytes, BoxError>>,
) -> Result<Result<Recording, BoxError>, BoxError> {
    let mut bytes = response.bytes_stream();
    let mut written = Ok(());
    loop {
        let read = time::timeout(IDLE_TIMEOUT, bytes.next()).await;
        let read = read.map_err(|_| "the provider is silent")?;
        let Some(read) = read else {
            return Ok(written.and_then(|()| recorder.finish()));
        };
        let bytes = read.map_err(|error| innermost(&error.without_url()))?;
        if written.is_ok() {
            written = recorder.write(&bytes);
        }
        let is_gone = client.send(Ok(bytes)).await.is_err();
        // Without a recording and without a client, the rest has no use.
        written = match written {
            Err(error) if is_gone => return Ok(Err(error)),
            written => written,
        };
    }
}

/// Forwards a response that is not recorded. Error responses are short.
async fn unrecorded(response: reqwest::Response) -> Response<Body> {
    let headers = forwarded_headers(response.headers());
    let encoding = response.headers().get(CONTENT_ENCODING).cloned();
    let is_error = !response.status().is_success();
    let bytes = response
        .bytes_stream()
        .map_err(|error| BoxError::from(error.without_url()));
    let body = match is_error {
        true => {
            let limited = bytes.try_fold(Vec::new(), |mut all: Vec<u8>, part| async move {
                let room = MAX_ERROR_BYTES.saturating_sub(all.len());
                all.extend(part.iter().take(room));
                Ok(all)
            });
            let read = time::timeout(IDLE_TIMEOUT, limited).await;
            let all = read.ok().and_then(Result::ok).unwrap_or_default();
            let full = Full::new(Bytes::from(all));
            full.map_err(|never| match never {}).boxed_unsync()
        }
        false => StreamBody::new(bytes.map_ok(Frame::data)).boxed_unsync(),
    };
    let mut forwarded = Response::new(body);
    *forwarded.headers_mut() = headers;
    if let Some(encoding) = encoding {
        forwarded.headers_mut().insert(CONTENT_ENCODING, encoding);
    }
    forwarded
}

/// The headers of a response that mean the same to the client.
fn forwarded_headers(headers: &HeaderMap) -> HeaderMap {
    let of_message = headers
        .iter()
        .filter(|(name, _)| secrets::is_recorded(name) || *name == CONTENT_TYPE);
    of_message
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn unreachable(message: &str) -> Response<Body> {
    print_error(format_args!("unbraid: {}", printable(message)));
    server::error_response(StatusCode::BAD_GATEWAY, message)
}
