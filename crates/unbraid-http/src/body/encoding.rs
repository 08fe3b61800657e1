//! Decompresses bodies.
//!
//! Bodies are decompressed here and not by reqwest. There, an error of the connection hides the text that was decompressed
//! just before it in the same read, and with it the last deltas of a response.

#[cfg(any(feature = "gzip", feature = "brotli", feature = "zstd"))]
mod decompress;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{
    Response,
    header::{CONTENT_ENCODING, HeaderMap},
};
use unbraid::BoxError;

/// The bytes of a body as they arrive.
pub(crate) type ByteStream = BoxStream<'static, Result<Bytes, BoxError>>;

/// The encodings that a server may use, for the header `accept-encoding`.
pub(crate) const ACCEPTED_ENCODINGS: &str = match (
    cfg!(feature = "gzip"),
    cfg!(feature = "brotli"),
    cfg!(feature = "zstd"),
) {
    (true, true, true) => "gzip, br, zstd",
    (true, true, false) => "gzip, br",
    (true, false, true) => "gzip, zstd",
    (true, false, false) => "gzip",
    (false, true, true) => "br, zstd",
    (false, true, false) => "br",
    (false, false, true) => "zstd",
    (false, false, false) => "identity",
};

/// An encoding that this build can decompress.
#[derive(Debug, Clone, Copy)]
enum Encoding {
    #[cfg(feature = "gzip")]
    Gzip,
    #[cfg(feature = "brotli")]
    Brotli,
    #[cfg(feature = "zstd")]
    Zstd,
}

/// Returns the body of a response, decompressed. A client that has decompressed the body itself removes the header
/// `content-encoding`, so such a body is passed through.
pub(crate) fn byte_stream(response: Response) -> ByteStream {
    let encoding = Encoding::of(response.headers());
    // The address may contain a key, and errors are printed.
    let bytes = response
        .bytes_stream()
        .map_err(|error| BoxError::from(error.without_url()));
    match encoding {
        Some(encoding) => encoding.decompress(bytes.boxed()),
        None => bytes.boxed(),
    }
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let name = headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim();
        match name.to_ascii_lowercase().as_str() {
            #[cfg(feature = "gzip")]
            "gzip" | "x-gzip" => Some(Self::Gzip),
            #[cfg(feature = "brotli")]
            "br" => Some(Self::Brotli),
            #[cfg(feature = "zstd")]
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    #[cfg(any(feature = "gzip", feature = "brotli", feature = "zstd"))]
    fn decompress(self, bytes: ByteStream) -> ByteStream {
        use async_compression::tokio::bufread;

        use self::decompress::{Decompressed, Input};

        match self {
            #[cfg(feature = "gzip")]
            Self::Gzip => {
                let new = || {
                    let mut decoder = bufread::GzipDecoder::new(Input::default());
                    decoder.multiple_members(true);
                    decoder
                };
                Decompressed::new(bytes, new, bufread::GzipDecoder::get_mut).boxed()
            }
            #[cfg(feature = "brotli")]
            Self::Brotli => {
                let new = || bufread::BrotliDecoder::new(Input::default());
                Decompressed::new(bytes, new, bufread::BrotliDecoder::get_mut).boxed()
            }
            #[cfg(feature = "zstd")]
            Self::Zstd => {
                let new = || {
                    let mut decoder = bufread::ZstdDecoder::new(Input::default());
                    decoder.multiple_members(true);
                    decoder
                };
                Decompressed::new(bytes, new, bufread::ZstdDecoder::get_mut).boxed()
            }
        }
    }

    /// No encoding is compiled in, so this type has no value.
    #[cfg(not(any(feature = "gzip", feature = "brotli", feature = "zstd")))]
    fn decompress(self, _: ByteStream) -> ByteStream {
        match self {}
    }
}
