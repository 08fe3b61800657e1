//! An HTTP client like that of an application: it sends the request and passes the body to the actors.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, StatusCode,
    client::conn::http1,
    header::{ACCEPT, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time};
use unbraid::{BoxError, Completions, CompletionsBuilder};

use super::scenario::{self, PATH};

/// The client's timeouts. A server in the same process that is silent for this long is stuck: even at the lowest speed its
/// pauses are shorter.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends the question, and returns the answers as they stream.
pub(super) async fn send(
    address: SocketAddr,
    builder: CompletionsBuilder,
) -> Result<Completions, BoxError> {
    let body = time::timeout(TIMEOUT, send_request(address)).await??;
    Ok(builder
        .first_byte_timeout(TIMEOUT)
        .idle_timeout(TIMEOUT)
        .from_byte_stream(body.into_data_stream()))
}

async fn send_request(address: SocketAddr) -> Result<hyper::body::Incoming, BoxError> {
    let socket = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    // The connection ends with the body, and the body reports its errors.
    tokio::spawn(connection);
    let request = Request::post(PATH)
        .header(HOST, address.to_string())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream")
        .body(Full::<Bytes>::from(scenario::request().to_string()))?;
    let response = sender.send_request(request).await?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(format!("the server answered {status}").into()),
    }
}
