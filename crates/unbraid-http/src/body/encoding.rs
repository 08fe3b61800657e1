//! Bodies that the server compressed.
//!
//! They are decompressed here and not by reqwest. There, an error of the connection hides what was decompressed just before
//! it in the same read, and with it the last deltas of an answer.

mod feed;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZstdDecoder};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{
    Response,
    header::{CONTENT_ENCODING, HeaderMap},
};
use unbraid::BoxError;

use self::feed::{Decoding, Feed};

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
        match self {
            Self::Gzip => Decoding::new(bytes, gzip, GzipDecoder::get_mut).boxed(),
            Self::Brotli => Decoding::new(bytes, brotli, BrotliDecoder::get_mut).boxed(),
            Self::Zstd => Decoding::new(bytes, zstd, ZstdDecoder::get_mut).boxed(),
        }
    }
}

fn gzip() -> GzipDecoder<Feed> {
    let mut decoder = GzipDecoder::new(Feed::default());
    decoder.multiple_members(true);
    decoder
}

fn brotli() -> BrotliDecoder<Feed> {
    BrotliDecoder::new(Feed::default())
}

fn zstd() -> ZstdDecoder<Feed> {
    let mut decoder = ZstdDecoder::new(Feed::default());
    decoder.multiple_members(true);
    decoder
}
