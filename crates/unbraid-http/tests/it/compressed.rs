//! Compressed bodies: whole, and while they are written.

use std::io::Write;

use hyper::header::{CONTENT_ENCODING, HeaderValue};
use tokio::io::AsyncWriteExt;
use unbraid_testkit::{
    cut,
    script::{Script, Step, bytes, content, finish},
};

use crate::{
    answers::{texts, two},
    server::{self, Answer, Server, full, two_choices},
};

/// Pieces in, each of them flushed into a piece of its own; the end of the encoding goes into the last one.
pub(crate) fn compressed(encoding: &str, pieces: &[&str]) -> Vec<Vec<u8>> {
    match encoding {
        "gzip" => {
            let level = flate2::Compression::default();
            let writer = flate2::write::GzEncoder::new(Vec::new(), level);
            flushed(
                writer,
                pieces,
                flate2::write::GzEncoder::get_mut,
                |writer| writer.finish().unwrap(),
            )
        }
        "br" => {
            let writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
            flushed(
                writer,
                pieces,
                brotli::CompressorWriter::get_mut,
                |writer| writer.into_inner(),
            )
        }
        "zstd" => {
            let writer = zstd::Encoder::new(Vec::new(), 3).unwrap();
            flushed(writer, pieces, zstd::Encoder::get_mut, |writer| {
                writer.finish().unwrap()
            })
        }
        other => panic!("{other}"),
    }
}

fn flushed<W: Write>(
    mut writer: W,
    pieces: &[&str],
    inner: impl Fn(&mut W) -> &mut Vec<u8>,
    finish: impl FnOnce(W) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    for piece in pieces {
        writer.write_all(piece.as_bytes()).unwrap();
        writer.flush().unwrap();
        written.push(std::mem::take(inner(&mut writer)));
    }
    written.push(finish(writer));
    written
}

pub(crate) fn encoded(mut answer: Answer, encoding: &'static str) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    answer
}

pub(crate) const ENCODINGS: [&str; 3] = ["gzip", "br", "zstd"];

#[tokio::test]
async fn bodies_are_decompressed_however_they_are_cut() {
    for encoding in ENCODINGS {
        let body = compressed(encoding, &[&two_choices()]).concat();
        let server = Server::start(move |request| {
            let answer = match request {
                0 => full(200, "text/event-stream", body.clone()),
                _ => server::stream(Script::of(cut::bytewise(&body))),
            };
            encoded(answer, encoding)
        })
        .await;
        let client = server.client();
        for _ in 0..2 {
            let completions = client.send(&two()).await.unwrap();
            assert_eq!(texts(&completions).await, ["one", "two"], "{encoding}");
            completions.closed().await.unwrap();
        }
        let accepted = server.requests()[0].headers()["accept-encoding"].clone();
        assert!(
            accepted.to_str().unwrap().contains(encoding),
            "{accepted:?}"
        );
    }
}

#[tokio::test]
async fn what_was_flushed_is_there_before_the_rest() {
    for encoding in ENCODINGS {
        let written = compressed(encoding, &[&content(0, "a")]);
        let server = Server::start(move |_| {
            let script = Script::new([bytes(&written[0]), Step::Stall]);
            encoded(server::stream(script), encoding)
        })
        .await;
        let completions = server.client().send(&two()).await.unwrap();
        let mut content = completions.first().await.unwrap().content();
        assert_eq!(&*content.next().await.unwrap().unwrap(), "a", "{encoding}");
    }
}

#[tokio::test]
async fn a_cut_body_is_no_end() {
    for encoding in ENCODINGS {
        let written = compressed(encoding, &[&content(0, "a"), &finish(0, "stop")]);
        let server = Server::start(move |_| {
            // The connection ends in good order, the encoding does not.
            encoded(server::stream(Script::of([&written[0]])), encoding)
        })
        .await;
        let completions = server.client().send(&two()).await.unwrap();
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
async fn every_delta_that_came_is_read_before_a_connection_is_lost() {
    for encoding in ENCODINGS {
        let [written, _] = compressed(encoding, &[&content(0, "a")])
            .try_into()
            .unwrap();
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: 10000\r\n\r\n"
        )
        .into_bytes();
        answer.extend(written);
        let server = Server::raw(move |mut socket| {
            let answer = answer.clone();
            async move {
                server::read_request(&mut socket).await;
                socket.write_all(&answer).await.unwrap();
            }
        })
        .await;
        let completions = server.client().send(&two()).await.unwrap();
        let choice = completions.first().await.unwrap();
        let cut = choice.finished().await.unwrap_err();
        assert_eq!(cut.partial().message.content, "a", "{encoding}");
        assert_eq!(cut.end().as_str(), "transport", "{encoding}");
        let lost = format!("connection lost after {} bytes", content(0, "a").len());
        assert_eq!(completions.closed().await.unwrap_err().to_string(), lost);
    }
}

#[tokio::test]
async fn every_delta_that_came_is_read_before_a_stream_of_http2_is_reset() {
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
        let completions = client.build().unwrap().send(&two()).await.unwrap();
        let choice = completions.first().await.unwrap();
        let cut = choice.finished().await.unwrap_err();
        assert_eq!(cut.partial().message.content, "a", "{encoding}");
        assert_eq!(cut.end().as_str(), "transport", "{encoding}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_compressed_as_it_says_is_an_error() {
    for encoding in ENCODINGS {
        let server = Server::start(move |_| {
            encoded(full(200, "text/event-stream", two_choices()), encoding)
        })
        .await;
        let completions = server.client().send(&two()).await.unwrap();
        let closed = completions.closed().await.unwrap_err();
        assert_eq!(closed.as_str(), "transport", "{encoding}: {closed:?}");
    }
}
