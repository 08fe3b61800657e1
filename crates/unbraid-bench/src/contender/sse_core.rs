//! A faster peer: `sse-core`, chunk types with only the required fields, and the same demultiplexer.

use futures::StreamExt;
use serde::Deserialize;
use sse_core::{SseDecoder, SseEvent};

use super::{Item, ManualDemux};
use crate::{
    body::Answer,
    feed::{Feed, Tally},
};

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    index: u32,
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    arguments: Option<String>,
}

pub(super) async fn run(mut feed: Feed, tally: Tally) -> Answer {
    let mut demux = ManualDemux::new(tally);
    let mut decoder = SseDecoder::new();
    while let Some(Ok(mut read)) = feed.next().await {
        while let Some(event) = decoder.next(&mut read) {
            if let Ok(SseEvent::Message(event)) = event {
                send(&event.data, &mut demux);
            }
        }
    }
    demux.finish().await
}

fn send(data: &str, demux: &mut ManualDemux<Tally>) {
    let Ok(chunk) = serde_json::from_str::<Chunk>(data) else {
        return; // the end mark
    };
    for choice in chunk.choices {
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
