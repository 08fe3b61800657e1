//! What a Rust user has today: `eventsource-stream`, the chunk types of `async-openai`, and a demultiplexer by hand.

use async_openai::types::chat::CreateChatCompletionStreamResponse;
use eventsource_stream::Eventsource;
use futures::StreamExt;

use super::{Hand, Item};
use crate::{
    body::Answer,
    feed::{Feed, Tally},
};

pub(super) async fn run(feed: Feed, tally: Tally) -> Answer {
    let mut hand = Hand::new(tally);
    let mut events = feed.eventsource();
    while let Some(Ok(event)) = events.next().await {
        if event.data == "[DONE]" {
            break;
        }
        let chunk: Result<CreateChatCompletionStreamResponse, _> =
            serde_json::from_str(&event.data);
        for choice in chunk.into_iter().flat_map(|chunk| chunk.choices) {
            if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
                hand.give(choice.index, Item::Text(text));
            }
            for call in choice.delta.tool_calls.into_iter().flatten() {
                let arguments = call.function.and_then(|function| function.arguments);
                if let Some(text) = arguments.filter(|text| !text.is_empty()) {
                    hand.give(choice.index, Item::Arguments(text));
                }
            }
        }
    }
    hand.finish().await
}
