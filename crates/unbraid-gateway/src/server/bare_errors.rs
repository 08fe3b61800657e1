//! The answers to heads that hyper cannot read. It writes them itself, without a body; here they get that of other errors.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::http::StatusCode;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::api_error::ApiError;

/// More than hyper's answer has.
const MAX_BARE: usize = 256;

/// The socket of an HTTP/1 connection.
pub(super) struct BareErrors<S> {
    socket: S,
    /// What is written in place of hyper's answer. hyper closes the connection after it.
    rest: Bytes,
}

impl<S> BareErrors<S> {
    pub(super) fn new(socket: S) -> Self {
        Self {
            socket,
            rest: Bytes::new(),
        }
    }
}

impl<S: AsyncWrite + Unpin> BareErrors<S> {
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.rest.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BareErrors<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BareErrors<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_rest(cx))?;
        match with_body(buf) {
            None => Pin::new(&mut this.socket).poll_write(cx, buf),
            Some(answer) => {
                this.rest = answer;
                // The flush that follows writes what the socket does not take now.
                if let Poll::Ready(result) = this.poll_rest(cx) {
                    result?;
                }
                Poll::Ready(Ok(buf.len()))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// The answer in place of hyper's, if this is one: a status, three headers, and no body. Every answer of the router has more
/// headers, also one that is passed on from the upstream.
fn with_body(written: &[u8]) -> Option<Bytes> {
    if written.len() > MAX_BARE || !written.starts_with(b"HTTP/1.1 4") {
        return None;
    }
    let head = std::str::from_utf8(written)
        .ok()?
        .strip_suffix("\r\n\r\n")?;
    let (status_line, headers) = head.split_once("\r\n")?;
    let mut headers: Vec<&str> = headers.split("\r\n").collect();
    headers.sort_unstable();
    let [close, length, date] = headers[..] else {
        return None;
    };
    let is_bare =
        close == "connection: close" && length == "content-length: 0" && date.starts_with("date: ");
    let code = status_line.get("HTTP/1.1 ".len()..)?.get(..3)?;
    let error = match StatusCode::from_bytes(code.as_bytes()).ok()? {
        StatusCode::BAD_REQUEST => ApiError::INVALID_HTTP,
        StatusCode::URI_TOO_LONG => ApiError::URI_TOO_LONG,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => ApiError::HEAD_TOO_LARGE,
        _ => return None,
    };
    let body = error.body().to_string();
    let length = body.len();
    is_bare.then(|| {
        format!(
            "{status_line}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
             {close}\r\ncontent-length: {length}\r\n{date}\r\n\r\n{body}"
        )
        .into()
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const BARE: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: Mon, 23 Nov 2026 20:50:37 GMT\r\n\r\n";

    /// What arrives of a write, through a socket that takes a few bytes at once.
    async fn written(answer: &str) -> String {
        let (near, mut far) = duplex(7);
        let answer = answer.to_owned();
        tokio::spawn(async move {
            let mut socket = BareErrors::new(near);
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket.shutdown().await.unwrap();
        });
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn an_answer_of_hyper_gets_the_body_of_an_error() {
        let text = written(BARE).await;
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())));
        assert!(head.contains("\r\nconnection: close\r\n"));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], "head_too_large");
    }

    #[tokio::test]
    async fn everything_else_is_written_as_it_is() {
        for answer in [
            BARE.replace("431", "200"),
            BARE.replace("431", "404"),
            BARE.replace("\r\ndate", "\r\nx-request-id: 1\r\ndate"),
            BARE.replace("content-length: 0", "content-length: 2"),
            format!("{BARE}x"),
            "data: HTTP/1.1 431\n\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(written(&answer).await, answer);
        }
    }
}
