//! The last event: the whole response, of which only what is missing is taken (P10, P11, P15).

use super::{
    Arrived, CHOICE, Responses,
    citations::citations_of,
    is_image,
    item::{Item, ItemKind},
    key::Key,
    origins::ItemOrigin,
    whole::{ItemType, item_type},
};
use crate::{
    dialect::{
        fault::reported,
        reader::{Lane, Output, arguments_of, entries, raw, reason_of, text},
    },
    node::Node,
};

impl Responses {
    /// Reads a response that has ended. `kind` is the status if the response does not have it.
    pub(super) fn end<'a>(&mut self, response: &Node<'a>, kind: &str, output: &mut Output<'a>) {
        let arrived = Arrived {
            calls: !self.calls.is_empty(),
            ..self.arrived
        };
        self.flush_calls(None, output);
        let items = entries(response.get("output"));
        for item in items {
            self.note_known_call(item);
        }
        let origins = self.origins(items);
        // Nothing later replaces an entry, so those that the output has take their places in it.
        self.held.flush_all_but(&origins, output);
        for ((position, item), origin) in (0..).zip(items).zip(origins) {
            self.last_item(arrived, position, item, origin, output);
        }
        self.started.flush(output);
        response_fields(response, output);
        output.usage(response.get("usage"));
        if !self.has_model {
            output.first().model = text(response, "model");
        }
        let status = text(response, "status").unwrap_or_else(|| kind.to_owned().into());
        if let Some(error) = failure(response, &status) {
            output.stream().error = Some(error);
            return;
        }
        let details = response.get("incomplete_details");
        if let Some(details) = details {
            output.choice_field(CHOICE, &"incomplete_details".into(), details);
        }
        let reason = reason_of(details.and_then(|details| details.get("reason")));
        let is_over = !matches!(&*status, "queued" | "in_progress");
        if let Some(reason) = reason.or_else(|| is_over.then_some(status)) {
            self.finish_calls(&reason, output);
            output.finish_reason(CHOICE, reason);
        }
        output.done();
    }

    /// Takes what is missing entirely: a lane in which nothing came, a call with an unknown id, an item of a list that has not
    /// ended. The ids and positions of the final output may differ from those of the stream (P10).
    fn last_item<'a>(
        &mut self,
        arrived: Arrived,
        position: i64,
        item: &Node<'a>,
        origin: ItemOrigin,
        output: &mut Output<'a>,
    ) {
        /// Positions of the final output must not be those of streamed items.
        const FINAL: i64 = i64::MIN;
        let key = Key::of_position(FINAL + position);
        let later = (!matches!(item_type(item), ItemType::Message)).then_some(item);
        self.held.release(origin, later, output);
        match item_type(item) {
            ItemType::Message => {
                let is_missing = |lane| match lane {
                    Lane::Refusal => !arrived.refusal,
                    Lane::Content | Lane::Reasoning => !arrived.content,
                };
                self.message_texts(&key, item, &is_missing, output);
                self.last_citations(arrived, item, origin, output);
                if !arrived.logprobs {
                    self.message_logprobs(&key, item, output);
                }
                if !arrived.phases {
                    self.message_added(&key, item, output);
                }
            }
            ItemType::Reasoning => {
                if !arrived.reasoning {
                    self.reasoning_texts(&key, item, output);
                }
                if let Some(ordinal) = self.missing_entry(origin, arrived.details) {
                    self.reasoning_details(ordinal, item, output);
                }
            }
            ItemType::Call { is_custom } => match self.streamed_call(item) {
                Some(at) => self.fill_call(at, item, is_custom, output),
                None if item.get("call_id").is_some() || !arrived.calls => {
                    self.whole_item(&key, item, output);
                    // It was not streamed, so an equal call after it is another one.
                    if let Some(known) = self.items.last_mut() {
                        known.is_in_output = true;
                    }
                }
                None => {}
            },
            ItemType::Other => {
                let has_list = match is_image(item) {
                    true => arrived.images,
                    false => arrived.parts,
                };
                if let Some(ordinal) = self.missing_entry(origin, has_list) {
                    self.other_item(ordinal, item, output);
                }
            }
        }
    }

    /// The ordinal of an item that no list has yet; 0 if it was not streamed.
    fn missing_entry(&mut self, origin: ItemOrigin, has_list: bool) -> Option<u64> {
        let ItemOrigin::Streamed(ordinal) = origin else {
            return (origin == ItemOrigin::New || !has_list).then_some(0);
        };
        let mut items = self.items.iter_mut();
        let known = items.find(|known| known.ordinal() == ordinal)?;
        self.started.forget(ordinal);
        (!std::mem::replace(&mut known.is_kept, true)).then_some(ordinal)
    }

    /// The citations of a message that have not arrived (D13).
    fn last_citations<'a>(
        &mut self,
        arrived: Arrived,
        message: &Node<'a>,
        origin: ItemOrigin,
        output: &mut Output<'a>,
    ) {
        let whole = citations_of(message);
        let mut items = self.items.iter_mut();
        let known = items.find(|known| origin == ItemOrigin::Streamed(known.ordinal()));
        if let Some(known) = known {
            // Where the ids differ it may be another message.
            known.citations.complete(&whole, None, output);
        } else if origin == ItemOrigin::New || !arrived.annotations {
            for (_, citation) in whole {
                output.entry(CHOICE, "annotations", &raw(citation));
            }
        }
    }

    /// The calls are complete: those without arguments have none.
    fn finish_calls(&mut self, reason: &str, output: &mut Output<'_>) {
        for item in std::mem::take(&mut self.items) {
            if let ItemKind::Call(mut call) = item.kind
                && !item.is_custom
            {
                self.calls.close(CHOICE, &mut call, output);
            }
        }
        self.calls.finish(CHOICE, reason, output);
    }

    /// Notes that the final output has a call, if it has the id with which the call was streamed.
    fn note_known_call(&mut self, item: &Node<'_>) {
        if let Some(id) = text(item, "call_id")
            && let Some(known) = self.with_call_id(&id)
        {
            known.is_in_output = true;
        }
    }

    fn with_call_id(&mut self, id: &str) -> Option<&mut Item> {
        let mut items = self.items.iter_mut();
        items.find(|known| known.call_id.as_deref() == Some(id))
    }

    /// The streamed call that a call of the final output is. Its ids may be others there (P10; vLLM#47916): then it is one that
    /// is not in the output otherwise.
    fn streamed_call(&mut self, item: &Node<'_>) -> Option<usize> {
        let id = text(item, "call_id");
        let has_id = |known: &Item| known.call_id.as_deref() == id.as_deref();
        let is_empty =
            |known: &Item| matches!(&known.kind, ItemKind::Call(call) if call.arguments.is_empty());
        if id.is_none() {
            let is_open = |known: &Item| has_id(known) && is_empty(known);
            return self.items.iter().position(is_open);
        }
        if let Some(at) = self.items.iter().position(has_id) {
            return Some(at);
        }
        let (item_id, name) = (text(item, "id"), text(item, "name"));
        let whole = arguments_of(item.get("arguments").or_else(|| item.get("input")));
        let whole = whole.map(|whole| whole.text).unwrap_or_default();
        let at = self.items.iter().position(|known| {
            !known.is_in_output && known.may_be_call(item_id.as_deref(), name.as_deref(), &whole)
        })?;
        if let Some(known) = self.items.get_mut(at) {
            known.is_in_output = true;
        }
        Some(at)
    }

    /// Completes a streamed call of which no arguments, or no name or id arrived. Only the output says what a call is whose
    /// item was not streamed.
    fn fill_call<'a>(
        &mut self,
        at: usize,
        item: &Node<'a>,
        is_custom: bool,
        output: &mut Output<'a>,
    ) {
        let whole = arguments_of(item.get("arguments").or_else(|| item.get("input")));
        let Some(known) = self.items.get_mut(at) else {
            return;
        };
        known.describe_call(item, is_custom, output);
        if let ItemKind::Call(call) = &mut known.kind
            && call.arguments.is_empty()
        {
            call.append(CHOICE, whole, output);
        }
    }
}

