//! The messages of a conversation, independent of the provider.

use serde_json::Value;

use super::{
    assistant::{Assistant, CallKind},
    content::Content,
    reader::Reader,
};
use crate::request::RequestError;

/// One message.
pub(super) enum Turn<'r> {
    /// Of the role `system` or `developer`.
    System(SystemTurn<'r>),
    User(Content<'r>),
    Assistant(Assistant<'r>),
    /// The result of a call.
    Result(CallResult<'r>),
}

pub(super) struct SystemTurn<'r> {
    pub(super) role: &'r str,
    pub(super) content: Content<'r>,
    /// What only some providers have.
    pub(super) rest: Reader<'r>,
}

/// The result of a call, with what is known of the call.
pub(super) struct CallResult<'r> {
    pub(super) id: Option<&'r str>,
    pub(super) name: Option<&'r str>,
    pub(super) is_custom: bool,
    pub(super) content: Content<'r>,
    pub(super) rest: Reader<'r>,
}

/// A call whose result may follow.
struct OpenCall<'r> {
    id: Option<&'r str>,
    name: &'r str,
    is_custom: bool,
}

/// Takes the messages of a request.
pub(super) fn take<'r>(request: &mut Reader<'r>) -> Result<Vec<Turn<'r>>, RequestError> {
    let mut turns = Vec::new();
    let mut calls = Vec::new();
    for mut message in request.objects("messages")? {
        turns.push(match message.required_text("role")? {
            role @ ("system" | "developer") => Turn::System(SystemTurn {
                role,
                content: Content::take(&mut message)?,
                rest: message,
            }),
            "user" => {
                let content = Content::take(&mut message)?;
                message.finish()?;
                Turn::User(content)
            }
            "assistant" => {
                let assistant = Assistant::take(message)?;
                if !assistant.calls.is_empty() {
                    // A call that was never answered must not take the result of a later one that has the same id, or none.
                    calls.clear();
                }
                calls.extend(assistant.calls.iter().map(|call| OpenCall {
                    id: call.id,
                    name: call.name,
                    is_custom: call.kind == CallKind::Custom,
                }));
                Turn::Assistant(assistant)
            }
            "tool" => Turn::Result(result(message, &mut calls)?),
            _ => return Err(message.refuse("role", "it has no such role")),
        });
    }
    Ok(turns)
}

/// Reads a result. A call without an id has its result in the order of the calls.
fn result<'r>(
    mut message: Reader<'r>,
    calls: &mut Vec<OpenCall<'r>>,
) -> Result<CallResult<'r>, RequestError> {
    let id = message.text("tool_call_id")?.filter(|id| !id.is_empty());
    let given_name = message.text("name")?;
    let at = calls.iter().position(|call| call.id == id);
    let call = at.map(|at| calls.remove(at));
    Ok(CallResult {
        id,
        name: call.as_ref().map(|call| call.name).or(given_name),
        is_custom: call.is_some_and(|call| call.is_custom),
        content: Content::take(&mut message)?,
        rest: message,
    })
}

/// Separates the system messages, for a provider that has one place for them, in front of the others.
pub(super) fn split_system(
    turns: Vec<Turn<'_>>,
) -> Result<(Vec<Content<'_>>, Vec<Turn<'_>>), RequestError> {
    let (mut system, mut others) = (Vec::new(), Vec::new());
    for turn in turns {
        match turn {
            Turn::System(turn) if others.is_empty() => {
                turn.rest.finish()?;
                system.push(turn.content);
            }
            Turn::System(turn) => {
                let why = "it accepts system messages only in front of the others";
                return Err(turn.rest.refuse_all(why));
            }
            other => others.push(other),
        }
    }
    Ok((system, others))
}

/// What a JSON text is for a provider that expects an object; `None` for any other value, and for an object with an integer that a
/// [`Value`] cannot hold.
pub(super) fn as_object(text: &str) -> Option<Value> {
    let object: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
    has_exact_integers(text).then_some(object)
}

/// Whether all integers of a JSON text have at most 64 bits. Longer ones, account numbers for example, would lose digits.
fn has_exact_integers(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        let token = rest.get(at..).unwrap_or_default();
        let length = if token.starts_with('"') {
            string_length(token)
        } else {
            let end = token.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
            let number = token.get(..end.unwrap_or(token.len())).unwrap_or_default();
            let is_integer = !number.contains(['.', 'e', 'E']);
            if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                return false;
            }
            number.len()
        };
        rest = token.get(length..).unwrap_or_default();
    }
    true
}

/// The length of the string at the start of a valid JSON text, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_an_integer_of_more_than_64_bits_is_refused() {
        for exact in [
            r#"{"a":18446744073709551615,"b":-9223372036854775808}"#,
            r#"{"a":"12345678901234567890123","b\"1":1.5e300}"#,
            r#"{"a\\":[0, 1],"é":-0}"#,
        ] {
            assert!(as_object(exact).is_some(), "{exact}");
        }
        for long in [
            r#"{"a":12345678901234567890123}"#,
            r#"{"\\":[{"b":-9223372036854775809}]}"#,
        ] {
            assert_eq!(as_object(long), None, "{long}");
        }
    }
}
