//! The last event: the whole response, of which only what is missing is taken (P10, P11, P15).

use super::{
    Arrived, CHOICE, Responses,
    item::{Item, ItemKind},
    key::Key,
    whole::{ItemType, item_type},
};
use crate::{
    dialect::reader::{Lane, Output, arguments_of, entries, raw, reason_of, text},
    node::Node,
};

impl Responses {
    /// Reads a response that has ended. `kind` is the status if the response does not have it.
    pub(super) fn end<'a>(&mut self, response: &Node<'a>, kind: &str, output: &mut Output<'a>) {
        let arrived = Arrived {
            calls: !self.calls.is_empty(),
            ..self.arrived
        };
        for item in entries(response.get("output")) {
            self.note_known_call(item);
        }
        for (position, item) in (0..).zip(entries(response.get("output"))) {
            self.last_item(arrived, position, item, output);
        }
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

    /// Takes what is missing entirely: a lane or list in which nothing came, a call with an unknown id. The ids and positions
    /// of the final output may differ from those of the stream (P10).
    fn last_item<'a>(
        &mut self,
        arrived: Arrived,
        position: i64,
        item: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        /// Positions of the final output must not be those of streamed items.
        const FINAL: i64 = i64::MIN;
        let key = Key::of_position(FINAL + position);
        match item_type(item) {
            ItemType::Message => {
                let is_missing = |lane| match lane {
                    Lane::Refusal => !arrived.refusal,
                    Lane::Content | Lane::Reasoning => !arrived.content,
                };
                self.message_texts(&key, item, &is_missing, output);
                if !arrived.annotations {
                    for part in entries(item.get("content")) {
                        self.annotations(part, output);
                    }
                }
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
                if !arrived.details {
                    self.reasoning_details(item, output);
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
                let is_image = text(item, "type").as_deref() == Some("image_generation_call");
                if (is_image && !arrived.images) || (!is_image && !arrived.parts) {
                    self.other_item(item, output);
                }
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

/// The error of a response that has failed.
fn failure<'a>(response: &Node<'a>, status: &str) -> Option<std::borrow::Cow<'a, str>> {
    let error = response.get("error").filter(|error| error.is_set());
    match error {
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
