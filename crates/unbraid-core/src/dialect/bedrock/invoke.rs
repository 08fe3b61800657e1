//! The chunks of `InvokeModelWithResponseStream`: each model's own format, as base64 in JSON (B10, B13 to B15, B18).

use std::sync::Arc;

use base64::Engine;

use super::{Bedrock, CHOICE};
use crate::{
    BodyFormat, Fragment, ToolCallUpdate, Update,
    chunk::{Chunk, some_text},
    config::default_reasoning_keys,
    dialect::{
        Dialect,
        anthropic::Anthropic,
        element, identify, is_text_chunk,
        object::Object,
        reader::{
            DialectReader, Lane, Output, WireEvent, arguments_of, entries, fragment, raw,
            reason_of, text,
        },
    },
    limits::{MAX_CHOICES, MAX_ENTRIES, MAX_JSON_DEPTH},
    node::{self, Node},
};

/// The state of a model's own format.
#[derive(Default)]
pub(super) struct Invoked {
    anthropic: Option<Anthropic>,
    /// The choices that have started and not finished.
    open: Vec<u32>,
    reasoning_keys: Vec<Arc<str>>,
    has_usage: bool,
    /// The choices whose calls have come. A later event may repeat them.
    with_calls: Vec<u32>,
    /// Whether a value was read: text after it is a damaged chunk, and not the answer of an agent, and no later value is a whole
    /// answer.
    has_chunk: bool,
    /// Whether a chunk with `choices`, or one with the fields of a model family, was read.
    has_choices: bool,
    has_fields: bool,
}

/// The usage that Bedrock adds to the last chunk.
const METRICS: &str = "amazon-bedrock-invocationMetrics";

impl Bedrock {
    /// Reads the bytes of a chunk, which are base64.
    pub(super) fn chunk(&mut self, bytes: &str, output: &mut Output<'_>) {
        let decoded = base64::engine::general_purpose::STANDARD.decode(bytes);
        let text = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let node = text
            .as_deref()
            .and_then(|text| node::read(text, MAX_JSON_DEPTH).ok());
        let Some(node) = node.filter(|node| node.as_object().is_some()) else {
            if self.invoked.has_chunk {
                return output.warn("X13", "a chunk that is not JSON was skipped");
            }
            // Agents send plain text in chunks (B19).
            output.stream().format = Some(BodyFormat::BedrockAgents);
            return;
        };
        self.invoked.has_chunk = true;
        let mut inner = Output::default();
        self.inner_value(&node, &mut inner);
        output.absorb(inner);
    }

    /// Reads a chunk that a gateway has decoded, of a model whose chunks say nothing about Bedrock.
    pub(super) fn decoded<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        self.invoked.has_chunk = true;
        match is_of_family(node) {
            true => self.invoked.decoded(node, output),
            false => self.inner_value(node, output),
        }
    }

    fn inner_value<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        let event = WireEvent { name: None, node };
        if self.is_error(&event) {
            self.invoked.finish(false, output);
            output.stream().error = Some(raw(node));
            return;
        }
        let has_metadata = node.get("metadata").is_some();
        match identify(&event).or_else(|| has_metadata.then_some(Dialect::Bedrock)) {
            Some(Dialect::Anthropic) => self.invoked.anthropic_event(&event, output),
            Some(Dialect::Bedrock) if !is_of_model(node) => {
                for (name, payload) in node.as_object().unwrap_or_default() {
                    self.event(name, payload, output);
                    self.invoked.has_usage |= name == "metadata" && payload.get("usage").is_some();
                }
                // The last chunk follows the end of the choice.
                let is_open = self.has_started && !has_metadata;
                guardrail(node, is_open.then_some(CHOICE), output);
                self.invoked.metrics(node, output);
            }
            Some(Dialect::Chat) => self.invoked.choices(node, output),
            // Events of a new type are kept as those outside of chunks are.
            _ if self.invoked.anthropic.is_some() => self.invoked.anthropic_event(&event, output),
            _ => self.invoked.model(node, output),
        }
    }
}

impl Invoked {
    /// Whether a value is a chunk that a gateway has decoded, although it says nothing about Bedrock. Only a caller who names the
    /// dialect begins a stream with one (D05); after a value of another kind it is one of another format (D06).
    pub(super) fn is_decoded(&self, event: &WireEvent<'_, '_>) -> bool {
        let is_first = !self.has_chunk;
        match identify(event) {
            Some(Dialect::Anthropic) => is_first || self.anthropic.is_some(),
            Some(Dialect::Chat) => is_first || self.has_choices,
            _ if self.anthropic.is_some() => true,
            _ => (is_first || self.has_fields) && is_of_family(event.node),
        }
    }

    pub(super) fn keep_alive(&mut self, output: &mut Output<'_>) {
        if let Some(anthropic) = &mut self.anthropic {
            anthropic.keep_alive(output);
        }
    }

    pub(super) fn flush(&mut self, choice: u32, output: &mut Output<'_>) {
        if let Some(anthropic) = &mut self.anthropic {
            anthropic.flush(choice, output);
        }
    }

