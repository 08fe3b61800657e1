//! Compressed bodies, complete and in parts.

use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use hyper::header::{CONTENT_ENCODING, HeaderValue};
use tokio::io::AsyncWriteExt;
use unbraid::StreamError;
use unbraid_testkit::{
    cut,
    script::{Script, Step, bytes, content, finish},
};

use crate::{
    responses::{request, texts},
    server::{self, Reply, Server, full, two_choices},
};

/// Compresses and flushes each part on its own. The last item is the end of the encoding.
pub(crate) fn compressed(encoding: &str, parts: &[impl AsRef<[u8]>]) -> Vec<Vec<u8>> {
    if let Some((first, others)) = encoding.split_once(", ") {
        let mut written = compressed(others, &compressed(first, parts));
        // The end of the first encoding was a part for the others.
        let end = written.pop().unwrap();
        written.last_mut().unwrap().extend(end);
        return written;
    }
    // The encoders have the same methods, and no trait with them.
    macro_rules! flate {
        ($encoder:ident) => {{
            let writer = $encoder::new(Vec::new(), flate2::Compression::default());
            flushed(writer, parts, $encoder::get_mut, |writer| {
                writer.finish().unwrap()
            })
        }};
    }
    match encoding {
        "gzip" => flate!(GzEncoder),
        "deflate" => flate!(ZlibEncoder),
        "raw deflate" => flate!(DeflateEncoder),
        "br" => {
            let writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
            flushed(writer, parts, brotli::CompressorWriter::get_mut, |writer| {
                writer.into_inner()
            })
        }
        "zstd" => {
            let writer = zstd::Encoder::new(Vec::new(), 3).unwrap();
            flushed(writer, parts, zstd::Encoder::get_mut, |writer| {
                writer.finish().unwrap()
            })
        }
        other => panic!("{other}"),
    }
}

fn flushed<W: Write>(
    mut writer: W,
    parts: &[impl AsRef<[u8]>],
    inner: impl Fn(&mut W) -> &mut Vec<u8>,
    finish: impl FnOnce(W) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    for part in parts {
        writer.write_all(part.as_ref()).unwrap();
        writer.flush().unwrap();
        written.push(std::mem::take(inner(&mut writer)));
    }
    written.push(finish(writer));
    written
}

pub(crate) fn encoded(mut reply: Reply, encoding: &'static str) -> Reply {
    let headers = reply.headers_mut();
    headers.insert(
        CONTENT_ENCODING,
        HeaderValue::from_static(header_of(encoding)),
    );
    reply
}

/// The encodings, and some of bodies that were compressed more than once. Servers send `deflate` in two forms.
pub(crate) const ENCODINGS: [&str; 8] = [
    "gzip",
    "deflate",
    "raw deflate",
    "br",
    "zstd",
    "gzip, br",
    "br, gzip",
    "zstd, gzip, br",
];

/// The value of `content-encoding`.
pub(crate) fn header_of(encoding: &str) -> &str {
    encoding.strip_prefix("raw ").unwrap_or(encoding)
}

