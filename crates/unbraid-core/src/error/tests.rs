use super::{ChoiceError, StreamError};
use crate::{
    Config, Demux,
    frame::{FrameLimits, Framer},
};

const SECRET: &str = "SECRET";

/// No error of this stream shows the secret in it, and there is one.
#[track_caller]
fn check(options: Config, stream: &str) {
    assert!(stream.contains(SECRET));
    let mut demux = Demux::new(options);
    demux.feed(stream.as_bytes());
    demux.finish();
    let stream_error = demux.closed().and_then(|closed| closed.as_ref().err());
    let outcomes = demux.choices().filter_map(|choice| choice.result()?.err());
    let shown: Vec<String> = outcomes
        .map(|error: ChoiceError| format!("{error} {error:?}"))
        .chain(stream_error.map(|error: &StreamError| format!("{error} {error:?}")))
        .chain(
            demux
                .warnings()
                .iter()
                .map(|warning| format!("{warning} {warning:?}")),
        )
        .collect();
    assert!(!shown.is_empty());
    assert!(!shown.concat().contains(SECRET), "{shown:?}");
}

#[test]
fn no_error_and_no_warning_shows_the_payload() {
    let strict = || Config {
        strict: true,
        ..Config::default()
    };
    check(
        Config::default(),
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"SECRET\"}}]}\n\n",
    );
    check(
        Config::default(),
        "data: {\"error\":{\"message\":\"SECRET\",\"type\":\"SECRET SECRET\"}}\n\n",
    );
    check(Config::default(), "event: error\ndata: SECRET\n\n");
    check(Config::default(), "<html>SECRET</html>");
    check(Config::default(), "data: {SECRET\n\ndata: [DONE]\n\n");
    check(Config::default(), "{SECRET");
    check(
        Config::default(),
        "data: {\"choices\":[{\"index\":\"SECRET\"}]}\n\n",
    );
    check(strict(), "data: {SECRET\n\n");
    check(strict(), "SECRET: 1\n\n");
}

#[test]
fn the_debug_text_of_a_frame_has_lengths_only() {
    let mut framer = Framer::new(
        FrameLimits {
            line: 100,
            event: 100,
        },
        false,
    );
    let mut input = &b"event: SECRET\ndata: SECRET\n\n"[..];
    let frame = framer.next(&mut input).map(|frame| format!("{frame:?}"));
    let expected = "Ok(Frame { kind: Event, event_bytes: Some(6), data_bytes: 6, offset: 0 })";
    assert_eq!(frame.as_deref(), Some(expected));
    assert!(!format!("{framer:?}").contains(SECRET));
}