    pub(super) fn finish(&mut self, is_complete: bool, output: &mut Output<'_>) {
        if let Some(anthropic) = &mut self.anthropic {
            anthropic.finish(is_complete, output);
        }
    }

    fn anthropic_event<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) {
        let reader = self.anthropic.get_or_insert_default();
        match event.kind().as_deref() {
            // They are read as the other fields of these are.
            Some("message_delta" | "message") => drop(reader.read(event, output)),
            // Before the end of the choice and of the stream, which this event brings.
            Some("message_stop") => {
                guardrail(event.node, reader.open_choice(), output);
                reader.read(event, output);
            }
            _ => {
                reader.read(event, output);
                guardrail(event.node, reader.open_choice(), output);
            }
        }
    }

    /// Reads a chunk with `choices` (AI21, gpt-oss, DeepSeek).
    fn choices<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        self.has_choices = true;
        if self.reasoning_keys.is_empty() {
            self.reasoning_keys = default_reasoning_keys().to_vec();
        }
        let mut chunk = Chunk::default();
        let is_text = is_text_chunk(node);
        for entry in entries(node.get("choices")).iter().take(MAX_ENTRIES) {
            let mut element = element(entry, 0, &self.reasoning_keys, is_text);
            if let Some(element) = &mut element {
                stop_reason(entry, &mut element.update);
            }
            chunk.elements.extend(element);
        }
        chunk.assign_indices(0, &mut false);
        for element in std::mem::take(&mut chunk.elements) {
            let update = element.into_update();
            let choice = update.choice.map_or(0, |choice| choice.0);
            let next = output.choice(choice);
            *next = update;
            next.is_chunk = true;
            next.warnings.clear(); // the index of the only choice is often missing here
        }
        let update = output.first();
        update.id = text(node, "id");
        update.model = text(node, "model");
        self.has_usage |= node.get("usage").is_some_and(Node::is_set);
        output.usage(node.get("usage"));
        guardrail(node, output.choice_index(), output);
        self.metrics(node, output);
    }

    /// Reads a value that is not in a chunk: the answer of a request without streaming, or what a gateway has decoded. Only the
    /// first value may be a whole answer, which has its reason.
    pub(super) fn decoded<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        self.has_chunk = true;
        self.has_fields = true;
        self.model(node, output);
    }

    /// Reads a chunk with the fields of one model family.
    pub(super) fn model<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        let has = |key: &str| node.get(key).is_some();
        if has("generation") {
            self.entry(0, node, ["generation", "stop_reason"], output);
        } else if has("outputText") {
            // The index of Titan's chunks is not that of a choice (B14).
            self.entry(0, node, ["outputText", "completionReason"], output);
        } else if has("completion") {
            self.piece(0, fragment(node, "completion"), output);
            // The sequence that stopped Claude 2.
            if let Some(stop) = node.get("stop") {
                output.choice_field(0, &"stop_sequence".into(), stop);
            }
            self.reason(0, node.get("stop_reason"), output);
        } else if has("outputs") {
            self.entries(node, "outputs", ["text", "stop_reason"], output);
        } else if has("results") {
            self.entries(node, "results", ["outputText", "completionReason"], output);
        } else if has("generations") {
            // Cohere's Command, which sends its whole answer in one chunk unless the request asks for a stream.
            self.entries(node, "generations", ["text", "finish_reason"], output);
        } else if COMMAND.iter().any(|key| has(key)) {
            self.generation(node, output);
        }
        // The chunk of the reason still belongs to its choice.
        let choice = output.choice_index();
        let choice = choice.or_else(|| self.open.first().copied());
        guardrail(node, choice, output);
        match node.get(METRICS) {
            Some(_) => self.metrics(node, output),
            None => counts(node, output),
        }
    }

    /// The texts and reasons of a list of choices.
    fn entries<'a>(
        &mut self,
        node: &Node<'a>,
        list: &str,
        keys: [&str; 2],
        output: &mut Output<'a>,
    ) {
        let choices = entries(node.get(list)).iter().take(MAX_CHOICES);
        for (index, entry) in (0..).zip(choices) {
            self.entry(index, entry, keys, output);
        }
    }

    /// The text and the reason of a choice.
    fn entry<'a>(
        &mut self,
        index: u32,
        node: &Node<'a>,
        [text, reason]: [&str; 2],
        output: &mut Output<'a>,
    ) {
        self.piece(index, fragment(node, text), output);
        self.reason(index, node.get(reason), output);
    }

    /// Cohere's Command: the index is that of a generation, and an end without index is that of all of them (B13).
    fn generation<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        let index = node.get("index").and_then(Node::as_u64_lenient);
        let index = index.and_then(|index| u32::try_from(index).ok());
        let is_finished = node.get("is_finished").and_then(Node::as_bool) == Some(true);
        if !is_finished || index.is_some() {
            self.piece(index.unwrap_or_default(), fragment(node, "text"), output);
        }
        if node.get("tool_calls").is_some_and(Node::is_set) {
            self.tool_calls(index.unwrap_or_default(), node, output);
        }
        for citation in entries(node.get("citations")) {
            output.entry(index.unwrap_or_default(), "annotations", &raw(citation));
        }
        let reason = node.get("finish_reason");
        match index {
            Some(index) => self.reason(index, reason, output),
            None if is_finished => {
                for index in self.open.clone() {
                    self.reason(index, reason, output);
                }
            }
            None => self.reason(0, reason, output),
        }
    }

    /// The calls of Cohere's Command, which are whole.
    fn tool_calls<'a>(&mut self, index: u32, node: &Node<'a>, output: &mut Output<'a>) {
        if self.with_calls.contains(&index) || self.with_calls.len() >= MAX_CHOICES {
            return;
        }
        self.with_calls.push(index);
        self.piece(index, None, output);
        let calls = entries(node.get("tool_calls")).iter().take(MAX_ENTRIES);
        for (ordinal, call) in (0..).zip(calls) {
            let header = ToolCallUpdate {
                wire_index: Some(ordinal),
                name: fragment(call, "name"),
                without_id: true,
                ..ToolCallUpdate::default()
            };
            output.call(index, header);
            let arguments = arguments_of(call.get("parameters"));
            let arguments = arguments.unwrap_or_else(|| "{}".into());
            output.arguments(index, ordinal, Some(arguments));
        }
    }

    /// Continues the text of a choice, which the first piece opens.
    fn piece<'a>(&mut self, index: u32, piece: Option<Fragment<'a>>, output: &mut Output<'a>) {
        if !self.open.contains(&index) && self.open.len() < MAX_CHOICES {
            self.open.push(index);
            output.choice(index);
        }
        output.text(index, Lane::Content, some_text(piece));
    }

    fn reason<'a>(&mut self, index: u32, node: Option<&Node<'a>>, output: &mut Output<'a>) {
        if let Some(reason) = reason_of(node) {
            self.open.retain(|open| *open != index);
            output.finish_reason(index, reason);
        }
    }

    /// The metrics of the invocation are the usage of formats that have none.
    fn metrics<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        if let Some(metrics) = node.get(METRICS).filter(|_| !self.has_usage) {
            output.stream().usage = Some(raw(metrics));
        }
    }
}

