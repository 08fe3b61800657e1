//! `streamGenerateContent` of Gemini: candidates of parts. Each chunk has what is new of each candidate.

mod call;
mod citations;
mod delta;
mod partial_args;
mod path;

use call::StreamedCall;
use citations::Citations;

use super::{
    continuation::{Continuation, Place},
    index,
    object::Object,
    reader::{
        DialectReader, Lane, Output, WireEvent, entries, is_cut, other_fields, raw, reason_of,
        text, text_of_part,
    },
    time::unix_seconds,
};
use crate::{
    chunk::CONTENT_PARTS,
    limits::{MAX_ENTRIES, MAX_EVENT_BYTES},
    node::{Node, Value},
};

/// The field of the log probabilities.
const LOGPROBS: &str = "logprobsResult";

/// The candidates of one answer.
#[derive(Default)]
pub(crate) struct Gemini {
    candidates: Vec<Candidate>,
    /// Whether the end of the body cut another value.
    is_cut: bool,
    /// Whether a key in snake_case was reported.
    has_snake_case: bool,
}

/// One candidate, which is a choice.
#[derive(Default)]
struct Candidate {
    index: u32,
    /// The calls so far, which is the ordinal of the next one.
    calls: i64,
    /// The calls whose arguments are streamed.
    streamed: Vec<StreamedCall>,
    /// The last reason. It does not mark the end, so it is reported when the body ends (G06).
    reason: Option<String>,
    /// Whether content followed a reason, so that a reason says nothing about the end.
    continues: bool,
    /// The last metadata of its sources, which grows from chunk to chunk (G17).
    grounding: Option<String>,
    citations: Option<Citations>,
    /// The log probabilities of the chunks so far: each chunk has those of its own tokens (M06).
    logprobs: Option<Object>,
}

impl DialectReader for Gemini {
    fn read<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) -> bool {
        let Some(body) = body(event.node) else {
            return false;
        };
        let candidates = entries(body.get("candidates"));
        self.warn_of_snake_case(body, candidates, output);
        let has_index = |node: &Node<'_>| node.get("index").is_some_and(|node| !node.is_null());
        let have_index = candidates.iter().any(has_index);
        for (position, candidate) in (0..).zip(candidates) {
            let default = if have_index { 0 } else { position };
            match index(candidate) {
                Some(own) => self.candidate(own.unwrap_or(default), candidate, output),
                None => output.warn("E11", "a choice without a usable index was skipped"),
            }
        }
        output.usage(body.get("usageMetadata"));
        if let Some(feedback) = body.get("promptFeedback").filter(|node| node.is_set()) {
            let is_set = |key: &str| feedback.get(key).is_some_and(Node::is_set);
            let is_blocked = is_set("blockReason") || is_set("blockReasonMessage");
            if is_blocked && candidates.is_empty() {
                self.finish(false, output);
                output.stream().error = Some(raw(body)); // G10
            } else {
                let field = ("promptFeedback".into(), raw(feedback));
                output.stream().metadata.push(field);
            }
        }
        other_fields_of(event.node, body, output);
        let update = output.first();
        update.id = text(body, "responseId");
        update.model = text(body, "modelVersion");
        let created = text(body, "createTime");
        update.created = created.and_then(|time| unix_seconds(&time));
        true
    }

    fn continuation<'n, 'a>(&self, event: &WireEvent<'n, 'a>) -> Option<Continuation<'n, 'a>> {
        delta::continuation(body(event.node)?)
    }

    fn continues(&mut self, place: Place, choice: u32, text: &str) -> bool {
        place == Place::Candidate && self.continues_candidate(choice, text)
    }

    fn cut(&mut self) {
        self.is_cut = true;
        // The value was of a candidate without a reason, if there is one. Otherwise it followed the reasons.
        if self.candidates.iter().all(|known| known.reason.is_some()) {
            for candidate in &mut self.candidates {
                candidate.continues = true;
            }
        }
    }

    fn flush(&mut self, choice: u32, output: &mut Output<'_>) {
        let mut candidates = self.candidates.iter_mut();
        if let Some(candidate) = candidates.find(|known| known.index == choice) {
            // Not the reason: at the end of the body it says something about the others, too.
            candidate.report_held(output);
        }
    }

    fn finish(&mut self, is_complete: bool, output: &mut Output<'_>) {
        let is_complete = is_complete && !self.is_cut;
        for candidate in &mut self.candidates {
            candidate.close(is_complete, output);
        }
    }
}

impl Gemini {
    fn held_bytes(&self) -> usize {
        self.candidates.iter().map(Candidate::held_bytes).sum()
    }

