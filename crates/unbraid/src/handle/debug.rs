//! `Debug` of the handles: counts and positions. It never shows what a model wrote, and never waits for a stream.

use std::fmt::{self, Debug, Formatter};

use super::{
    choice::Choice,
    choices::Choices,
    completions::Completions,
    events::{AllEvents, EventCursor, Events, Logprobs},
    merge::{SourceHandle, SourceSet},
    messages::Messages,
    outcomes::Outcomes,
    tool_call::{ToolCallHandle, ToolCalls},
};
use crate::{state::completion::CompletionState, sync::shared::Shared};

/// What is known of a stream as a whole.
struct Stream<'s>(&'s Shared<CompletionState>);

impl Debug for Stream<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // The formatter may be foreign code, so it runs without the lock.
        let (choices, warnings, closed) = self.0.read(|state| {
            let closed = state.closed.as_ref();
            let closed = closed.map(|closed| closed.result.clone().map_err(|error| error.as_str()));
            (state.choices.len(), state.warnings().count(), closed)
        });
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
            .field(&Stream(&self.completion))
            .finish()
    }
}

impl Debug for SourceSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SourceSet")
            .field(&Stream(self.completion()))
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
            .field("next", &self.next)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Debug for Outcomes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes")
            .field("choices", &self.seen)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Debug for Choice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (events, end) = self.log.read(|state| {
            let end = state.transcript.end().map(|end| end.as_str());
            (state.transcript.event_count(), end)
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
            .field("filter", &self.filter)
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
        f.debug_struct("ToolCallHandle")
            .field("choice", &self.choice())
            .field("call_index", &self.call_index)
            .field("wire_index", &self.wire_index)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
