//! Decompresses bodies.
//!
//! Bodies are decompressed here and not by reqwest. There, an error of the connection hides the text that was decompressed
//! just before it in the same read, and with it the last deltas of a response.

#[cfg(any(feature = "gzip", feature = "brotli", feature = "zstd"))]
mod decompress;
#[cfg(feature = "gzip")]
mod deflate;

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use reqwest::{
    Response,
    header::{CONTENT_ENCODING, HeaderMap},
};
use unbraid::BoxError;

/// The bytes of a body as they arrive.
pub(crate) type ByteStream = BoxStream<'static, Result<Bytes, BoxError>>;

/// The encodings that a server may use, for the header `accept-encoding`. `deflate` is read, but not requested: servers do not
/// agree on whether it includes the header of zlib.
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

/// The encodings of the IANA registry, except `identity`.
const REGISTERED_ENCODINGS: [&str; 12] = [
    "aes128gcm",
    "br",
    "compress",
    "dcb",
    "dcz",
    "deflate",
    "exi",
    "gzip",
    "pack200-gzip",
    "x-compress",
    "x-gzip",
    "zstd",
];

/// How many encodings of one body are decompressed. Servers use one; a proxy may add one.
const MAX_ENCODINGS: usize = 3;

/// An encoding that this build can decompress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    #[cfg(feature = "gzip")]
    Gzip,
    #[cfg(feature = "gzip")]
    Deflate,
    #[cfg(feature = "brotli")]
    Brotli,
    #[cfg(feature = "zstd")]
    Zstd,
}

/// The body has an encoding that this build cannot decompress, or too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the content-encoding of the response is not supported")]
pub(crate) struct UnknownEncoding;

/// Returns the body of a response, decompressed. A client that has decompressed the body itself removes the header
/// `content-encoding`, so such a body is passed through. The body of an unknown encoding is one error.
pub(crate) fn byte_stream(response: Response) -> ByteStream {
    let encodings = match Encoding::all_of(response.headers()) {
        Ok(encodings) => encodings,
        Err(error) => return stream::iter([Err(error.into())]).boxed(),
    };
    // The address may contain a key, and errors are printed.
    let bytes = response
        .bytes_stream()
        .map_err(|error| BoxError::from(error.without_url()));
    decompress(bytes.boxed(), encodings)
}

/// Decompresses a body of several encodings, of which the last one is the outermost.
fn decompress(bytes: ByteStream, encodings: Vec<Encoding>) -> ByteStream {
    let mut inward = encodings.into_iter().rev();
    let Some(outermost) = inward.next() else {
        return bytes;
    };
    inward.fold(outermost.decompress(bytes), |bytes, encoding| {
        encoding.decompress(yielding(bytes))
    })
}

/// Lets other tasks have their turn after each read from a decoder. A few bytes may stand for very many, of which the next decoder
/// produces none, so it would read on without a limit.
fn yielding(mut bytes: ByteStream) -> ByteStream {
    let mut yields = false;
    let poll = move |cx: &mut Context<'_>| {
        if std::mem::take(&mut yields) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let read = bytes.poll_next_unpin(cx);
        yields = read.is_ready();
        read
    };
    stream::poll_fn(poll).boxed()
}

/// Whether a body with these headers can be read.
pub(crate) fn is_supported(headers: &HeaderMap) -> bool {
    Encoding::all_of(headers).is_ok()
}

/// Whether a body with these headers has an encoding, which this build may be unable to decompress.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    registered(headers).next().is_some()
}

/// The registered encodings of a body, in the order in which they were applied. A name that is not registered says nothing:
/// servers and clients declare a character set or a format there, and send plain text.
fn registered(headers: &HeaderMap) -> impl Iterator<Item = &'static str> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    names.filter_map(|name| {
        let name = name.trim_ascii();
        let mut registered = REGISTERED_ENCODINGS.iter().copied();
        registered.find(|registered| name.eq_ignore_ascii_case(registered.as_bytes()))
    })
}

impl Encoding {
    /// The encodings of a body, in the order in which they were applied (RFC 9110, 8.4). Equal neighbours count once: a proxy may
    /// repeat the header of a server.
    fn all_of(headers: &HeaderMap) -> Result<Vec<Self>, UnknownEncoding> {
        let mut found = Vec::new();
        for name in registered(headers) {
            let encoding = Self::named(name).ok_or(UnknownEncoding)?;
            if found.last() == Some(&encoding) {
                continue;
            }
            if found.len() == MAX_ENCODINGS {
                return Err(UnknownEncoding);
            }
            found.push(encoding);
        }
        Ok(found)
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            #[cfg(feature = "gzip")]
            "gzip" | "x-gzip" => Some(Self::Gzip),
            #[cfg(feature = "gzip")]
            "deflate" => Some(Self::Deflate),
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
            #[cfg(feature = "gzip")]
            Self::Deflate => deflate::decompress(bytes),
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

#[cfg(test)]
#[cfg(all(feature = "gzip", feature = "brotli", feature = "zstd"))]
mod tests;