#[tokio::test]
async fn bodies_are_decompressed_at_every_cut() {
    for encoding in ENCODINGS {
        let body = compressed(encoding, &[&two_choices()]).concat();
        let server = Server::start(move |request| {
            let reply = match request {
                0 => full(200, "text/event-stream", body.clone()),
                _ => server::stream(Script::of(cut::bytewise(&body))),
            };
            encoded(reply, encoding)
        })
        .await;
        let client = server.client();
        for _ in 0..2 {
            let completions = client.send(&request()).await.unwrap();
            assert_eq!(texts(&completions).await, ["one", "two"], "{encoding}");
            completions.closed().await.unwrap();
        }
        let accepted = server.requests()[0].headers()["accept-encoding"].clone();
        for name in header_of(encoding).split(", ") {
            assert_eq!(
                accepted.to_str().unwrap().contains(name),
                name != "deflate",
                "{accepted:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_encoding_that_cannot_be_read_is_an_error_that_says_so() {
    for encoding in [
        "compress",
        "Compress",
        "gzip, compress",
        "gzip, br, gzip, br",
    ] {
        let server = Server::start(move |_| {
            encoded(full(200, "text/event-stream", two_choices()), encoding)
        })
        .await;
        let completions = server.client().send(&request()).await.unwrap();
        let closed = completions.closed().await.unwrap_err();
        assert_eq!(closed.as_str(), "transport", "{encoding}: {closed:?}");
        let StreamError::Transport(error) = closed else {
            panic!("{closed:?}");
        };
        let causes = error.causes();
        assert_eq!(
            causes, "the content-encoding of the response is not supported",
            "{encoding}"
        );
    }
}

#[tokio::test]
async fn a_name_that_is_not_registered_is_ignored() {
    for encoding in ["identity", "utf-8", "identity, gzip"] {
        let body = match encoding {
            "identity, gzip" => compressed("gzip", &[&two_choices()]).concat(),
            _ => two_choices().into_bytes(),
        };
        let server =
            Server::start(move |_| encoded(full(200, "text/event-stream", body.clone()), encoding))
                .await;
        let completions = server.client().send(&request()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"], "{encoding}");
    }
}

#[tokio::test]
async fn a_header_that_a_proxy_repeats_counts_once() {
    for repeated in ["gzip", "x-gzip"] {
        let body = compressed("gzip", &[&two_choices()]).concat();
        let server = Server::start(move |_| {
            let mut reply = encoded(full(200, "text/event-stream", body.clone()), "gzip");
            let repeated = HeaderValue::from_static(repeated);
            reply.headers_mut().append(CONTENT_ENCODING, repeated);
            reply
        })
        .await;
        let completions = server.client().send(&request()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"], "{repeated}");
    }
}

#[tokio::test]
async fn flushed_text_is_read_before_the_rest_arrives() {
    for encoding in ENCODINGS {
        let written = compressed(encoding, &[&content(0, "a")]);
        let server = Server::start(move |_| {
            let script = Script::new([bytes(&written[0]), Step::Stall]);
            encoded(server::stream(script), encoding)
        })
        .await;
        let completions = server.client().send(&request()).await.unwrap();
        let mut content = completions.first().await.unwrap().content();
        assert_eq!(&*content.next().await.unwrap().unwrap(), "a", "{encoding}");
    }
}

#[tokio::test]
async fn a_truncated_body_does_not_end_a_choice_regularly() {
    for encoding in ENCODINGS {
        let written = compressed(encoding, &[&content(0, "a"), &finish(0, "stop")]);
        let server = Server::start(move |_| {
            // The connection ends regularly, the encoding does not.
            encoded(server::stream(Script::of([&written[0]])), encoding)
        })
        .await;
        let completions = server.client().send(&request()).await.unwrap();
        let choice = completions.first().await.unwrap();
        let cut = choice.finished().await.unwrap_err();
        assert_eq!(cut.partial().message.content, "a", "{encoding}");
        assert!(
            ["transport", "interrupted"].contains(&cut.end().as_str()),
            "{encoding}: {cut}"
        );
    }
}

#[tokio::test]
async fn every_delta_is_read_before_the_connection_is_lost() {
    for encoding in ENCODINGS {
        let [written, _] = compressed(encoding, &[&content(0, "a")])
            .try_into()
            .unwrap();
        let mut reply = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {}\r\ncontent-length: 10000\r\n\r\n",
            header_of(encoding)
        )
        .into_bytes();
        reply.extend(written);
        let server = Server::raw(move |mut socket| {
            let reply = reply.clone();
            async move {
                server::read_request(&mut socket).await;
                socket.write_all(&reply).await.unwrap();
            }
        })
        .await;
        let completions = server.client().send(&request()).await.unwrap();
        let choice = completions.first().await.unwrap();
        let cut = choice.finished().await.unwrap_err();
        assert_eq!(cut.partial().message.content, "a", "{encoding}");
        assert_eq!(cut.end().as_str(), "transport", "{encoding}");
        let lost = format!("connection lost after {} bytes", content(0, "a").len());
        assert_eq!(completions.closed().await.unwrap_err().to_string(), lost);
    }
}

#[tokio::test]
async fn every_delta_is_read_before_an_http2_stream_is_reset() {
    for encoding in ENCODINGS {
        let [written, _] = compressed(encoding, &[&content(0, "a")])
            .try_into()
            .unwrap();
        let server = Server::start(move |_| {
            let script = Script::new([bytes(&written), Step::Yield, Step::Fail]);
            encoded(server::stream(script), encoding)
        })
        .await;
        let client = server.builder().http2_prior_knowledge(true);
        let completions = client.build().unwrap().send(&request()).await.unwrap();
        let choice = completions.first().await.unwrap();
        let cut = choice.finished().await.unwrap_err();
        assert_eq!(cut.partial().message.content, "a", "{encoding}");
        assert_eq!(cut.end().as_str(), "transport", "{encoding}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_compressed_as_declared_is_an_error() {
    for encoding in ENCODINGS {
        let server = Server::start(move |_| {
            encoded(full(200, "text/event-stream", two_choices()), encoding)
        })
        .await;
        let completions = server.client().send(&request()).await.unwrap();
        let closed = completions.closed().await.unwrap_err();
        assert_eq!(closed.as_str(), "transport", "{encoding}: {closed:?}");
    }
}