    /// Warns, once, of a proxy that serializes the objects of a library: its fields are unknown ones (G20).
    fn warn_of_snake_case(
        &mut self,
        body: &Node<'_>,
        candidates: &[Node<'_>],
        output: &mut Output<'_>,
    ) {
        let has = |node: &Node<'_>, key: &str| node.get(key).is_some_and(Node::is_set);
        let has_only = |node: &Node<'_>, key: &str, own: &str| has(node, key) && !has(node, own);
        let mut candidates = candidates.iter();
        let is_snake_case = has_only(body, "usage_metadata", "usageMetadata")
            || candidates.any(|node| has_only(node, "finish_reason", "finishReason"));
        if is_snake_case && !std::mem::replace(&mut self.has_snake_case, true) {
            output.warn("G20", "fields with names in snake_case were not read");
        }
    }

    fn candidate<'a>(&mut self, index: u32, node: &Node<'a>, output: &mut Output<'a>) {
        let known = self
            .candidates
            .iter()
            .position(|known| known.index == index);
        let at = match known {
            Some(at) => at,
            None if self.candidates.len() >= MAX_ENTRIES => {
                return output.warn("E11", "a choice beyond the limit was refused");
            }
            None => {
                self.candidates.push(Candidate {
                    index,
                    ..Candidate::default()
                });
                // Gemini calls the assistant `model`.
                output.choice(index).role = Some("assistant".into());
                self.candidates.len() - 1
            }
        };
        let Some(candidate) = self.candidates.get_mut(at) else {
            return;
        };
        let content = node.get("content");
        // Some gateways write the text in place of its only part.
        let only = content.and_then(|content| content.get("parts").unwrap_or(content).fragment());
        output.text(index, Lane::Content, only);
        for part in entries(content.and_then(|content| content.get("parts"))) {
            candidate.part(part, output);
        }
        candidate.fields(node, output);
        if self.held_bytes() > MAX_EVENT_BYTES
            && let Some(candidate) = self.candidates.get_mut(at)
        {
            (candidate.grounding, candidate.citations) = (None, None);
            candidate.logprobs = None;
            output.warn("D16", "metadata that is too long was not kept");
        }
    }
}

/// Keeps the fields beside the candidates that are not read, and those around the chunk.
fn other_fields_of<'a>(node: &Node<'a>, body: &Node<'a>, output: &mut Output<'a>) {
    const KNOWN: [&str; 6] = [
        "candidates",
        "usageMetadata",
        "promptFeedback",
        "modelVersion",
        "responseId",
        "createTime",
    ];
    let mut fields = other_fields(body, &KNOWN);
    if !std::ptr::eq(node, body) {
        fields.append(&mut other_fields(node, &["response"]));
    }
    output.stream_fields(fields);
}

/// The chunk in a value; some endpoints wrap each one (G14).
fn body<'n, 'a>(node: &'n Node<'a>) -> Option<&'n Node<'a>> {
    const KEYS: [&str; 3] = ["candidates", "promptFeedback", "usageMetadata"];
    let is_body = |node: &&Node<'_>| KEYS.iter().any(|key| node.get(key).is_some());
    // Typed gateways write null for the fields that are in the inner chunk.
    let has_values = |node: &&Node<'_>| {
        let mut fields = KEYS.iter().filter_map(|key| node.get(key));
        fields.any(|field| !field.is_null())
    };
    let wrapped = || node.get("response").filter(is_body);
    let outer = Some(node);
    outer
        .filter(has_values)
        .or_else(wrapped)
        .or_else(|| outer.filter(is_body))
}

impl Candidate {
    /// How many bytes of metadata wait for the end of the candidate.
    fn held_bytes(&self) -> usize {
        let grounding = self.grounding.as_ref().map_or(0, String::len);
        let citations = self.citations.as_ref().map_or(0, Citations::len);
        grounding + citations + self.logprobs.as_ref().map_or(0, Object::bytes)
    }

    /// Nothing follows: reports what was held back.
    fn close(&mut self, is_complete: bool, output: &mut Output<'_>) {
        let reason = self.reason.take();
        // Where content followed a reason, it says nothing about an answer that was cut.
        let reason = reason.filter(|_| is_complete || !self.continues);
        let is_whole = reason.as_deref().is_some_and(|reason| !is_cut(reason));
        for call in self.streamed.drain(..) {
            call.end(self.index, is_whole, output);
        }
        self.report_held(output);
        if let Some(reason) = reason {
            output.finish_reason(self.index, reason);
        }
    }

