//! T1 to T45, one after another: what a server sends, the events that come of it, and the calls it adds up to.

mod forms;
mod names;
mod which;

use std::fmt::Write as _;

use unbraid_core::{CallStatus, ChoiceIndex, Config, Demux, Event, ToolCall, Transcript};

/// The entries of `choices` as chunks; those of a chunk stand on one line, parted by ` + `.
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

/// Chunks of choice 0 that hold these entries of `tool_calls`, then its finish reason.
fn calls(chunks: &[&str]) -> Vec<String> {
    let entries = chunks.iter();
    let deltas = entries.map(|entries| delta(&format!("{{\"tool_calls\":[{entries}]}}")));
    deltas.chain([finish("tool_calls")]).collect()
}

/// The events of the calls, one a line: `+` starts one, `.` ends one.
fn told(choice: &Transcript) -> String {
    let mut lines = String::new();
    for event in (0..choice.event_count()).filter_map(|seq| choice.event(seq)) {
        let written = match event.event {
            Event::ToolCallStart {
                call_index: call,
                wire_index: index,
                id,
                name,
                kind,
            } => {
                let index = index.map_or_else(|| "-".to_owned(), |index| index.to_string());
                let id = id.unwrap_or("-");
                writeln!(lines, "+{call} #{index} {id} {name:?} {}", kind.as_str())
            }
            Event::ToolCallArguments {
                call_index: call,
                text,
            } => writeln!(lines, " {call} {text}"),
            Event::ToolCallDone {
                call_index: call,
                status,
            } => writeln!(lines, ".{call} {status}"),
            Event::Content(text) => writeln!(lines, "   {text}"),
            Event::Finish(reason) => writeln!(lines, "   ={reason}"),
            Event::Warning(warning) => writeln!(lines, "   !{}", warning.code),
            Event::End(end) if end.is_error() => writeln!(lines, "   ={}", end.as_str()),
            _ => Ok(()),
        };
        written.expect("a string takes a line");
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

/// What a choice tells of its calls, and what they are at its end.
#[track_caller]
fn check_choice(demux: &Demux, choice: u32, events: &str, calls: &[&str]) {
    let choice = demux.choice(ChoiceIndex(choice)).expect("the choice came");
    assert_eq!(told(choice), unindented(events));
    let message = choice.message();
    let given: Vec<String> = message.tool_calls.iter().map(call).collect();
    assert_eq!(given, calls);
    for call in &message.tool_calls {
        assert_eq!(
            choice.call(call.call_index).as_ref(),
            Some(call),
            "by ordinal"
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

/// The lines of a literal, without its margin.
fn unindented(text: &str) -> String {
    let lines = text.lines().skip(1).filter_map(|line| line.split_once('|'));
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

const HEADER: &str =
    r#"{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}"#;
