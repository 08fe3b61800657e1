use std::{
    io::Write,
    pin::pin,
    task::{Context, Poll, Waker},
};

use futures::{Stream, stream};
use reqwest::header::{HeaderName, HeaderValue};

use super::*;

fn headers(values: &[&'static str]) -> HeaderMap {
    let header = |value: &&'static str| -> (HeaderName, HeaderValue) {
        (CONTENT_ENCODING, HeaderValue::from_static(value))
    };
    values.iter().map(header).collect()
}

#[test]
fn encodings_are_read_from_all_headers_in_their_order() {
    use Encoding::{Brotli, Deflate, Gzip, Zstd};

    for (values, expected) in [
        (&[][..], &[][..]),
        (&["identity", "", "utf-8"], &[]),
        (&["br, gzip"], &[Brotli, Gzip]),
        (&["gzip", "br"], &[Gzip, Brotli]),
        (&["deflate,, Zstd ,identity"], &[Deflate, Zstd]),
        (&["gzip", "gzip", "gzip", "gzip"], &[Gzip]),
        (&["gzip, identity", "X-Gzip"], &[Gzip]),
        (&["gzip, br, gzip"], &[Gzip, Brotli, Gzip]),
        (&["br, br, gzip, zstd, zstd"], &[Brotli, Gzip, Zstd]),
    ] {
        let headers = headers(values);
        let found = Encoding::all_of(&headers).unwrap();
        assert_eq!(found, expected, "{values:?}");
        assert_eq!(is_encoded(&headers), !expected.is_empty(), "{values:?}");
    }
    for values in [
        &["compress"][..],
        &["gzip", "compress"],
        &["dcb, gzip"],
        &["gzip, br, gzip, br"],
    ] {
        let headers = headers(values);
        Encoding::all_of(&headers).unwrap_err();
        assert!(is_encoded(&headers), "{values:?}");
    }
}

#[test]
fn a_header_that_is_not_ascii_has_encodings() {
    let value = HeaderValue::from_bytes(b"\xe9, gzip").unwrap();
    let headers = HeaderMap::from_iter([(CONTENT_ENCODING, value)]);
    assert_eq!(Encoding::all_of(&headers), Ok(vec![Encoding::Gzip]));
}

/// A body of two encodings of which the inner one stands for no byte.
#[test]
fn a_body_that_expands_between_two_encodings_lets_other_tasks_have_their_turn() {
    const MEMBERS: usize = 20_000;
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    member.flush().unwrap();
    let members = member.finish().unwrap().repeat(MEMBERS);
    let body = zstd::encode_all(&members[..], 3).unwrap();
    assert!(body.len() < 10_000, "{}", body.len());

    let bytes = stream::iter([Ok(body.into())]).boxed();
    let mut body = pin!(decompress(bytes, vec![Encoding::Gzip, Encoding::Zstd]));
    let mut cx = Context::from_waker(Waker::noop());
    let mut turns = 0;
    while body.as_mut().poll_next(&mut cx).is_pending() {
        turns += 1;
    }
    assert!(turns >= members.len() / (128 * 1024), "{turns}");
    assert!(matches!(
        body.as_mut().poll_next(&mut cx),
        Poll::Ready(None)
    ));
}