/// Keeps the fields of the response that are neither read nor repeat the request: its tier, its metadata, what a gateway adds.
fn response_fields<'a>(response: &Node<'a>, output: &mut Output<'a>) {
    let fields = response.as_object().unwrap_or_default().iter();
    let is_own = |key: &str| !OF_RESPONSE.contains(&key) && !OF_REQUEST.contains(&key);
    let own = fields.filter(|(key, value)| value.has_content() && is_own(key));
    output.stream_fields(own.map(|(key, value)| (key.clone(), raw(value))));
}

/// The fields that are read. The joined text is also that of the output.
const OF_RESPONSE: [&str; 12] = [
    "id",
    "object",
    "created_at",
    "model",
    "status",
    "output",
    "output_text",
    "usage",
    "error",
    "incomplete_details",
    // Where an event has no response inside, its own fields are those of the response.
    "type",
    "sequence_number",
];

/// The fields in which a response repeats its request.
const OF_REQUEST: [&str; 26] = [
    "background",
    "context_management",
    "frequency_penalty",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "store",
    "stream",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// The error of a response that has failed.
fn failure<'a>(response: &Node<'a>, status: &str) -> Option<std::borrow::Cow<'a, str>> {
    match reported(response) {
        Some(error) => Some(raw(error)),
        None => (status == "failed").then(|| raw(response)),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Demux};

    #[test]
    fn p24_the_head_of_a_resumed_stream_is_in_its_last_event() {
        let mut demux = Demux::new(Config::default());
        demux.feed(b"data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hi\"}\n\n");
        demux.feed(b"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"created_at\":17,\"model\":\"m\",\"status\":\"completed\"}}\n\n");
        let metadata = demux.metadata();
        assert_eq!(metadata.id.as_deref(), Some("r"));
        assert_eq!(metadata.created, Some(17));
        assert_eq!(metadata.model.as_deref(), Some("m"));
        assert_eq!(demux.choices().count(), 1);
    }

    #[test]
    fn fields_of_the_response_are_kept_and_those_of_the_request_are_not() {
        let mut demux = Demux::new(Config::default());
        demux.feed(b"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"service_tier\":\"flex\",\"metadata\":{\"k\":\"v\"},\"previous_response_id\":\"q\",\"moderation\":null,\"conversation\":{},\"tool_usage\":{\"web_search\":{\"num_requests\":0}},\"temperature\":1.0,\"instructions\":\"x\",\"tools\":[{\"type\":\"x\"}],\"store\":true}}\n\n");
        let extra = &demux.metadata().extra;
        let extra: Vec<_> = extra.iter().map(|(key, raw)| (&**key, &**raw)).collect();
        let expected = [
            ("service_tier", "\"flex\""),
            ("metadata", "{\"k\":\"v\"}"),
            ("previous_response_id", "\"q\""),
        ];
        assert_eq!(extra, expected);
    }

    #[test]
    fn a_model_that_only_the_last_event_names_is_taken() {
        let model = |start: &str, end: &str| {
            let events = format!(
                "data: {{\"type\":\"response.created\",\"response\":{{\"id\":\"r\"{start}}}}}\n\n\
                 data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"r\",\"status\":\"completed\"{end}}}}}\n\n"
            );
            let mut demux = Demux::new(Config::default());
            demux.feed(events.as_bytes());
            demux.finish();
            demux.metadata().model.clone()
        };
        let (one, other) = (",\"model\":\"one\"", ",\"model\":\"other\"");
        assert_eq!(model("", other).as_deref(), Some("other"));
        assert_eq!(model(one, other).as_deref(), Some("one"));
        assert_eq!(model(one, "").as_deref(), Some("one"));
        assert_eq!(model("", ""), None);
    }
}
