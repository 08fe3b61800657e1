//! Bodies that end inside their first event (S22).

use crate::{Config, Demux, StreamError};

/// The end of a body.
fn ended(body: &[u8]) -> Result<(), StreamError> {
    let mut demux = Demux::new(Config::default());
    demux.feed(body);
    demux.finish();
    demux.closed().cloned().unwrap()
}

fn interrupted(event: u64, offset: u64) -> Result<(), StreamError> {
    Err(StreamError::Interrupted {
        event_index: event.into(),
        offset,
    })
}

const CHUNK: &str = r#"{"choices":[{"index":0,"delta":{"content":"He"}}]}"#;

#[test]
fn s22_a_body_that_ends_inside_its_first_event_was_interrupted() {
    for length in 1..CHUNK.len() {
        let cut = &CHUNK[..length];
        let ended = |framed: String| ended(framed.as_bytes());
        assert_eq!(ended(format!("data: {cut}")), interrupted(0, 0), "{cut}");
        let lines = format!(": comment\n\ndata: {cut}");
        assert_eq!(ended(lines), interrupted(0, 11), "{cut}");
        let after_ping = format!("data: ping\n\ndata: {cut}");
        assert_eq!(ended(after_ping), interrupted(1, 12), "{cut}");
        let named = format!("event: message_start\ndata: {cut}");
        assert_eq!(ended(named), interrupted(0, 0), "{cut}");
    }
    let json = [
        "{\"model\":\"m\",\"message\":{\"content\":\"He",
        " [{\"candidates\":[{\"content\":{",
    ];
    assert_eq!(ended(json[0].as_bytes()), interrupted(0, 0));
    assert_eq!(ended(json[1].as_bytes()), interrupted(0, 2));
}

#[test]
fn s22_without_json_it_is_not_a_stream_and_a_complete_event_is_one() {
    for other in [
        "Bad gateway",
        "data: Bad gateway",
        "data: {bad}",
        "{bad: 1",
        "data: x\n\ndata: {\"choi",
    ] {
        let ended = ended(other.as_bytes());
        assert!(
            matches!(ended, Err(StreamError::NotAStream { .. })),
            "{other}: {ended:?}"
        );
    }
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\ndata: {\"choi";
    for body in [format!("data: {CHUNK}"), usage.to_owned()] {
        assert_eq!(ended(body.as_bytes()), Ok(()), "{body}");
    }
}

#[test]
fn s22_an_error_of_the_source_says_more_than_a_cut() {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"choi");
    demux.abort(StreamError::Cancelled);
    assert_eq!(demux.closed(), Some(&Err(StreamError::Cancelled)));
}
