//! A server on the loopback interface for the examples that send a request.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::{AUTHORIZATION, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use crate::{body, body_with_pauses};

/// Starts a server that replies to every request that has a key with a recorded answer, and returns its base URL.
///
/// # Errors
///
/// Returns an error if the server cannot bind a port.
pub async fn serve(recorded: &'static str) -> io::Result<String> {
    serve_each(move |_| recorded).await
}

/// Starts the same server, which chooses the recorded answer by the body of the request.
///
/// # Errors
///
/// Returns an error if the server cannot bind a port.
pub async fn serve_each(
    choose: impl Fn(&Value) -> &'static str + Send + Sync + 'static,
) -> io::Result<String> {
    serve_with(move |sent| body(choose(sent))).await
}

/// Starts a server that replies to the first request with the first answer, and so on, and to every further request with the last
/// one. Returns its base URL.
///
/// # Errors
///
/// Returns an error if the server cannot bind a port.
pub async fn serve_turns(turns: [&'static str; 2]) -> io::Result<String> {
    let turn = AtomicUsize::new(0);
    let next = move || turns[turn.fetch_add(1, Ordering::Relaxed).min(turns.len() - 1)];
    serve_with(move |_| body_with_pauses(next())).await
}

/// Starts a server that replies to every request that has a key with the body that is chosen for it.
async fn serve_with<B>(choose: impl Fn(&Value) -> B + Send + Sync + 'static) -> io::Result<String>
where
    B: Stream<Item = io::Result<&'static [u8]>> + Send + 'static,
{
    let choose = Arc::new(choose);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(connection(socket, Arc::clone(&choose)));
        }
    });
    Ok(base_url)
}

async fn connection<B>(socket: TcpStream, choose: Arc<impl Fn(&Value) -> B + Send + Sync>)
where
    B: Stream<Item = io::Result<&'static [u8]>> + Send + 'static,
{
    let service = service_fn(async |request: Request<Incoming>| {
        let has_key = request.headers().contains_key(AUTHORIZATION);
        let sent = request.into_body().collect().await?.to_bytes();
        let sent = serde_json::from_slice(&sent).unwrap_or_default();
        Ok::<_, hyper::Error>(answer(has_key.then(|| choose(&sent))))
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    // A client may close its connection at any time.
    let _closed: hyper::Result<()> = serving.await;
}

/// The answer with a body, or without one, the refusal of a request that has no key.
fn answer<B>(body: Option<B>) -> Response<UnsyncBoxBody<Bytes, io::Error>>
where
    B: Stream<Item = io::Result<&'static [u8]>> + Send + 'static,
{
    let (status, kind, body) = if let Some(body) = body {
        let frames = body.map_ok(|read| Frame::data(Bytes::from_static(read)));
        let body = UnsyncBoxBody::new(StreamBody::new(frames));
        (StatusCode::OK, "text/event-stream", body)
    } else {
        let error = r#"{"error":{"message":"You have no key.","code":"no_key"}}"#;
        let body = Full::from(error).map_err(|never| match never {});
        let body = UnsyncBoxBody::new(body);
        (StatusCode::UNAUTHORIZED, "application/json", body)
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
