//! The messages of a conversation, independent of the provider.

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

impl<'r> CallResult<'r> {
    /// The id of the call, for a provider that requires one.
    pub(super) fn required_id(&self) -> Result<&'r str, RequestError> {
        self.id
            .ok_or_else(|| self.rest.refuse("tool_call_id", "it is missing"))
    }
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
