//! The encoding `deflate`: a stream of zlib (RFC 9110, 8.4.1.2). Some servers send the compressed data without zlib's header and
//! checksum.

use async_compression::tokio::bufread::{DeflateDecoder, ZlibDecoder};
use bytes::Bytes;
use futures::{StreamExt, stream};

use super::{
    ByteStream,
    decompress::{Decompressed, Input},
};

/// Decompresses a body of either form, which its first byte shows.
pub(super) fn decompress(bytes: ByteStream) -> ByteStream {
    let decompressed = async move {
        let is_empty = |read: &Result<Bytes, _>| matches!(read, Ok(bytes) if bytes.is_empty());
        let mut bytes = bytes.skip_while(move |read| std::future::ready(is_empty(read)));
        let first = bytes.next().await;
        let is_zlib = matches!(&first, Some(Ok(bytes)) if begins_zlib(bytes));
        let bytes = stream::iter(first).chain(bytes).boxed();
        if is_zlib {
            let new = || ZlibDecoder::new(Input::default());
            Decompressed::new(bytes, new, ZlibDecoder::get_mut).boxed()
        } else {
            let new = || DeflateDecoder::new(Input::default());
            Decompressed::new(bytes, new, DeflateDecoder::get_mut).boxed()
        }
    };
    stream::once(decompressed).flatten().boxed()
}

/// Whether these bytes begin with the header of zlib: the method 8, and a window of at most 32 KiB (RFC 1950, 2.2). Without the
/// header they would begin a block that is not compressed, with padding that is not zero, which no compressor writes.
fn begins_zlib(bytes: &[u8]) -> bool {
    bytes
        .first()
        .is_some_and(|first| first & 0x0f == 8 && first >> 4 <= 7)
}
