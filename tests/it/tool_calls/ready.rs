//! T27, T28: when a call may be run. The cursor, the actors and a cursor that comes late agree on every fixture.

use futures::StreamExt;
use unbraid::{Completions, JsonErrorKind, ReadyCursor, ReadyPolicy};
use unbraid_core::{CallIndex, ChoiceIndex, Demux, Event, Sequenced, ToolCall};
use unbraid_testkit::{cut::bytewise, fixture::Fixture, script::Script};

use crate::support::options;

const POLICIES: [ReadyPolicy; 3] = [
    ReadyPolicy::AtEnd,
    ReadyPolicy::NextCall,
    ReadyPolicy::ValidJson,
];

fn show(result: &Result<ToolCall, JsonErrorKind>) -> String {
    match result {
        Ok(call) => {
            let status = call.status.map_or("-", |status| status.as_str());
            format!("{} {} {status}", call.name, call.arguments)
        }
        Err(error) => format!("error: {error}"),
    }
}

/// All calls of a stream, with the result of a cursor that reads each at the end of the stream.
fn at_the_end(demux: &Demux) -> Vec<(ChoiceIndex, CallIndex, ReadyPolicy, String)> {
    let mut results = Vec::new();
    for choice in demux.choices() {
        let events = (0..choice.event_count()).filter_map(|seq| choice.event(seq));
        let starts = events.filter_map(|event| match event.event {
            Event::ToolCallStart { call_index, .. } => Some(call_index),
            _ => None,
        });
        for call in starts {
            for policy in POLICIES {
                let result = ReadyCursor::new(call, policy).poll(choice);
                let result = result.expect("a call is ready at the end of its choice");
                results.push((choice.index(), call, policy, show(&result)));
            }
        }
    }
    results
}

fn demux(fixture: &Fixture) -> Demux {
    let mut demux = Demux::new(options(&fixture.options));
    demux.feed(&fixture.bytes);
    demux.finish();
    demux
}

#[test]
fn a_cursor_that_is_polled_after_each_byte_ends_as_one_that_comes_late() {
    for fixture in Fixture::all() {
        let expected = at_the_end(&demux(&fixture));
        let mut cursors: Vec<_> = expected
            .iter()
            .map(|(choice, call, policy, _)| {
                (*choice, ReadyCursor::new(*call, *policy), Vec::new())
            })
            .collect();
        let mut demux = Demux::new(options(&fixture.options));
        let mut poll = |demux: &Demux| {
            for (choice, cursor, seen) in &mut cursors {
                seen.extend(demux.choice(*choice).and_then(|choice| cursor.poll(choice)));
            }
        };
        for byte in bytewise(&fixture.bytes) {
            demux.feed(byte);
            if byte == b"\n" {
                poll(&demux);
            }
        }
        demux.finish();
        poll(&demux);
        for ((choice, call, policy, expected), (_, _, seen)) in expected.iter().zip(&cursors) {
            let context = format!("{}: choice {choice}, call {call}, {policy:?}", fixture.name);
            let last = seen.last().map(show);
            assert_eq!(last.as_deref(), Some(expected.as_str()), "{context}");
            let calls = seen.iter().filter(|result| result.is_ok()).count();
            assert!(
                seen.len() == calls.max(1) || (seen.len(), calls) == (2, 1),
                "{context}"
            );
            if let [Ok(call), Err(error)] = &seen[..] {
                let is_late = matches!(error, JsonErrorKind::LateFragment { bytes, .. } if *bytes == call.arguments.len());
                assert!(is_late, "{context}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn the_actors_agree_with_the_cursor() {
    for fixture in Fixture::all() {
        let expected = at_the_end(&demux(&fixture));
        let source = Script::of([&fixture.bytes]);
        let builder = Completions::builder().config(options(&fixture.options));
        let completions = builder.from_byte_stream(source);
        let mut actual = Vec::new();
        let mut choices = completions.choices();
        while let Some(Ok(choice)) = choices.next().await {
            completions.closed().await.ok();
            let calls: Vec<_> = choice
                .tool_calls()
                .filter_map(async |call| call.ok())
                .collect()
                .await;
            for call in calls {
                for policy in POLICIES {
                    let result = call
                        .ready(policy)
                        .await
                        .map_err(|error| error.kind().clone());
                    actual.push((choice.index(), call.call_index(), policy, show(&result)));
                }
            }
        }
        assert_eq!(actual, expected, "{}", fixture.name);
    }
}

/// A call that one of the policies made ready too early is a warning, and no other call is.
#[test]
fn every_late_fragment_is_a_warning_at_the_end_of_its_choice() {
    let mut late_calls = 0;
    for fixture in Fixture::all() {
        let mut demux = demux(&fixture);
        let after_end = demux
            .warnings()
            .iter()
            .any(|warning| warning.message.contains("had ended"));
        if after_end {
            continue; // what arrives after the end is a warning of its own (F6)
        }
        let late = at_the_end(&demux)
            .into_iter()
            .filter(|(.., result)| result.contains("after it was ready"));
        let mut expected: Vec<_> = late.map(|(choice, call, ..)| (choice, call)).collect();
        expected.dedup();
        late_calls += expected.len();
        let mut warned = Vec::new();
        while let Some(Sequenced { choice, event, .. }) = demux.next_event() {
            if let Event::Warning(warning) = event
                && matches!(warning.code, "T27" | "T28")
            {
                let call = warning
                    .message
                    .split("tool call ")
                    .nth(1)
                    .and_then(|rest| rest.split(' ').next());
                let call = call.and_then(|call| call.parse().ok()).map(CallIndex);
                warned.push((choice.expect("a choice"), call.expect("a call")));
            }
        }
        expected.sort();
        warned.sort();
        assert_eq!(warned, expected, "{}", fixture.name);
    }
    assert!(late_calls >= 5, "{late_calls}");
}
