//! The libraries in use today: `eventsource-stream`, the chunk types of `async-openai`, and a handwritten demultiplexer.

use async_openai::types::chat::CreateChatCompletionStreamResponse;
use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures::{Stream, StreamExt};

use super::{Item, ManualDemux, Record};
use crate::{
    body::Answer,
    feed::{Feed, Tally},
};

pub(super) async fn run(feed: Feed, tally: Tally) -> Answer {
    read(feed, tally).await
}

/// Reads any stream of bytes.
pub(crate) async fn read<S, E>(reads: S, tally: impl Record) -> Answer
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    let mut demux = ManualDemux::new(tally);
    let mut events = reads.eventsource();
    while let Some(Ok(event)) = events.next().await {
        if event.data == "[DONE]" {
            break;
        }
        let chunk: Result<CreateChatCompletionStreamResponse, _> =
            serde_json::from_str(&event.data);
        for choice in chunk.into_iter().flat_map(|chunk| chunk.choices) {
            if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
                demux.send(choice.index, Item::Text(text));
            }
            for call in choice.delta.tool_calls.into_iter().flatten() {
                let arguments = call.function.and_then(|function| function.arguments);
                if let Some(text) = arguments.filter(|text| !text.is_empty()) {
                    demux.send(choice.index, Item::Arguments(text));
                }
            }
        }
    }
    demux.finish().await
}
