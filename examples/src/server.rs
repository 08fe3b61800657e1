//! A server on the loopback interface for the examples that send a request.

use std::{convert::Infallible, io, net::Ipv4Addr};

use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::{AUTHORIZATION, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::body;

/// Starts a server that replies to every request that has a key with a recorded answer, and returns its base URL.
///
/// # Errors
///
/// Returns an error if the server cannot bind a port.
pub async fn serve(recorded: &'static str) -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(connection(socket, recorded));
        }
    });
    Ok(base_url)
}

async fn connection(socket: TcpStream, recorded: &'static str) {
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, recorded)));
    let serving = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    // A client may close its connection at any time.
    let _closed: hyper::Result<()> = serving.await;
}

fn answer(
    request: &Request<Incoming>,
    recorded: &'static str,
) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let (status, kind, body) = if request.headers().contains_key(AUTHORIZATION) {
        let frames = body(recorded).map_ok(|read| Frame::data(Bytes::from_static(read)));
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
