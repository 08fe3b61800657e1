//! The messages of an assistant: texts, calls, and the state that the provider kept in an earlier answer.

use serde_json::Value;

use super::{
    content::{Content, PartKind},
    reader::Reader,
};
use crate::request::RequestError;

/// An answer of the model.
pub(super) struct Assistant<'r> {
    /// The texts of the parts of its content, and what only some providers have beside them.
    pub(super) texts: Vec<(&'r str, Reader<'r>)>,
    pub(super) refusal: Option<&'r str>,
    /// The reasoning as text only.
    pub(super) reasoning: String,
    /// The reasoning with what the provider needs back: entries of `reasoning_details` and `thinking_blocks`.
    pub(super) details: Vec<&'r Value>,
    /// What else stands in the answer: `content_parts`.
    pub(super) parts: Vec<&'r Value>,
    pub(super) calls: Vec<Call<'r>>,
    /// What only some providers have.
    pub(super) rest: Reader<'r>,
}

/// One call.
pub(super) struct Call<'r> {
    pub(super) kind: CallKind,
    pub(super) id: Option<&'r str>,
    pub(super) name: &'r str,
    /// The arguments as text, or the input of a custom call.
    pub(super) arguments: &'r str,
    /// What only some providers have.
    pub(super) rest: Reader<'r>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Function,
    Custom,
}

/// The names of a reasoning text.
const REASONING: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
];

/// Fields that providers add to their calls. They mean nothing to others, and a call is complete without them.
const STATE_OF_CALLS: [&str; 9] = [
    "index",
    "item_id",
    "caller",
    "namespace",
    "status",
    "extra_content",
    "thoughtSignature",
    "thought_signature",
    "toolset_name",
];

const FOREIGN_STATE: &str =
    "it is the state of another provider; reply to such an answer with ReplyReasoning::Never";

impl<'r> Assistant<'r> {
    pub(super) fn take(mut message: Reader<'r>) -> Result<Self, RequestError> {
        let content = Content::take(&mut message)?;
        let mut answer = Self {
            texts: Vec::new(),
            refusal: message.text("refusal")?,
            reasoning: String::new(),
            details: Vec::new(),
            parts: message.values("content_parts")?.iter().collect(),
            calls: Vec::new(),
            rest: message,
        };
        for part in content.parts {
            match part.kind {
                PartKind::Text("") => {}
                PartKind::Text(text) => {
                    answer.texts.push((text, part.rest));
                    continue;
                }
                PartKind::Reasoning(text) => answer.reasoning.push_str(&text),
                PartKind::Refusal(text) if answer.refusal.is_none() => answer.refusal = Some(text),
                PartKind::Refusal(_) | PartKind::Image(_) | PartKind::Other(_) => {
                    return Err(part.refuse());
                }
            }
            part.rest.finish()?;
        }
        answer.take_reasoning()?;
        let calls = answer.rest.objects("tool_calls")?.into_iter();
        answer.calls = calls.map(Call::take).collect::<Result<_, _>>()?;
        Ok(answer)
    }

    fn take_reasoning(&mut self) -> Result<(), RequestError> {
        for name in ["thinking_blocks", "reasoning_details"] {
            self.details.extend(self.rest.values(name)?);
        }
        for name in REASONING {
            if let Some(text) = self.rest.text(name)? {
                self.reasoning.push_str(text);
            }
        }
        Ok(())
    }

    /// The text as a whole.
    pub(super) fn text(&self) -> String {
        self.texts.iter().map(|(text, _)| *text).collect()
    }

    /// Checks that the state is that of this provider.
    pub(super) fn check_state(
        &self,
        is_own_detail: impl Fn(&Value) -> bool,
        is_own_part: impl Fn(&Value) -> bool,
    ) -> Result<(), RequestError> {
        if !self.details.iter().all(|detail| is_own_detail(detail)) {
            return Err(self.rest.refuse("reasoning_details", FOREIGN_STATE));
        }
        if !self.parts.iter().all(|part| is_own_part(part)) {
            return Err(self.rest.refuse("content_parts", FOREIGN_STATE));
        }
        Ok(())
    }

    /// Checks that the model did not refuse to answer, for a provider without refusals.
    pub(super) fn check_refusal(&self) -> Result<(), RequestError> {
        match self.refusal {
            None => Ok(()),
            Some(_) => Err(self.rest.refuse_field("refusal")),
        }
    }

    /// Refuses what was not taken.
    pub(super) fn finish(self) -> Result<(), RequestError> {
        const STATE: [&str; 4] = [
            "tool_plan",
            "extra_content",
            "thought_signature",
            "reasoning_opaque",
        ];
        for name in STATE {
            if self.rest.get(name).is_some() {
                return Err(self.rest.refuse(name, FOREIGN_STATE));
            }
        }
        for (_, rest) in self.texts {
            rest.finish()?;
        }
        self.rest.finish()
    }
}

impl<'r> Call<'r> {
    fn take(mut call: Reader<'r>) -> Result<Self, RequestError> {
        let id = call.text("id")?.filter(|id| !id.is_empty());
        let kind = match call.text("type")? {
            None | Some("function") => CallKind::Function,
            Some("custom") => CallKind::Custom,
            Some(_) => return Err(call.refuse("type", "it has no such calls")),
        };
        let (place, arguments) = match kind {
            CallKind::Function => ("function", "arguments"),
            CallKind::Custom => ("custom", "input"),
        };
        let mut data = call.required_object(place)?;
        let name = data.required_text("name")?;
        let arguments = data.text(arguments)?.unwrap_or_default();
        data.finish()?;
        Ok(Self {
            kind,
            id,
            name,
            arguments,
            rest: call,
        })
    }

    /// The text of the input. T23: a function without arguments has an empty object of them.
    pub(super) fn text(&self) -> &'r str {
        let is_empty = self.arguments.trim_ascii().is_empty();
        match self.kind {
            CallKind::Function if is_empty => "{}",
            CallKind::Function | CallKind::Custom => self.arguments,
        }
    }

    /// The arguments for a provider that expects an object.
    pub(super) fn object(&self) -> Result<Value, RequestError> {
        self.check_function()?;
        super::json_object::as_object(self.text()).ok_or_else(|| {
            let why = "they are not a JSON object, or have an integer of more than 64 bits";
            self.rest.refuse("function.arguments", why)
        })
    }

    /// Checks that this is not a custom call, for a provider without them.
    pub(super) fn check_function(&self) -> Result<(), RequestError> {
        match self.kind {
            CallKind::Function => Ok(()),
            CallKind::Custom => Err(self.rest.refuse("custom", "it has no custom calls")),
        }
    }

    /// The id for a provider that requires one.
    pub(super) fn required_id(&self) -> Result<&'r str, RequestError> {
        self.id
            .ok_or_else(|| self.rest.refuse("id", "it is missing"))
    }

    /// Refuses what was not taken, except the state of other providers.
    pub(super) fn finish(mut self) -> Result<(), RequestError> {
        for name in STATE_OF_CALLS {
            self.rest.take(name);
        }
        self.rest.finish()
    }
}
