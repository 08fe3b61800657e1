//! The libraries in use today for other dialects than chat: `eventsource-stream`, the event types of a client, and the
//! handwritten demultiplexer.

use async_openai::types::responses::ResponseStreamEvent;
use eventsource_stream::Eventsource;
use futures::StreamExt;

use super::{Item, ManualDemux, Provider};
use crate::{
    body::Answer,
    feed::{Feed, Tally},
};

pub(super) async fn run(provider: Provider, feed: Feed, tally: Tally) -> Answer {
    let read: fn(&str, &mut ManualDemux<Tally>) = match provider {
        Provider::Responses => responses,
        #[cfg(feature = "dialect-peers")]
        Provider::Anthropic => peers::anthropic,
        #[cfg(feature = "dialect-peers")]
        Provider::Gemini => peers::gemini,
    };
    let mut demux = ManualDemux::new(tally);
    let mut events = feed.eventsource();
    while let Some(Ok(event)) = events.next().await {
        read(&event.data, &mut demux);
    }
    demux.finish().await
}

fn responses(data: &str, demux: &mut ManualDemux<Tally>) {
    match serde_json::from_str(data) {
        Ok(ResponseStreamEvent::ResponseOutputTextDelta(event)) => {
            send(0, Item::Text(event.delta), demux);
        }
        Ok(ResponseStreamEvent::ResponseFunctionCallArgumentsDelta(event)) => {
            send(0, Item::Arguments(event.delta), demux);
        }
        _ => {}
    }
}

fn send(choice: u32, item: Item, demux: &mut ManualDemux<Tally>) {
    let (Item::Text(text) | Item::Arguments(text)) = &item;
    if !text.is_empty() {
        demux.send(choice, item);
    }
}

#[cfg(feature = "dialect-peers")]
mod peers {
    use anthropic_ai_sdk::types::message::{ContentBlockDelta, StreamEvent};
    use gemini_rust::Part;

    use super::{Item, ManualDemux, Tally, send};

    pub(super) fn anthropic(data: &str, demux: &mut ManualDemux<Tally>) {
        let Ok(StreamEvent::ContentBlockDelta { delta, .. }) = serde_json::from_str(data) else {
            return;
        };
        match delta {
            ContentBlockDelta::TextDelta { text } => send(0, Item::Text(text), demux),
            ContentBlockDelta::InputJsonDelta { partial_json } => {
                send(0, Item::Arguments(partial_json), demux);
            }
            ContentBlockDelta::ThinkingDelta { .. } | ContentBlockDelta::SignatureDelta { .. } => {}
        }
    }

    #[expect(
        deprecated,
        reason = "the type of the stream that Gemini's servers still send"
    )]
    pub(super) fn gemini(data: &str, demux: &mut ManualDemux<Tally>) {
        let chunk: Result<gemini_rust::GenerationResponse, _> = serde_json::from_str(data);
        for candidate in chunk.into_iter().flat_map(|chunk| chunk.candidates) {
            let choice = candidate.index.and_then(|index| index.try_into().ok());
            for part in candidate.content.parts.into_iter().flatten() {
                if let Part::Text { text, thought, .. } = part
                    && thought != Some(true)
                {
                    send(choice.unwrap_or(0), Item::Text(text), demux);
                }
            }
        }
    }
}
