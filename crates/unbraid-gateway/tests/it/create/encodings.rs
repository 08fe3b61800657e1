//! Bodies that are compressed: answers of the upstream, and requests.

use std::io::Write;

use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};

use crate::support::{Json, Step, Upstream, chunk, request, send, start, stream_of};

fn answer(status: u16, content_type: &str, encoding: &str, body: Vec<u8>) -> Vec<Step> {
    let headers = vec![
        ("content-type", content_type.into()),
        ("content-encoding", encoding.into()),
    ];
    vec![Step::Head(status, headers), Step::Bytes(body), Step::End]
}

#[tokio::test]
async fn a_compressed_stream_is_decompressed() {
    let text = format!("data: {}\n\ndata: [DONE]\n\n", chunk(0, "Hi"));
    let level = Compression::fast();
    let mut gzip = GzEncoder::new(Vec::new(), level);
    let mut zlib = ZlibEncoder::new(Vec::new(), level);
    let mut raw = DeflateEncoder::new(Vec::new(), level);
    for writer in [&mut gzip as &mut dyn Write, &mut zlib, &mut raw] {
        writer.write_all(text.as_bytes()).unwrap();
    }
    let gzip = gzip.finish().unwrap();
    for (encoding, body) in [
        ("gzip", gzip.clone()),
        ("gzip, gzip", gzip), // a proxy repeats the header
        ("deflate", zlib.finish().unwrap()),
        ("deflate", raw.finish().unwrap()),
    ] {
        let upstream = Upstream::steps(answer(200, "text/event-stream", encoding, body)).await;
        let gateway = start(&upstream).await;
        let (id, mut post) = gateway.create(1).await;
        assert_eq!(post.header("content-encoding"), None);
        assert_eq!(post.rest().await[0].data, chunk(0, "Hi"), "{encoding}");
        assert_eq!(gateway.ended(&id).await["end"], "done_without_finish");
    }
}

#[tokio::test]
async fn a_stream_whose_encoding_is_not_known_is_502() {
    for content_type in ["text/event-stream", "application/json"] {
        let steps = answer(200, content_type, "compress", b"\x1f\x9d\x90".to_vec());
        let upstream = Upstream::steps(steps).await;
        let gateway = start(&upstream).await;
        for fan_out in ["native", "always"] {
            let post = gateway.post(request(2)).header("x-stream-fan-out", fan_out);
            let refused = send(post).await;
            assert_eq!(refused.status(), 502, "{content_type}, {fan_out}");
            assert_eq!(refused.value().await["error"]["code"], "upstream_invalid");
        }
    }
}

#[tokio::test]
async fn a_refusal_whose_encoding_is_not_known_is_passed_through_with_its_encoding() {
    let body = b"\x1f\x9d\x90".to_vec();
    let steps = answer(400, "application/json", "compress", body.clone());
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    for n in [1, 2] {
        let refused = send(gateway.post(request(n))).await;
        assert_eq!(refused.status(), 400);
        assert_eq!(refused.headers()["content-encoding"], "compress");
        assert_eq!(refused.bytes().await.unwrap(), body);
    }
}

#[tokio::test]
async fn a_compressed_request_is_415_and_names_the_header() {
    let upstream = Upstream::steps(vec![]).await;
    let gateway = start(&upstream).await;
    for (encoding, body) in [
        ("gzip", b"\x1f\x8b\x08".to_vec()),
        ("identity, br", request(1).into_bytes()),
        ("UTF-8,X-Gzip", request(1).into_bytes()),
    ] {
        let post = gateway.post(body).header("content-encoding", encoding);
        let refused = send(post).await;
        assert_eq!(refused.status(), 415, "{encoding}");
        assert_eq!(refused.headers()["accept-encoding"], "identity");
        let error = &refused.value().await["error"];
        assert_eq!(error["code"], "unsupported_media_type");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("Content-Encoding"), "{message}");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[tokio::test]
async fn a_request_may_say_that_it_is_not_compressed() {
    let steps = stream_of(&[&*chunk(0, "Hi"), "[DONE]"]);
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    // Some clients declare the character set there.
    for encoding in ["identity", "utf-8", "identity, UTF-8", ""] {
        let post = gateway
            .post(request(1))
            .header("content-encoding", encoding);
        assert_eq!(send(post).await.status(), 200, "{encoding}");
    }
}
