//! How a stream is read: `Config`, and the types of its fields.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::{Dialect, Limits, Redact};

/// When a choice ends after its finish reason arrived.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, FinishPolicy, Config};
///
/// let ended = |finish_policy| {
///     let mut demux = Demux::new(Config::default().with_finish_policy(finish_policy));
///     demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
///     demux.choice(ChoiceIndex(0)).unwrap().end().is_some()
/// };
/// assert!(ended(FinishPolicy::AtFinish));
/// assert!(!ended(FinishPolicy::NextEvent), "the next event, or the close of the stream, ends it");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishPolicy {
    /// At the first event without a delta for the choice. Some servers send several calls, each with a finish reason.
    #[default]
    NextEvent,
    /// At the end of the event with the finish reason. An error in the same event still ends the choice (X4).
    AtFinish,
    /// When the stream closes.
    AtStreamEnd,
}

/// Whether text between `<think>` and `</think>` in the content is delivered as reasoning (C18, R7).
///
/// Servers without a reasoning parser send reasoning like this: vLLM and llama.cpp by default, with the distilled DeepSeek
/// models among others. The tags are recognized anywhere in the content of a choice, even if deltas cut them, but only in
/// this spelling. The tags and the line breaks directly after them are dropped. All other text is delivered unchanged,
/// including line breaks before `</think>`. Text that may be the start of a tag is held back until the next delta decides.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config, ThinkTags};
///
/// let answer = |think_tags, text: &str| {
///     let mut demux = Demux::new(Config::default().with_think_tags(think_tags));
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
    /// Tags are ordinary text.
    #[default]
    Off,
    /// Text after `<think>` is reasoning until `</think>`. A `</think>` without a `<think>` before it stays text, with a
    /// warning.
    Split,
    /// As [`Split`](Self::Split), but the answer starts as reasoning: the prompt's template contains `<think>`, so the
    /// server sends only the closing tag (DeepSeek-R1). An opening tag at the start is dropped. If no closing tag
    /// arrives, all text is reasoning, with a warning.
    SplitOpen,
}

/// How a stream is read. The default suits every known server.
///
/// # Examples
///
/// ```
/// use unbraid_core::Config;
///
/// let config = Config::default().with_expect_choices(1);
/// # assert!(!config.strict);
/// ```
///
/// The names of the tools decide how a name that arrives in pieces is joined:
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let name = |tools: &[&str]| {
///     let mut demux = Demux::new(Config::default().with_tools(tools.iter().copied()));
///     for piece in ["search", "web_search"] {
///         demux.feed(format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{piece}\"}}}}]}}}}]}}\n\n").as_bytes());
///     }
///     demux.choice(ChoiceIndex(0)).unwrap().message().tool_calls[0].name.to_string()
/// };
/// assert_eq!(name(&[]), "searchweb_search");
/// assert_eq!(name(&["web_search"]), "web_search");
/// ```
///
/// A server that sends reasoning in a field with a name of its own:
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let config = Config::default().with_reasoning_keys(["deliberation"]);
/// let mut demux = Demux::new(config);
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"deliberation\":\"Hm.\"}}]}\n\n");
/// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().message().reasoning, "Hm.");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Ends the stream at the first line that is neither data, a comment nor blank (R04), at the first payload that is
    /// not JSON (R07), and at the first delta that cannot be merged with the earlier ones: a field changes its type
    /// (R11), or a field that is not text arrives again (R14). Null counts as absent. Calls are merged by their index.
    pub strict: bool,
    /// How many choices were requested. With 1, every index is read as 0 (E12), with a warning if that mixed several
    /// answers (E13). With any other number, more choices only cause a warning (E29). Fewer choices at the end of the
    /// stream cause a warning, too (E30).
    pub expect_choices: Option<u32>,
    /// How many choices each prompt has, if the request contains a list of prompts. Then a prompt that is reported with
    /// each of its choices is counted once, and every prompt of the list is counted (E15). See
    /// [`Prompt::choices_per_prompt`](crate::Prompt::choices_per_prompt).
    pub choices_per_prompt: Option<u32>,
    /// The dialect of the stream. By default the first value that identifies one decides (D01 to D05). With a dialect that
    /// has no `choices`, [`strict`](Self::strict) applies to the JSON only and not to lines.
    pub dialect: Option<Dialect>,
    /// When a choice ends after its finish reason arrived.
    pub finish_policy: FinishPolicy,
    /// The bounds of the stream.
    pub limits: Limits,
    /// Names of the tools that the request declared, if they are known. They decide whether a further piece of a call's
    /// name is appended or replaces it. A name that is not among them is delivered unchanged.
    pub tools: Vec<Arc<str>>,
    /// Whether `<think>…</think>` in the content is reasoning.
    pub think_tags: ThinkTags,
    /// Whether usage after `[DONE]` counts (U13). Every choice still ends at `[DONE]`, and only usage is read after it. The
    /// stream then closes when its source ends, after [`MAX_BYTES_AFTER_DONE`](crate::limits::MAX_BYTES_AFTER_DONE) further
    /// bytes, or when [`Demux::handle_idle`](crate::Demux::handle_idle) is called.
    pub usage_after_done: bool,
    /// The names of the delta's fields that contain reasoning, by priority: the first field with text is the delta's
    /// reasoning (R5). By default `reasoning_content`, `reasoning`, `reasoning_text`, `thinking`, `thinking_content` and
    /// `thought`. A name that has a meaning of its own, such as `content`, keeps it.
    pub reasoning_keys: Vec<Arc<str>>,
    /// The replacement of secrets in the errors that the server reports. None by default; a client of `unbraid-http` sets it
    /// for its keys.
    pub redact: Redact,
}

