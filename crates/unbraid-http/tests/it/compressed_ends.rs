//! Compressed bodies whose last data arrives in one write with the end or an error: no data is lost.

use tokio::io::AsyncWriteExt;
use unbraid_testkit::script::{Script, Step, bytes, content};

use crate::{
    compressed::{ENCODINGS, compressed, encoded, header_of},
    responses::request,
    server::{self, Server, full},
};

/// No block of any encoding begins with these bytes.
const WRONG: [u8; 40] = [0x0e; 40];

/// A text, and its flushed encoding without an end.
fn unfinished(encoding: &str) -> (String, Vec<u8>) {
    let text = "some words of an answer, ".repeat(100);
    let written = compressed(encoding, &[&content(0, &text)]);
    (text, written[0].clone())
}

/// The response of this server has the text, and ends with one of these.
async fn check(server: &Server, http2: bool, text: &str, ends: &[&str], case: &str) {
    let client = server.builder().http2_prior_knowledge(http2);
    let completions = client.build().unwrap().send(&request()).await.unwrap();
    let choice = completions.first().await.unwrap();
    let cut = choice.finished().await.unwrap_err();
    assert_eq!(cut.partial().message.content, text, "{case}");
    assert!(ends.contains(&cut.end().as_str()), "{case}: {cut}");
}

/// A server that writes the head, this body and its end at once.
async fn one_write(encoding: &str, body: &[u8], end: &str) -> Server {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-encoding: ";
    let begin = format!("{head}{}\r\n\r\n{:x}\r\n", header_of(encoding), body.len());
    let reply = [begin.as_bytes(), body, b"\r\n", end.as_bytes()].concat();
    Server::raw(move |mut socket| {
        let reply = reply.clone();
        async move {
            server::read_request(&mut socket).await;
            socket.write_all(&reply).await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn data_that_arrives_with_the_end_or_an_error_is_read() {
    for encoding in ENCODINGS {
        let (text, good) = unfinished(encoding);
        let wrong = [&good[..], &WRONG].concat();
        for (body, end) in [
            (&good, "0\r\n\r\n"),     // the encoding has no end
            (&good, "no length\r\n"), // the connection breaks the protocol
            (&good, ""),              // the connection is closed
            (&wrong, "0\r\n\r\n"),    // the encoding is wrong
            (&wrong, "no length\r\n"),
        ] {
            let server = one_write(encoding, body, end).await;
            let case = format!("{encoding}, {end:?}");
            check(&server, false, &text, &["transport"], &case).await;
        }
    }
}

#[tokio::test]
async fn a_complete_body_that_arrives_with_its_end_is_read() {
    for encoding in ENCODINGS {
        let (text, _) = unfinished(encoding);
        let body = compressed(encoding, &[&content(0, &text)]).concat();
        let server = one_write(encoding, &body, "0\r\n\r\n").await;
        check(&server, false, &text, &["interrupted"], encoding).await;
        let server =
            Server::start(move |_| encoded(full(200, "text/event-stream", body.clone()), encoding))
                .await;
        check(&server, true, &text, &["interrupted"], encoding).await;
    }
}

#[tokio::test]
async fn http2_data_that_arrives_with_the_end_or_an_error_is_read() {
    for encoding in ENCODINGS {
        let (text, good) = unfinished(encoding);
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
