use std::{
    error::Error,
    io::{self, ErrorKind},
};

use super::TransportError;
use crate::{BoxError, StreamError};

#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Layer {
    text: &'static str,
    source: BoxError,
}

fn layer(text: &'static str, source: impl Into<BoxError>) -> Layer {
    Layer {
        text,
        source: source.into(),
    }
}

#[track_caller]
fn check(bytes: u64, source: impl Into<BoxError>, expected: &str) {
    assert_eq!(TransportError::new(bytes, source).to_string(), expected);
}

#[test]
fn x14_a_lost_connection_is_recognised_at_any_depth_of_its_cause() {
    let reset = || io::Error::from(ErrorKind::ConnectionReset);
    let lost = "connection lost after 7 bytes";
    check(7, reset(), lost);
    check(7, layer("body", layer("connection", reset())), lost);
    check(
        7,
        layer("body", io::Error::other(layer("http", reset()))),
        lost,
    );
    check(7, layer("body", "a stream was reset"), lost);
    check(0, reset(), "connection lost after 0 bytes");
}

#[test]
fn x14_other_sources_are_not_called_connections() {
    for kind in [
        ErrorKind::IsADirectory,
        ErrorKind::PermissionDenied,
        ErrorKind::ConnectionRefused,
        ErrorKind::InvalidData,
    ] {
        check(0, io::Error::from(kind), "the source failed after 0 bytes");
        check(9, io::Error::from(kind), "the source failed after 9 bytes");
    }
    check(0, "status 401", "the source failed after 0 bytes");
    let no_stream = StreamError::Empty { events: 0 };
    check(6, no_stream, "the source failed after 6 bytes");
}

#[test]
fn x14_causes_contains_the_whole_chain() {
    let reset = io::Error::new(ErrorKind::ConnectionReset, "reset by peer");
    let error = TransportError::new(7, layer("body", layer("connection", reset)));
    assert_eq!(error.causes(), "body: connection: reset by peer");
    let direct = error.source().unwrap();
    assert_eq!(direct.to_string(), "body");
    assert_eq!(direct.source().unwrap().to_string(), "connection");
    let error = StreamError::Transport(std::sync::Arc::new(error));
    let json = serde_json::to_value(error).expect("JSON");
    assert_eq!(json["message"], "connection lost after 7 bytes");
    assert_eq!(json["source"], "body: connection: reset by peer");
}
