//! Compressed bodies whose last data and whose end, or error, come in one write: nothing that came is lost.

use tokio::io::AsyncWriteExt;
use unbraid_testkit::script::{Script, Step, bytes, content};

use crate::{
    answers::two,
    compressed::{ENCODINGS, compressed, encoded},
    server::{self, Server, full},
};

/// No block begins like this in any of the encodings.
const WRONG: [u8; 40] = [0x0e; 40];

/// Some text, and what is flushed of it, without the end of the encoding.
fn begun(encoding: &str) -> (String, Vec<u8>) {
    let text = "some words of an answer, ".repeat(100);
    let written = compressed(encoding, &[&content(0, &text)]);
    (text, written[0].clone())
}

/// The answer of this server has the text, and ends in one of these ways.
async fn check(server: &Server, http2: bool, text: &str, ends: &[&str], case: &str) {
    let client = server.builder().http2_prior_knowledge(http2);
    let completions = client.build().unwrap().send(&two()).await.unwrap();
    let choice = completions.first().await.unwrap();
    let cut = choice.finished().await.unwrap_err();
    assert_eq!(cut.partial().message.content, text, "{case}");
    assert!(ends.contains(&cut.end().as_str()), "{case}: {cut}");
}

/// A server that writes the head, this body and what ends it at once.
async fn at_once(encoding: &str, body: &[u8], end: &str) -> Server {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-encoding: ";
    let begin = format!("{head}{encoding}\r\n\r\n{:x}\r\n", body.len());
    let answer = [begin.as_bytes(), body, b"\r\n", end.as_bytes()].concat();
    Server::raw(move |mut socket| {
        let answer = answer.clone();
        async move {
            server::read_request(&mut socket).await;
            socket.write_all(&answer).await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn data_is_read_that_comes_with_the_end_of_the_body_or_an_error() {
    for encoding in ENCODINGS {
        let (text, good) = begun(encoding);
        let wrong = [&good[..], &WRONG].concat();
        for (body, end) in [
            (&good, "0\r\n\r\n"),     // the encoding has no end
            (&good, "no length\r\n"), // the connection breaks the protocol
            (&good, ""),              // the connection is closed
            (&wrong, "0\r\n\r\n"),    // the encoding is wrong
            (&wrong, "no length\r\n"),
        ] {
            let server = at_once(encoding, body, end).await;
            let case = format!("{encoding}, {end:?}");
            check(&server, false, &text, &["transport"], &case).await;
        }
    }
}

#[tokio::test]
async fn a_whole_body_is_read_that_comes_with_its_end() {
    for encoding in ENCODINGS {
        let (text, _) = begun(encoding);
        let body = compressed(encoding, &[&content(0, &text)]).concat();
        let server = at_once(encoding, &body, "0\r\n\r\n").await;
        check(&server, false, &text, &["interrupted"], encoding).await;
        let server =
            Server::start(move |_| encoded(full(200, "text/event-stream", body.clone()), encoding))
                .await;
        check(&server, true, &text, &["interrupted"], encoding).await;
    }
}

#[tokio::test]
async fn data_of_http2_is_read_that_comes_with_the_end_of_the_stream_or_an_error() {
    for encoding in ENCODINGS {
        let (text, good) = begun(encoding);
        let wrong = [&good[..], &WRONG].concat();
        for body in [good, wrong.clone()] {
            let server = Server::start(move |_| {
                encoded(full(200, "text/event-stream", body.clone()), encoding)
            })
            .await;
            check(&server, true, &text, &["transport"], encoding).await;
        }
        let server = Server::start(move |_| {
            let script = Script::new([bytes(&wrong), Step::Yield, Step::Fail]);
            encoded(server::stream(script), encoding)
        })
        .await;
        check(&server, true, &text, &["transport"], encoding).await;
    }
}
