//! Bodies that the server compressed.
//!
//! They are decompressed here and not by reqwest. There, an error of the connection hides what was decompressed just before
//! it in the same read, and with it the last deltas of an answer.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZstdDecoder};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{
    Response,
    header::{CONTENT_ENCODING, HeaderMap},
};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};
use unbraid::BoxError;

/// The bytes of a body as they come.
pub(crate) type Incoming = BoxStream<'static, Result<Bytes, BoxError>>;

/// What a server may use, for the header `accept-encoding`.
pub(crate) const ACCEPTED: &str = "gzip, br, zstd";

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Gzip,
    Brotli,
    Zstd,
}

/// The body of an answer, decompressed. A body that a client of the caller's own has decompressed is not called compressed.
pub(crate) fn incoming(response: Response) -> Incoming {
    let encoding = Encoding::of(response.headers());
    // The address may hold a key, and errors are printed.
    let bytes = response
        .bytes_stream()
        .map_err(|error| BoxError::from(error.without_url()));
    match encoding {
        Some(encoding) => encoding.decode(bytes.boxed()),
        None => bytes.boxed(),
    }
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let name = headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim();
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "br" => Some(Self::Brotli),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    fn decode(self, bytes: Incoming) -> Incoming {
        let bytes = LateEnd { bytes, end: None };
        let compressed = StreamReader::new(bytes.map_err(io::Error::other));
        match self {
            Self::Gzip => {
                let mut decoder = GzipDecoder::new(compressed);
                decoder.multiple_members(true);
                read(decoder)
            }
            Self::Brotli => read(BrotliDecoder::new(compressed)),
            Self::Zstd => {
                let mut decoder = ZstdDecoder::new(compressed);
                decoder.multiple_members(true);
                read(decoder)
            }
        }
    }
}

fn read(decoder: impl AsyncRead + Send + 'static) -> Incoming {
    ReaderStream::new(decoder).map_err(unwrapped).boxed()
}

/// The connection's own error, or that of the decoder.
fn unwrapped(error: io::Error) -> BoxError {
    match error.downcast::<reqwest::Error>() {
        Ok(of_connection) => of_connection.into(),
        Err(of_decoder) => of_decoder.into(),
    }
}

/// Is pending once before its end or its error.
///
/// A decoder that has output and then gets nothing gives its output. One that gets an error gives the error alone, and so does
/// one that gets the end in the middle of what was compressed.
struct LateEnd {
    bytes: Incoming,
    end: Option<Option<BoxError>>,
}

impl Stream for LateEnd {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(end) = self.end.take() {
            return Poll::Ready(end.map(Err));
        }
        let end = match ready!(self.bytes.poll_next_unpin(cx)) {
            Some(Ok(bytes)) => return Poll::Ready(Some(Ok(bytes))),
            Some(Err(error)) => Some(error),
            None => None,
        };
        self.end = Some(end);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