    fn report_held(&mut self, output: &mut Output<'_>) {
        let citations = self.citations.take().map(Citations::into_json);
        let annotations = [citations, self.grounding.take()];
        for annotation in annotations.into_iter().flatten() {
            output.entry(self.index, "annotations", &annotation);
        }
        if let Some(logprobs) = self.logprobs.take() {
            let field = (LOGPROBS.into(), logprobs.to_json().into());
            output.choice(self.index).metadata.push(field);
        }
    }

    fn add_logprobs(&mut self, node: &Node<'_>) {
        let logprobs = self.logprobs.get_or_insert_default();
        for (key, value) in node.as_object().unwrap_or_default() {
            match value.as_array() {
                Some(entries) => entries
                    .iter()
                    .for_each(|entry| logprobs.push(key, raw(entry))),
                None => logprobs.set(key, raw(value)),
            }
        }
    }

    fn part<'a>(&mut self, part: &Node<'a>, output: &mut Output<'a>) {
        // Typed gateways write an empty one into each part.
        let has_signature = part.get("thoughtSignature").is_some_and(Node::is_set);
        let text_node = part.as_str().or_else(|| part.get("text")?.as_str());
        let has_text = text_node.is_some_and(|text| !text.is_empty());
        // An empty text stands for an absent one beside other content.
        let is_text = has_text || (text_node.is_some() && !has_content(part));
        // Content after a reason shows that the reason was not the end.
        self.continues |= self.reason.is_some() && (has_text || !is_text);
        // An empty call ends one whose arguments are streamed. Beside other content it stands for an absent one.
        let call = part.get("functionCall").filter(|call| !call.is_null());
        let is_thought = part.get("thought").and_then(Node::as_bool) == Some(true);
        let lane = if is_thought {
            Lane::Reasoning
        } else {
            Lane::Content
        };
        let is_beside = has_text || has_content(part);
        if let Some(call) = call.filter(|call| call.is_set() || !is_beside) {
            // A part has one of them; some gateways write both.
            output.text(self.index, lane, text_of_part(part));
            return self.function_call(part, call, output);
        }
        let object = |key: &str| part.get(key).filter(|data| data.as_object().is_some());
        if is_text {
            output.text(self.index, lane, text_of_part(part));
            if !has_signature && has_content(part) {
                self.other_part_fields(part, output);
            }
        } else if let Some(data) = object("inlineData").or_else(|| object("fileData")) {
            let kind = text(data, "mimeType");
            let is_image = kind.is_some_and(|kind| kind.starts_with("image/"));
            let list = if is_image { "images" } else { CONTENT_PARTS };
            return output.entry(self.index, list, &raw(part));
        } else if has_content(part) || !has_signature {
            // With its signature, if it has one: a part is sent back as it came.
            return output.entry(self.index, CONTENT_PARTS, &raw(part));
        }
        if has_signature {
            output.entry(self.index, "reasoning_details", &raw(part));
        }
    }

    /// The fields beside a text, which has an entry of its own if it has a signature.
    fn other_part_fields<'a>(&self, part: &Node<'a>, output: &mut Output<'a>) {
        let mut object = Object::default();
        for (key, value) in part.as_object().unwrap_or_default() {
            if value.is_set() && !matches!(&**key, "text" | "thought") {
                object.set(key, raw(value));
            }
        }
        output.entry(self.index, CONTENT_PARTS, &object.to_json());
    }

    /// The fields beside the content.
    fn fields<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        for (key, value) in node.as_object().unwrap_or_default() {
            match &**key {
                "index" | "content" => {}
                // Not read (G20), and not kept either: as an unknown field it would seem to be the reason of the choice.
                "finish_reason" => {}
                "finishReason" => {
                    let reason = reason_of(Some(value));
                    let reason = reason.filter(|reason| reason != "FINISH_REASON_UNSPECIFIED");
                    self.reason = reason.map(Into::into).or_else(|| self.reason.take());
                }
                "groundingMetadata" if has_fields(value) => {
                    self.grounding = Some(raw(value).into_owned());
                }
                "citationMetadata" if has_fields(value) => {
                    self.citations.get_or_insert_default().add(value);
                }
                LOGPROBS if has_fields(value) => self.add_logprobs(value),
                "groundingMetadata" | "citationMetadata" => {}
                _ => output.choice_field(self.index, key, value),
            }
        }
    }
}

/// Whether a part has more than a signature.
fn has_content(part: &Node<'_>) -> bool {
    let fields = part.as_object().unwrap_or_default();
    fields.iter().any(|(key, value)| {
        !matches!(&**key, "thoughtSignature" | "thought" | "text") && value.is_set()
    })
}

/// Whether a value is an object with fields.
fn has_fields(node: &Node<'_>) -> bool {
    matches!(&node.value, Value::Object(fields) if !fields.is_empty())
}
