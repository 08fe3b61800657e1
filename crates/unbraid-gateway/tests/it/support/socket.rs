//! Requests as bytes, for what an HTTP client cannot send or does not show.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{TestGateway, soon};

/// A connection on which these bytes were sent.
pub(crate) async fn raw(gateway: &TestGateway, bytes: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(gateway.address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    socket
}

/// Everything until the connection is closed. A reset closes it, too.
pub(crate) async fn answer(mut socket: TcpStream) -> String {
    let mut bytes = Vec::new();
    let read: io::Result<usize> = soon(socket.read_to_end(&mut bytes))
        .await
        .expect("it is not closed");
    drop(read);
    String::from_utf8_lossy(&bytes).into_owned()
}
