//! Which calls could be run before the end of their choice, and whether more of them arrived after that (T27, T28).

use serde_json::Value;

use super::lenient::{self, join_halves};
use super::status;

/// A call that could be run early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Early {
    /// The arguments at that moment.
    pub arguments: String,
    /// Whether more of the call arrived after it.
    pub late: bool,
}

/// What happened to the calls of a choice, in order. A call is identified by its order of appearance.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Its name arrived.
    Name(usize),
    /// Its name changed.
    Rename(usize),
    Text(usize, String),
    /// The first finish reason.
    Finish(String),
}

/// Finds the first moment at which a call could be run: at the name of a later call, at the finish reason and, if `objects`
/// says so, at the end of one whole object.
pub(super) fn early(steps: &[Step], call: usize, custom: bool, objects: bool) -> Option<Early> {
    let mut text = String::new();
    let mut named = false;
    for (at, step) in steps.iter().enumerate() {
        let ready = match step {
            Step::Name(other) if *other == call => {
                named = true;
                objects && !custom && is_object(&text)
            }
            Step::Text(other, part) if *other == call => {
                text.push_str(part);
                objects && !custom && is_object(&text)
            }
            Step::Name(other) => *other > call && is_whole(&text, custom, true),
            Step::Finish(reason) if custom => !status::is_cut(reason),
            Step::Finish(reason) => is_whole(&text, false, status::is_cut(reason)),
            Step::Text(..) | Step::Rename(_) => false,
        };
        if ready && named {
            let late = steps[at + 1..].iter().any(|step| match step {
                Step::Rename(other) => *other == call,
                Step::Text(other, part) => *other == call && (custom || !is_space(part)),
                Step::Name(_) | Step::Finish(_) => false,
            });
            let arguments = join_halves(&text);
            return Some(Early { arguments, late });
        }
    }
    None
}

fn is_whole(text: &str, custom: bool, cut: bool) -> bool {
    if custom {
        return !text.is_empty();
    }
    let text = join_halves(text);
    let status = status::of_function(Some("a name"), false, without_placeholder(&text), cut);
    matches!(status, Some("complete" | "empty_as_object" | "repaired"))
}

fn is_object(text: &str) -> bool {
    let joined = join_halves(text);
    let object = without_placeholder(&joined);
    let Some(Value::Object(fields)) = lenient::parse(object) else {
        return false;
    };
    !fields.is_empty() && is_whole(text, false, true)
}

/// T22: `{}` before the real arguments.
fn without_placeholder(text: &str) -> &str {
    let rest = text.trim_start().strip_prefix("{}");
    rest.filter(|rest| !rest.trim().is_empty()).unwrap_or(text)
}

fn is_space(text: &str) -> bool {
    text.chars().all(|c| " \t\r\n".contains(c))
}
