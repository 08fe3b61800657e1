//! What a choice has besides its text.

use std::fmt;

use unbraid_core::{ChoiceIndex, Message};

use crate::{output::print_error, printable::printable};

/// Prints what [`left_out`] has returned for a choice on the standard error.
pub(crate) fn print_left_out(source: &dyn fmt::Display, choice: ChoiceIndex, left_out: &[String]) {
    for what in left_out {
        print_error(format_args!("unbraid: {source}: choice {choice} {what}"));
    }
}

/// What the text of a message lacks: a refusal, calls, or that the answer is reasoning only.
///
/// A script reads the text from the standard output, so a refusal must not be mistaken for the text.
pub(crate) fn left_out(message: &Message) -> Vec<String> {
    let mut left_out = Vec::new();
    if !message.refusal.is_empty() {
        left_out.push(format!("refused: {}", printable(message.refusal.trim())));
    }
    match message.tool_calls.len() {
        0 => {}
        1 => left_out.push("has a tool call, which --text leaves out".to_owned()),
        n => left_out.push(format!("has {n} tool calls, which --text leaves out")),
    }
    if left_out.is_empty() && message.content.is_empty() && !message.reasoning.is_empty() {
        left_out.push("has reasoning but no text".to_owned());
    }
    left_out
}

#[cfg(test)]
mod tests {
    use unbraid_core::{ChoiceIndex, Config, Demux};

    use super::left_out;

    #[track_caller]
    fn check(delta: &str, expected: &[&str]) {
        let mut demux = Demux::new(Config::default());
        let chunk = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        demux.feed(chunk.as_bytes());
        let message = demux.choice(ChoiceIndex(0)).unwrap().message();
        assert_eq!(left_out(&message), expected);
    }

    #[test]
    fn refusals_calls_and_reasoning_are_named() {
        check(r#"{"content":"Hi","reasoning":"Hm."}"#, &[]);
        check(r#"{"reasoning":"Hm."}"#, &["has reasoning but no text"]);
        check(r#"{"refusal":" No\u001b. "}"#, &["refused: No\\u{1b}."]);
        let call = |index| {
            format!(
                r#"{{"index":{index},"id":"c{index}","function":{{"name":"f","arguments":"{{}}"}}}}"#
            )
        };
        check(
            &format!(r#"{{"content":"Hi","tool_calls":[{}]}}"#, call(0)),
            &["has a tool call, which --text leaves out"],
        );
        check(
            &format!(r#"{{"tool_calls":[{},{}]}}"#, call(0), call(1)),
            &["has 2 tool calls, which --text leaves out"],
        );
    }
}
