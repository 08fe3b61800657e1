//! An HTTP client as an application would have one: it sends the request and gives the body to the actors.

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

/// A server in the same process that is silent for this long is stuck; the slowest pace has shorter pauses.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the question, and gives the answers as they stream.
pub(crate) async fn ask(
    address: SocketAddr,
    builder: CompletionsBuilder,
) -> Result<Completions, BoxError> {
    let body = time::timeout(PATIENCE, request(address)).await??;
    Ok(builder
        .first_byte_timeout(PATIENCE)
        .idle_timeout(PATIENCE)
        .from_byte_stream(body.into_data_stream()))
}

async fn request(address: SocketAddr) -> Result<hyper::body::Incoming, BoxError> {
    let socket = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    // It ends with the body, and its errors are the body's too.
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
