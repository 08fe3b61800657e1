//! T1 to T45: the deltas that a server sends, their events, and the resulting calls.

mod correlation;
mod forms;
mod ids;
mod names;
mod ready;

use std::fmt::Write as _;

use unbraid_core::{CallStatus, ChoiceIndex, Config, Demux, Event, ToolCall, Transcript};

/// Feeds chunks with these entries of `choices`.
fn demux(chunks: &[String], options: Config) -> Demux {
    let mut demux = Demux::new(options);
    for chunk in chunks {
        demux.feed(format!("data: {{\"choices\":[{chunk}]}}\n\n").as_bytes());
    }
    demux.feed(b"data: [DONE]\n\n");
    demux.finish();
    demux
}

/// An entry of choice 0 with this delta.
fn delta(delta: &str) -> String {
    format!("{{\"index\":0,\"delta\":{delta}}}")
}

fn finish(reason: &str) -> String {
    format!("{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}")
}

/// Chunks of choice 0 with these entries of `tool_calls`, followed by its finish reason.
fn calls(chunks: &[&str]) -> Vec<String> {
    let entries = chunks.iter();
    let deltas = entries.map(|entries| delta(&format!("{{\"tool_calls\":[{entries}]}}")));
    deltas.chain([finish("tool_calls")]).collect()
}

/// The events of the calls, one per line: `+` starts a call, `.` ends it.
fn format_events(choice: &Transcript) -> String {
    let mut lines = String::new();
    for event in (0..choice.event_count()).filter_map(|seq| choice.event(seq)) {
        let written = match event.event {
            Event::ToolCallStart {
                call_index,
                wire_index,
                id,
                name,
                kind,
            } => {
                let index = wire_index.map_or_else(|| "-".to_owned(), |index| index.to_string());
                let id = id.unwrap_or("-");
                writeln!(
                    lines,
                    "+{call_index} #{index} {id} {name:?} {}",
                    kind.as_str()
                )
            }
            Event::ToolCallArguments { call_index, text } => {
                writeln!(lines, " {call_index} {text}")
            }
            Event::ToolCallDone { call_index, status } => {
                writeln!(lines, ".{call_index} {status}")
            }
            Event::Content(text) => writeln!(lines, "   {text}"),
            Event::Finish(reason) => writeln!(lines, "   ={reason}"),
            Event::Warning(warning) => writeln!(lines, "   !{}", warning.code),
            Event::End(end) if end.is_error() => writeln!(lines, "   ={}", end.as_str()),
            _ => Ok(()),
        };
        written.expect("writing to a string never fails");
    }
    lines
}

/// A call of the message: `index id name kind arguments status`.
fn call(call: &ToolCall) -> String {
    let index = call
        .wire_index
        .map_or_else(|| "-".to_owned(), |index| index.to_string());
    let id = call.id.as_deref().unwrap_or("-");
    let kind = call.kind.as_str();
    let status = call.status.map_or("-", CallStatus::as_str);
    format!(
        "#{index} {id} {:?} {kind} {} {status}",
        call.name, call.arguments
    )
}

/// Checks the events of a choice's calls, and the calls at its end.
#[track_caller]
fn check_choice(demux: &Demux, choice: u32, events: &str, calls: &[&str]) {
    let choice = demux
        .choice(ChoiceIndex(choice))
        .expect("the choice exists");
    assert_eq!(format_events(choice), unindented(events));
    let message = choice.message();
    let actual: Vec<String> = message.tool_calls.iter().map(call).collect();
    assert_eq!(actual, calls);
    for call in &message.tool_calls {
        assert_eq!(
            choice.call(call.call_index).as_ref(),
            Some(call),
            "by call index"
        );
    }
}

#[track_caller]
fn check(chunks: &[String], events: &str, calls: &[&str]) {
    check_choice(&demux(chunks, Config::default()), 0, events, calls);
}

#[track_caller]
fn check_declared(tools: &[&str], chunks: &[String], events: &str, calls: &[&str]) {
    let options = Config::default().with_tools(tools.iter().copied());
    check_choice(&demux(chunks, options), 0, events, calls);
}

/// The lines of a literal, each without its margin.
fn unindented(text: &str) -> String {
    let lines = text.lines().skip(1).filter_map(|line| line.split_once('|'));
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

const HEADER: &str =
    r#"{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}"#;
