//! `Debug` of the handles: where they stand, in counts. It never shows what a model wrote, nor waits for anything.

use std::fmt::{self, Debug, Formatter};

use super::{
    choice::Choice,
    choices::Choices,
    completions::Completions,
    events::{AllEvents, EventCursor, Events, Logprobs},
    messages::Messages,
    tool_call::{ToolCallHandle, ToolCalls},
};
use crate::{
    handle::merge::{SourceHandle, SourceSet},
    state::completion::{Board, Listing},
};

/// What is known of a stream as a whole.
struct Stream<'s>(&'s Board);

impl Debug for Stream<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // The formatter may be foreign code: it runs under no lock.
        let count = |listing: &Listing| {
            let closed = listing.closed.as_ref();
            let closed = closed.map(|closed| closed.result.clone().map_err(|error| error.as_str()));
            (listing.choices.len(), listing.warnings.len(), closed)
        };
        let (choices, warnings, closed) = self.0.read(count);
        f.debug_struct("Stream")
            .field("choices", &choices)
            .field("warnings", &warnings)
            .field("closed", &closed)
            .finish()
    }
}

impl Debug for Completions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Completions")
            .field(&Stream(&self.board))
            .finish()
    }
}

impl Debug for SourceSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SourceSet")
            .field(&Stream(self.board()))
            .finish()
    }
}

impl Debug for SourceHandle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceHandle")
            .field("choices", &self.choices())
            .finish_non_exhaustive()
    }
}

impl Debug for Choices {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choices")
            .field("given", &self.next)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Debug for Choice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (events, end) = self.log.read(|record| {
            let end = record.transcript.end().map(|end| end.as_str());
            (record.transcript.event_count(), end)
        });
        f.debug_struct("Choice")
            .field("index", &self.index)
            .field("events", &events)
            .field("end", &end)
            .finish()
    }
}

impl Debug for EventCursor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventCursor")
            .field("wanted", &self.wanted)
            .field("seq", &self.seq)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Debug for Events {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.0).finish()
    }
}

impl Debug for Logprobs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Logprobs").field(&self.0).finish()
    }
}

impl Debug for Messages {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Messages").field(&self.events).finish()
    }
}

impl Debug for AllEvents {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllEvents")
            .field("choices", &self.choices.len())
            .field("events", &self.seq)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Debug for ToolCalls {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolCalls").field(&self.events).finish()
    }
}

impl Debug for ToolCallHandle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("choice", &self.choice())
            .field("ordinal", &self.ordinal)
            .field("index", &self.index)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
