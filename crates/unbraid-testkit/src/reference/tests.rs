//! Handwritten streams with their expected results, and whole files.

mod calls;
mod ends;
mod files;
mod rules;

use super::{Options, Outcome, accumulate};

/// Formats an outcome as lines: `c<choice> <field> <value>`, then the fields of the whole stream.
fn format_outcome(outcome: &Outcome) -> String {
    let mut lines = Vec::new();
    for (index, choice) in &outcome.choices {
        let mut add = |field: &str, value: &str| lines.push(format!("c{index} {field} {value}"));
        add("text", &format!("{:?}", choice.content));
        for (field, value) in [
            ("reasoning", &choice.reasoning),
            ("refusal", &choice.refusal),
        ] {
            if !value.is_empty() {
                add(field, &format!("{value:?}"));
            }
        }
        for call in &choice.tool_calls {
            let [id, name] = [&call.id, &call.name].map(|part| part.as_deref().unwrap_or("-"));
            add(&call.kind, &format!("{id} {name} {}", call.arguments));
        }
        if let Some(call) = &choice.function_call {
            add(
                "legacy",
                &format!("{} {}", call.name.as_deref().unwrap_or("-"), call.arguments),
            );
        }
        if let Some(reason) = &choice.finish_reason {
            add("finish", reason);
        }
    }
    lines.extend(outcome.usage.iter().map(|usage| format!("usage {usage}")));
    lines.extend(outcome.error.iter().map(|error| format!("error {error}")));
    lines.extend((outcome.lost > 0).then(|| format!("lost {}", outcome.lost)));
    lines.extend(outcome.refused.then(|| "refused".to_owned()));
    lines.extend(outcome.done.then(|| "done".to_owned()));
    lines.join("\n")
}

#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    check_with(&Options::default(), stream, expected);
}

#[track_caller]
fn check_with(options: &Options, stream: &str, expected: &[&str]) {
    assert_eq!(
        format_outcome(&accumulate(stream.as_bytes(), options)),
        expected.join("\n")
    );
}

/// Each delta as an event of choice 0.
#[track_caller]
fn check_deltas(deltas: &[&str], expected: &[&str]) {
    let event = |delta| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    let stream: String = deltas.iter().map(event).collect();
    check(&stream, expected);
}
