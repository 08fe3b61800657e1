//! How a stream is read.

use std::sync::Arc;

use serde_json::Value;

use crate::Limits;

/// When a choice whose finish reason has come counts as ended.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, FinishPolicy, Config};
///
/// let ended = |finish_policy| {
///     let mut demux = Demux::new(Config { finish_policy, ..Config::default() });
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
    /// At the end of the event that brings it: an error in that event still is the choice's end (X4).
    AtFinish,
    /// When the stream closes.
    AtStreamEnd,
}

/// Whether reasoning inside the content between `<think>` and `</think>` is separated from it (C18, R7).
///
/// Servers without a reasoning parser send it so: vLLM and llama.cpp by default, and the distilled DeepSeek models behind
/// them. The tags are is_chunk anywhere in the content of a choice, also where deltas cut them, and in this spelling
/// only. The tags themselves, and line breaks right behind them, are dropped; all other text is delivered as it is, line
/// breaks before `</think>` included. Text that may begin a tag is held back until the next delta decides.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config, ThinkTags};
///
/// let answer = |think_tags, text: &str| {
///     let mut demux = Demux::new(Config { think_tags, ..Config::default() });
///     demux.feed(format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\ndata: [DONE]\n\n").as_bytes());
///     let message = demux.choice(ChoiceIndex(0)).unwrap().message();
///     (message.reasoning, message.content)
/// };
/// let both = ("Hm.".to_owned(), "Yes.".to_owned());
/// assert_eq!(answer(ThinkTags::Split, "<think>Hm.</think>Yes."), both);
/// assert_eq!(answer(ThinkTags::SplitOpen, "Hm.</think>Yes."), both);
/// assert_eq!(answer(ThinkTags::Off, "Hm.</think>Yes.").1, "Hm.</think>Yes.");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThinkTags {
    /// Tags are text like any other.
    #[default]
    Off,
    /// Text behind `<think>` is reasoning until `</think>`. A `</think>` without a `<think>` before it stays text, with a
    /// warning.
    Split,
    /// As [`Split`](Self::Split), but the answer begins inside: the prompt's template wrote `<think>`, so that the server
    /// sends the closing tag alone (DeepSeek-R1). An opening tag that comes first all the same is dropped. If no closing
    /// tag comes, all text is reasoning, with a warning.
    SplitOpen,
}

/// How a stream is read; the default suits every server that we know.
///
/// # Examples
///
/// ```
/// use unbraid_core::Config;
///
/// let options = Config { expect_choices: Some(1), ..Config::default() };
/// # assert!(!options.strict);
/// ```
///
/// The names of the tools settle what a name is that comes in pieces:
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let name = |tools: &[&str]| {
///     let mut demux = Demux::new(Config { tools: tools.iter().map(|&name| name.into()).collect(), ..Config::default() });
///     for piece in ["search", "web_search"] {
///         demux.feed(format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{piece}\"}}}}]}}}}]}}\n\n").as_bytes());
///     }
///     demux.choice(ChoiceIndex(0)).unwrap().message().tool_calls[0].name.to_string()
/// };
/// assert_eq!(name(&[]), "searchweb_search");
/// assert_eq!(name(&["web_search"]), "web_search");
/// ```
///
/// A server that sends its reasoning under a name of its own:
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let options = Config { reasoning_keys: vec!["deliberation".into()], ..Config::default() };
/// let mut demux = Demux::new(options);
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"deliberation\":\"Hm.\"}}]}\n\n");
/// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().message().reasoning, "Hm.");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Ends the stream at the first line that is neither data, a comment nor blank (R04), at the first payload that is
    /// not JSON (R07), and at the first delta that cannot be merged with those before it: a field changes its type (R11),
    /// or comes again and is not text (R14). Null counts as absent, and calls are merged by their index.
    pub strict: bool,
    /// How many choices were asked for. With 1 every index is read as 0 (E12), with a warning where that mixed several
    /// answers (E13); otherwise more only warn (E29). Fewer at the end of the stream warn, too (E30).
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
    /// Whether `<think>…</think>` in the content is reasoning.
    pub think_tags: ThinkTags,
    /// Whether usage that comes after `[DONE]` counts (U13). Every choice still ends at `[DONE]`, and nothing but usage is
    /// read after it. The stream then closes when its source ends, after
    /// [`MAX_BYTES_AFTER_DONE`](crate::limits::MAX_BYTES_AFTER_DONE) further bytes, or when [`Demux::handle_idle`](crate::Demux::handle_idle) is called.
    pub usage_after_done: bool,
    /// The names of a delta's fields that hold reasoning, in the order of their priority: the text under the first of
    /// them that is not empty is the delta's reasoning (R3, R5). By default `reasoning_content`, `reasoning`,
    /// `thinking`, `thinking_content` and `thought`. A name that has a meaning of its own, such as `content`, keeps it.
    pub reasoning_keys: Vec<Arc<str>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            strict: false,
            expect_choices: None,
            finish_policy: FinishPolicy::default(),
            limits: Limits::default(),
            tools: Vec::new(),
            think_tags: ThinkTags::default(),
            choices_per_prompt: None,
            usage_after_done: false,
            reasoning_keys: default_reasoning_keys(),
        }
    }
}

/// The names under which real servers send reasoning, the best first (R3, R5).
pub(crate) fn default_reasoning_keys() -> Vec<Arc<str>> {
    let names = [
        "reasoning_content",
        "reasoning",
        "thinking",
        "thinking_content",
        "thought",
    ];
    names.map(Arc::from).to_vec()
}

/// The names of the tools that a request declares: functions, custom tools, and the `functions` of 2023.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid_core::{Config, tool_names};
///
/// let request = json!({ "tools": [{ "type": "function", "function": { "name": "web_search" } }] });
/// let options = Config { tools: tool_names(&request), ..Config::default() };
/// assert_eq!(&*options.tools[0], "web_search");
/// ```
#[must_use]
pub fn tool_names(request: &Value) -> Vec<Arc<str>> {
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
