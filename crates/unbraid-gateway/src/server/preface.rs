//! The version of HTTP that a connection uses, from its first bytes.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client that uses HTTP/2 sends first (RFC 9113, 3.4). No other request begins with it.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A socket whose first bytes are read again, in one read with what follows them.
///
/// hyper makes room for 8 KiB before each read, so a first read of a few bytes would double the buffer of every connection.
pub(super) struct Rewound<S> {
    first: Bytes,
    socket: S,
}

/// Reads until it is known whether the client uses HTTP/2. Dropping the future loses what was read.
pub(super) async fn is_http2<S: AsyncRead + Unpin>(
    mut socket: S,
) -> io::Result<(bool, Rewound<S>)> {
    let mut bytes = [0; PREFACE.len()];
    let mut first = ReadBuf::new(&mut bytes);
    while first.remaining() > 0 && PREFACE.starts_with(first.filled()) {
        let before = first.remaining();
        poll_fn(|cx| Pin::new(&mut socket).poll_read(cx, &mut first)).await?;
        if first.remaining() == before {
            break;
        }
    }
    let first = Bytes::copy_from_slice(first.filled());
    Ok((first == PREFACE, Rewound { first, socket }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.first.is_empty() {
            return Pin::new(&mut this.socket).poll_read(cx, buf);
        }
        let length = this.first.len().min(buf.remaining());
        buf.put_slice(&this.first.split_to(length));
        if buf.remaining() > 0 {
            // A socket that has failed fails again.
            let _more = Pin::new(&mut this.socket).poll_read(cx, buf);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// The version, and what is read afterwards: first in one read, and then to the end.
    async fn detect(writes: &[&[u8]]) -> (bool, usize, Vec<u8>) {
        let (near, mut far) = duplex(64 * 1024);
        let writes: Vec<Vec<u8>> = writes.iter().map(|write| write.to_vec()).collect();
        let writing = tokio::spawn(async move {
            for write in writes {
                far.write_all(&write).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let (version, mut rewound) = is_http2(near).await.unwrap();
        writing.await.unwrap();
        let mut first = vec![0; 8192];
        let length = rewound.read(&mut first).await.unwrap();
        first.truncate(length);
        rewound.read_to_end(&mut first).await.unwrap();
        (version, length, first)
    }

    #[tokio::test]
    async fn a_preface_is_http2_however_it_is_cut_and_nothing_of_it_is_lost() {
        let all = [PREFACE, b"frames"].concat();
        for cut in 0..all.len() {
            let (head, tail) = all.split_at(cut);
            let read = detect(&[head, tail]).await;
            assert_eq!(read, (true, all.len(), all.clone()), "cut at {cut}");
        }
    }

    #[tokio::test]
    async fn anything_else_is_http1_and_the_head_is_read_at_once() {
        for head in [
            &b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n\r\n"[..],
            b"PRI * HTTP/1.0\r\n\r\n",
            b"PR",
            b"",
        ] {
            let read = detect(&[head]).await;
            assert_eq!(read, (false, head.len(), head.to_vec()));
        }
        let bytes: Vec<&[u8]> = b"POST / HTTP/1.1\r\n\r\n".chunks(1).collect();
        let (is_http2, _, read) = detect(&bytes).await;
        assert_eq!((is_http2, read), (false, bytes.concat()));
    }

    #[tokio::test]
    async fn a_small_buffer_gets_the_first_bytes_in_parts() {
        let (near, mut far) = duplex(64);
        far.write_all(b"GET / HTTP/1.1").await.unwrap();
        drop(far);
        let (_, mut rewound) = is_http2(near).await.unwrap();
        let mut read = Vec::new();
        let mut part = [0; 2];
        while let Ok(length @ 1..) = rewound.read(&mut part).await {
            read.extend_from_slice(&part[..length]);
        }
        assert_eq!(read, b"GET / HTTP/1.1");
    }
}