impl Config {
    with_methods! {
        with_strict(bool): strict = |strict| strict;
        with_expect_choices(impl Into<Option<u32>>): expect_choices = |n| n.into();
        with_choices_per_prompt(impl Into<Option<u32>>): choices_per_prompt = |n| n.into();
        with_dialect(impl Into<Option<Dialect>>): dialect = |dialect| dialect.into();
        with_finish_policy(FinishPolicy): finish_policy = |policy| policy;
        with_limits(Limits): limits = |limits| limits;
        with_tools(impl IntoIterator<Item = impl Into<Arc<str>>>): tools = |names| arcs(names);
        with_think_tags(ThinkTags): think_tags = |think_tags| think_tags;
        with_usage_after_done(bool): usage_after_done = |keep_reading| keep_reading;
        with_reasoning_keys(impl IntoIterator<Item = impl Into<Arc<str>>>): reasoning_keys = |names| arcs(names);
        with_redact(Redact): redact = |redact| redact;
    }
}

fn arcs(names: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Vec<Arc<str>> {
    names.into_iter().map(Into::into).collect()
}

impl Default for Config {
    fn default() -> Self {
        Self {
            strict: false,
            expect_choices: None,
            dialect: None,
            finish_policy: FinishPolicy::default(),
            limits: Limits::default(),
            tools: Vec::new(),
            think_tags: ThinkTags::default(),
            choices_per_prompt: None,
            usage_after_done: false,
            reasoning_keys: default_reasoning_keys().to_vec(),
            redact: Redact::default(),
        }
    }
}

/// The names under which real servers send reasoning, by priority (R5).
///
/// They are allocated once, because each stream has them.
pub(crate) fn default_reasoning_keys() -> Arc<[Arc<str>]> {
    static NAMES: LazyLock<Arc<[Arc<str>]>> = LazyLock::new(|| {
        let names = [
            "reasoning_content",
            "reasoning",
            "reasoning_text",
            "thinking",
            "thinking_content",
            "thought",
        ];
        Arc::new(names.map(Arc::from))
    });
    Arc::clone(&NAMES)
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
/// let config = Config::default().with_tools(tool_names(&request));
/// assert_eq!(&*config.tools[0], "web_search");
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
    let tool_name = |tool: &Value| {
        let paths = ["/function/name", "/custom/name"];
        paths
            .iter()
            .find_map(|path| tool.pointer(path)?.as_str().map(Arc::from))
    };
    let tools = list("tools").filter_map(tool_name);
    let functions =
        list("functions").filter_map(|function| function.get("name")?.as_str().map(Arc::from));
    tools.chain(functions).collect()
}
