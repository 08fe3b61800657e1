//! Streams by hand, each told in a few lines, and whole files.

mod calls;
mod ends;
mod rules;
mod whole;

use super::{Options, Outcome, accumulate};

/// Tells an outcome in lines: `c<choice> <field> <value>`, and what concerns the whole stream.
fn tell(outcome: &Outcome) -> String {
    let mut told = Vec::new();
    for (index, choice) in &outcome.choices {
        let mut say = |field: &str, value: &str| told.push(format!("c{index} {field} {value}"));
        say("text", &format!("{:?}", choice.content));
        for (field, value) in [
            ("reasoning", &choice.reasoning),
            ("refusal", &choice.refusal),
        ] {
            if !value.is_empty() {
                say(field, &format!("{value:?}"));
            }
        }
        for call in &choice.tool_calls {
            let [id, name] = [&call.id, &call.name].map(|part| part.as_deref().unwrap_or("-"));
            say(&call.kind, &format!("{id} {name} {}", call.arguments));
        }
        if let Some(call) = &choice.function_call {
            say(
                "legacy",
                &format!("{} {}", call.name.as_deref().unwrap_or("-"), call.arguments),
            );
        }
        if let Some(reason) = &choice.finish_reason {
            say("finish", reason);
        }
    }
    told.extend(outcome.usage.iter().map(|usage| format!("usage {usage}")));
    told.extend(outcome.error.iter().map(|error| format!("error {error}")));
    told.extend((outcome.lost > 0).then(|| format!("lost {}", outcome.lost)));
    told.extend(outcome.refused.then(|| "refused".to_owned()));
    told.extend(outcome.done.then(|| "done".to_owned()));
    told.join("\n")
}

#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    check_with(&Options::default(), stream, expected);
}

#[track_caller]
fn check_with(options: &Options, stream: &str, expected: &[&str]) {
    assert_eq!(
        tell(&accumulate(stream.as_bytes(), options)),
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
