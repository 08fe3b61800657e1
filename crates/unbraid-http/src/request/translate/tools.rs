//! The tools of a request, and which of them the model has to call.

use serde_json::{Value, json};

use super::reader::Reader;
use crate::request::RequestError;

/// A tool.
pub(super) enum Tool<'r> {
    Function(Function<'r>),
    /// A tool whose input is free text.
    Custom(Reader<'r>),
    /// A tool of the provider itself, which has no counterpart elsewhere.
    Own(&'r Value),
}

pub(super) struct Function<'r> {
    pub(super) name: &'r str,
    pub(super) description: Option<&'r str>,
    pub(super) parameters: Option<&'r Value>,
    pub(super) is_strict: Option<bool>,
    /// What only some providers have.
    pub(super) rest: Reader<'r>,
}

/// Which tool the model has to call.
pub(super) enum ToolChoice<'r> {
    Auto,
    None,
    Required,
    Function(&'r str),
    Custom(&'r str),
}

/// Takes the tools. `is_own` recognizes those that the provider itself has.
pub(super) fn take<'r>(
    request: &mut Reader<'r>,
    is_own: impl Fn(&Value) -> bool,
) -> Result<Vec<Tool<'r>>, RequestError> {
    let values = match request.get("tools") {
        Some(Value::Array(values)) => values.as_slice(),
        _ => &[],
    };
    let tools = request.objects("tools")?.into_iter().zip(values);
    tools
        .map(
            |(mut tool, value)| match value.get("type").and_then(Value::as_str) {
                Some("function") if value.get("function").is_some() => function(tool),
                Some("custom") if value.get("custom").is_some() => {
                    let custom = tool.required_object("custom")?;
                    tool.take("type");
                    tool.finish()?;
                    Ok(Tool::Custom(custom))
                }
                _ if is_own(value) => Ok(Tool::Own(value)),
                _ => Err(tool.refuse("type", "it has no such tool")),
            },
        )
        .collect()
}

fn function(mut tool: Reader<'_>) -> Result<Tool<'_>, RequestError> {
    tool.take("type");
    let mut function = tool.required_object("function")?;
    let read = Function {
        name: function.required_text("name")?,
        description: function.text("description")?,
        parameters: function.take("parameters"),
        is_strict: function.flag("strict")?,
        rest: tool,
    };
    function.finish()?;
    Ok(Tool::Function(read))
}

impl Function<'_> {
    /// The schema of the parameters. A function without any has an object without properties.
    pub(super) fn schema(&self) -> Value {
        let given = self.parameters.cloned();
        given.unwrap_or_else(|| json!({ "type": "object", "properties": {} }))
    }
}

/// Whether a tool's arguments have to match its schema.
pub(super) fn has_strict(tools: &[Tool<'_>]) -> bool {
    let is_strict = |tool: &Tool<'_>| match tool {
        Tool::Function(function) => function.is_strict == Some(true),
        Tool::Custom(_) | Tool::Own(_) => false,
    };
    tools.iter().any(is_strict)
}

/// The error of a custom tool, for a provider without them.
pub(super) fn refuse_custom(tool: &Reader<'_>) -> RequestError {
    tool.refuse_all("it has no custom tools")
}

impl<'r> ToolChoice<'r> {
    pub(super) fn take(request: &mut Reader<'r>) -> Result<Option<Self>, RequestError> {
        if let Some(Value::String(choice)) = request.get("tool_choice") {
            request.take("tool_choice");
            return match choice.as_str() {
                "auto" => Ok(Some(Self::Auto)),
                "none" => Ok(Some(Self::None)),
                "required" => Ok(Some(Self::Required)),
                _ => Err(request.refuse("tool_choice", "it has no such choice")),
            };
        }
        let Some(mut choice) = request.object("tool_choice")? else {
            return Ok(None);
        };
        let kind = choice.required_text("type")?;
        if !matches!(kind, "function" | "custom") {
            return Err(choice.refuse("type", "it has no such choice"));
        }
        let mut tool = choice.required_object(kind)?;
        let name = tool.required_text("name")?;
        tool.finish()?;
        choice.finish()?;
        Ok(Some(match kind {
            "custom" => Self::Custom(name),
            _ => Self::Function(name),
        }))
    }
}
