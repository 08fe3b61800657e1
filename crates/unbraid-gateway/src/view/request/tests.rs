//! The parameters and headers of a view.

use unbraid_core::ChoiceIndex;
use unbraid_log::Seq;

use super::{Format, Part, RequestHeaders, Start, Target, ViewError, ViewRequest};

fn parse(query: &str, last_event_id: Option<&str>) -> Result<ViewRequest, ViewError> {
    let headers = RequestHeaders {
        accept: None,
        last_event_id: last_event_id.map(str::as_bytes),
    };
    ViewRequest::parse(Some(ChoiceIndex(1)), Some(query), headers)
}

#[track_caller]
fn check_start(query: &str, last_event_id: Option<&str>, expected: Result<Start, ViewError>) {
    assert_eq!(
        parse(query, last_event_id).map(|request| request.start),
        expected
    );
}

#[test]
fn the_header_takes_precedence_over_after_and_a_cursor_over_from() {
    check_start("", None, Ok(Start::Beginning));
    check_start("from=start", None, Ok(Start::Beginning));
    check_start("from=snapshot", None, Ok(Start::Snapshot));
    check_start("from=tail", None, Ok(Start::Tail));
    check_start("from=end", None, Err(ViewError::InvalidParameter("from")));
    check_start("after=7", None, Ok(Start::After(Seq(7))));
    check_start("after=7&from=tail", None, Ok(Start::After(Seq(7))));
    check_start("after=7", Some("9"), Ok(Start::After(Seq(9))));
    check_start("after=x", Some("9"), Ok(Start::After(Seq(9))));
    check_start("from=tail", Some("0"), Ok(Start::After(Seq(0))));
    check_start("%61fter=%37&sig=x&exp=1", None, Ok(Start::After(Seq(7))));
}

#[test]
fn a_cursor_is_a_decimal_below_2_to_the_63() {
    let max = (1_u64 << 63) - 1;
    check_start(&format!("after={max}"), None, Ok(Start::After(Seq(max))));
    check_start("after=007", None, Ok(Start::After(Seq(7))));
    for cursor in [
        "9223372036854775808",
        "99999999999999999999999",
        "",
        "-1",
        "+1",
        "1.0",
        "1e3",
        " 1",
        "0x1",
        "１",
    ] {
        check_start(
            &format!("after={}", cursor.replace('+', "%2B")),
            None,
            Err(ViewError::BadCursor),
        );
        check_start("after=1", Some(cursor), Err(ViewError::BadCursor));
    }
    assert_eq!(
        ViewRequest::parse_cursor(b"\xff"),
        Err(ViewError::BadCursor)
    );
}

#[track_caller]
fn check_accept(query: &str, accept: Option<&str>, expected: Result<Format, ViewError>) {
    let headers = RequestHeaders {
        accept: accept.map(|accept| accept.as_bytes().into()),
        last_event_id: None,
    };
    let request = ViewRequest::parse(None, Some(query), headers);
    assert_eq!(
        request.map(|request| request.format),
        expected,
        "{accept:?}"
    );
}

#[test]
fn accept_selects_the_form_and_stream_overrides_it() {
    use Format::{Events, Json};
    for events in [
        None,
        Some("*/*"),
        Some("text/event-stream"),
        Some("Text/Event-Stream; charset=utf-8"),
        Some("text/html,application/xhtml+xml,*/*;q=0.8"),
        Some("application/json;q=0.5, text/event-stream"),
        Some("text/event-stream, application/json"),
        Some("text/*"),
        Some("application/json;q=0, */*"),
        Some("application/json;q=0.2, */*;q=0.5"),
        Some("text/html;x=\"a, application/json\", */*"),
        Some(""),
        Some(" , "),
    ] {
        check_accept("", events, Ok(Events));
        check_accept("stream=false", events, Ok(Json));
    }
    for json in [
        Some("application/json"),
        Some("application/json, text/plain, */*"),
        Some("application/json, text/event-stream;q=0"),
        Some("application/*"),
        Some("*/*, text/event-stream;q=0"),
        Some("text/event-stream;q=0.1, */*;q=0.5"),
        Some("text/*;q=0, */*"),
    ] {
        check_accept("", json, Ok(Json));
        check_accept("stream=true", json, Ok(Events));
    }
    for neither in [
        Some("text/html"),
        Some("text/html, ,"),
        Some("application/json;q=0"),
        Some("*/*;q=0"),
        Some("text/event-stream;q=0, application/json;q=0, */*"),
        Some("x"),
    ] {
        check_accept("", neither, Err(ViewError::NotAcceptable));
        check_accept("stream=true", neither, Ok(Events));
    }
    check_accept(
        "stream=yes",
        None,
        Err(ViewError::InvalidParameter("stream")),
    );
}

#[test]
fn parts_and_indices_are_parsed() {
    let target = |query: &str| parse(query, None).map(|request| request.target);
    let one = |keep_index, part| {
        Ok(Target::Choice {
            index: ChoiceIndex(1),
            keep_index,
            part,
        })
    };
    assert_eq!(target(""), one(false, None));
    assert_eq!(target("index=keep"), one(true, None));
    assert_eq!(
        target("index=zero"),
        Err(ViewError::InvalidParameter("index"))
    );
    assert_eq!(target("part=content"), one(false, Some(Part::Content)));
    assert_eq!(target("part=reasoning"), one(false, Some(Part::Reasoning)));
    assert_eq!(target("part=refusal"), one(false, Some(Part::Refusal)));
    assert_eq!(
        target("part=tool_calls%2E2"),
        one(false, Some(Part::ToolCall(2)))
    );
    for part in [
        "",
        "tool_calls",
        "tool_calls.",
        "tool_calls.-1",
        "tool_calls.%2B1",
        "tool_calls.4294967296",
        "audio",
    ] {
        assert_eq!(
            target(&format!("part={part}")),
            Err(ViewError::InvalidParameter("part")),
            "{part}"
        );
    }
    let combined = ViewRequest::parse(None, Some("part=content"), RequestHeaders::default());
    assert_eq!(combined, Err(ViewError::InvalidParameter("part")));
    let combined = ViewRequest::parse(None, None, RequestHeaders::default());
    assert_eq!(combined, Ok(ViewRequest::of_post(None)));
}