/// The counts of tokens of Llama and Titan, which stand between the other fields. The metrics of the last chunk have them, too.
fn counts(node: &Node<'_>, output: &mut Output<'_>) {
    let mut usage = Object::default();
    for key in [
        "prompt_token_count",
        "generation_token_count",
        "inputTextTokenCount",
        "totalOutputTextTokenCount",
    ] {
        if let Some(count) = node.get(key).filter(|count| !count.is_null()) {
            usage.set(key, raw(count));
        }
    }
    if let [result] = entries(node.get("results"))
        && let Some(count) = result.get("tokenCount")
    {
        usage.set("tokenCount", raw(count));
    }
    if !usage.is_empty() {
        output.stream().usage = Some(usage.to_json().into());
    }
}

/// Whether a value has the fields of one of these models.
pub(super) fn is_of_model(node: &Node<'_>) -> bool {
    let has = |key: &str| node.get(key).is_some_and(|value| !value.is_null());
    let has_list = |key: &str| !entries(node.get(key)).is_empty();
    let has_text = |key: &str| node.get(key).and_then(Node::as_str).is_some();
    ["outputs", "results", "generations"]
        .into_iter()
        .any(has_list)
        || ["generation", "completion"].into_iter().any(has_text)
        || (has_text("text") && has("generation_id"))
}

/// Whether a value has the fields of one of these models, or of one whose fields are common words.
pub(super) fn is_of_family(node: &Node<'_>) -> bool {
    let has_text = |key: &str| node.get(key).and_then(Node::as_str).is_some();
    let is_finished = node.get("is_finished").and_then(Node::as_bool);
    is_of_model(node) || has_text("outputText") || is_finished.is_some()
}

/// The fields by which an event of Cohere's Command is recognized.
const COMMAND: [&str; 5] = [
    "text",
    "is_finished",
    "finish_reason",
    "tool_calls",
    "citations",
];

/// The reason of DeepSeek's choices, which have it under another name (B10). In chats that name is a field beside the reason.
fn stop_reason<'a>(entry: &Node<'a>, update: &mut Update<'a>) {
    const KEY: &str = "stop_reason";
    if update.finish_reason.is_none()
        && let Some(reason) = reason_of(entry.get(KEY))
    {
        update.finish_reason = Some(reason);
        update.metadata.retain(|(key, _)| key != KEY);
    }
}

/// What a guardrail did, which is beside the model's own fields (B18): fields of a choice, or of the stream once the choice has
/// ended.
fn guardrail<'a>(node: &Node<'a>, choice: Option<u32>, output: &mut Output<'a>) {
    let fields = node.as_object().unwrap_or_default().iter();
    let fields = fields.filter(|(key, value)| {
        key.starts_with("amazon-bedrock-") && key != METRICS && !value.is_null()
    });
    for (key, value) in fields {
        // In the update of the reason, which they precede there.
        let update = match choice {
            Some(choice) => output.latest_of_choice(choice),
            None => output.stream(),
        };
        update.metadata.push((key.clone(), raw(value)));
    }
}

#[cfg(test)]
mod tests;
