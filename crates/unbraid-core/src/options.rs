//! How a stream is read.

use std::sync::Arc;

use serde_json::Value;

use crate::Limits;

/// When a choice whose finish reason has come counts as ended.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, FinishPolicy, Options};
///
/// let ended = |finish_policy| {
///     let mut demux = Demux::new(Options { finish_policy, ..Options::default() });
///     demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
///     demux.choice(ChoiceIndex(0)).unwrap().end().is_some()
/// };
/// assert!(ended(FinishPolicy::AtFinish));
/// assert!(!ended(FinishPolicy::NextEvent), "the next event, or the close, ends it");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishPolicy {
    /// At the first event that brings nothing more for it. Some servers send several calls, each with a finish reason.
    #[default]
    NextEvent,
    /// At once.
    AtFinish,
    /// When the stream closes.
    AtStreamEnd,
}

/// How a stream is read; the default suits every server that we know.
///
/// # Examples
///
/// ```
/// use unbraid_core::Options;
///
/// let options = Options { expect_choices: Some(1), ..Options::default() };
/// # assert!(!options.strict);
/// ```
///
/// The names of the tools settle what a name is that comes in pieces:
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Options};
///
/// let name = |tools: &[&str]| {
///     let mut demux = Demux::new(Options { tools: tools.iter().map(|&name| name.into()).collect(), ..Options::default() });
///     for piece in ["search", "web_search"] {
///         demux.feed(format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{piece}\"}}}}]}}}}]}}\n\n").as_bytes());
///     }
///     demux.choice(ChoiceIndex(0)).unwrap().message().tool_calls[0].name.to_string()
/// };
/// assert_eq!(name(&[]), "searchweb_search");
/// assert_eq!(name(&["web_search"]), "web_search");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Ends the stream at the first line that is no data (R04) and at the first payload that is no JSON (R07).
    pub strict: bool,
    /// How many choices were asked for. With 1 every index is read as 0 (E12); otherwise more only warn (E29).
    pub expect_choices: Option<u32>,
    /// How many choices each prompt has, if the request holds a list of prompts: then a prompt that is reported with each of
    /// its choices is counted once, and every prompt of the list (E15). See
    /// [`Prompt::choices_per_prompt`](crate::Prompt::choices_per_prompt).
    pub choices_per_prompt: Option<u32>,
    /// When a finished choice ends.
    pub finish_policy: FinishPolicy,
    /// The bounds.
    pub limits: Limits,
    /// Names of the tools that the request declared, if they are known. They decide whether a further piece of a call's
    /// name continues it or takes its place (T16); a name that is none of them is delivered all the same (T44).
    pub tools: Vec<Arc<str>>,
}

/// The names of the tools that a request declares: functions, custom tools, and the `functions` of 2023.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid_core::{Options, declared_tools};
///
/// let request = json!({ "tools": [{ "type": "function", "function": { "name": "web_search" } }] });
/// let options = Options { tools: declared_tools(&request), ..Options::default() };
/// assert_eq!(&*options.tools[0], "web_search");
/// ```
#[must_use]
pub fn declared_tools(request: &Value) -> Vec<Arc<str>> {
    let list = |key| {
        request
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let of_tool = |tool: &Value| {
        let kinds = ["/function/name", "/custom/name"];
        kinds
            .iter()
            .find_map(|at| tool.pointer(at)?.as_str().map(Arc::from))
    };
    let tools = list("tools").filter_map(of_tool);
    let functions =
        list("functions").filter_map(|function| function.get("name")?.as_str().map(Arc::from));
    tools.chain(functions).collect()
}
