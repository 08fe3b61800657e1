//! Connects framer, decoder and router. Both [`Demux`](crate::Demux) and the actors drive a [`Pipeline`], so that they
//! agree on every stream by construction.

mod after_done;
mod update_reader;

use std::sync::Arc;

pub use update_reader::UpdateReader;

use crate::{
    ChoiceEnd, ChoiceIndex, Config, StreamError, Update,
    format::{HEAD_BYTES, Head},
    limits::{PORTION_BYTES, PORTION_UPDATES},
    route::{ChoiceSink, Router},
    text_delta::{DeltaUsage, TextDelta, UpdateSink},
};

/// Passes updates from the decoder to the router.
struct Routed<'p, S> {
    router: &'p mut Router,
    sink: &'p mut S,
    /// The number of updates.
    count: usize,
}

impl<S: ChoiceSink> UpdateSink for Routed<'_, S> {
    fn update(&mut self, update: &Update<'_>) {
        self.count += 1;
        self.router.update(update, self.sink);
    }

    fn text_delta(&mut self, delta: &TextDelta<'_>) {
        self.count += 1;
        self.router.text_delta(delta, self.sink);
    }

    #[inline]
    fn delta_usage(&mut self, usage: &DeltaUsage<'_>) {
        self.count += 1;
        self.router.delta_usage(usage, self.sink);
    }
}

/// Takes bytes (or updates), and reports to a [`ChoiceSink`] what each choice receives.
#[derive(Debug)]
#[repr(C)]
pub struct Pipeline<S> {
    /// Receives the decisions of the router.
    pub sink: S,
    router: Router,
    update_reader: UpdateReader,
    head: Head,
    /// The bytes that were received after `[DONE]`.
    after_done: usize,
}

impl<S: ChoiceSink> Pipeline<S> {
    /// Creates a pipeline at the start of a stream.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>, sink: S) -> Self {
        let config = config.into();
        Self {
            update_reader: UpdateReader::new(&config),
            head: Head::default(),
            router: Router::new(config),
            after_done: 0,
            sink,
        }
    }

    /// Returns the router, which has the state of the stream as a whole.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Returns the reader of updates, which counts bytes and events.
    #[must_use]
    pub fn update_reader(&self) -> &UpdateReader {
        &self.update_reader
    }

    /// Loads what the next event most likely needs, which may lie in no cache by now.
    #[inline]
    pub fn prefetch(&mut self) {
        self.update_reader.prefetch();
        self.router.prefetch();
    }

    /// Takes the next bytes of the stream. Bytes after the stream's end are dropped (S26).
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while self.feed_portion(&mut input) {}
    }

    /// Takes the next bytes of the stream, up to the event that fills a portion, and advances the input. Returns true
    /// if the input may contain more.
    ///
    /// A sink that buffers updates can forward them between portions. A portion is 256 KiB of the stream or 4,096
    /// updates, whichever is reached first. Its last event may exceed that by the updates of one event
    /// ([`MAX_ENTRIES`](crate::limits::MAX_ENTRIES)).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, ChoiceEnd, Config, Position, CompletionKind, Sequenced, Text, Update, internal::{ChoiceSink, Delta, Pipeline}};
    ///
    /// #[derive(Default)]
    /// struct Count(usize);
    ///
    /// impl ChoiceSink for Count {
    ///     fn open(&mut self, _slot: usize, _index: ChoiceIndex, _kind: CompletionKind) {}
    ///     fn delta(&mut self, _slot: usize, _delta: Delta<'_>, _position: Position) {
    ///         self.0 += 1;
    ///     }
    ///     fn late_update(&mut self, _slot: usize, _update: &Update<'_>, _position: Position) {}
    ///     fn finish(&mut self, _slot: usize, _end: ChoiceEnd, _position: Position) {}
    ///     fn finish_with_reason(&mut self, _slot: usize, _position: Position) {}
    ///     fn finish_with_error(&mut self, _slot: usize, _end: ChoiceEnd, _position: Position) {}
    ///     fn stream_event(&mut self, _event: Sequenced<Text>) {}
    /// }
    ///
    /// let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    /// let stream = event.repeat(10_000);
    /// let mut input = stream.as_bytes();
    /// let mut pipeline = Pipeline::new(Config::default(), Count::default());
    /// while pipeline.feed_portion(&mut input) {
    ///     assert!(std::mem::take(&mut pipeline.sink.0) <= 4_096);
    /// }
    /// assert!(input.is_empty());
    /// ```
    pub fn feed_portion(&mut self, input: &mut &[u8]) -> bool {
        let (mut portion, rest) = input
            .split_at_checked(PORTION_BYTES)
            .unwrap_or((*input, &[]));
        let Self {
            update_reader,
            head,
            router,
            sink,
            ..
        } = self;
        let mut count = 0;
        while count < PORTION_UPDATES && router.takes_choices() {
            let mut routed = Routed {
                router,
                sink,
                count,
            };
            let Some(event) = update_reader.next_to(&mut portion, &mut routed) else {
                break;
            };
            count = routed.count;
            if let Err(error) = event {
                update_reader.abort(&error, &mut |update| router.update(update, sink));
                router.abort(error, sink);
            }
        }
        let remaining = portion.len() + rest.len();
        if !router.takes_choices() {
            let after = input.get(input.len() - remaining..).unwrap_or_default();
            *input = &[];
            if router.is_after_done() {
                self.feed_after_done(after);
            }
            return false;
        }
        let (consumed, after) = input
            .split_at_checked(input.len() - remaining)
            .unwrap_or((*input, &[]));
        // A head that is full is not touched: it lies in a cache line of its own.
        if update_reader.bytes() < (consumed.len() + HEAD_BYTES) as u64 {
            head.extend(consumed);
        }
        *input = after;
        remaining > 0 || count >= PORTION_UPDATES
    }

    /// Takes an update that was decoded elsewhere.
    pub fn feed_update(&mut self, update: &Update<'_>) {
        if self.router.is_after_done() {
            return self.update_after_done(update);
        }
        self.router.update(update, &mut self.sink);
    }

    /// Ends the stream because its source has ended, and with it all open choices. A second call does nothing.
    pub fn finish(&mut self) {
        let Self {
            update_reader,
            head,
            router,
            sink,
            ..
        } = self;
        if router.closed().is_none()
            && let Some(Err(error)) =
                update_reader.finish(&mut |update| router.update(update, sink))
        {
            update_reader.abort(&error, &mut |update| router.update(update, sink));
            router.abort(error, sink);
        }
        if let Some(format) = head.format() {
            router.recognise(format);
        }
        if let Some(start) = update_reader.cut() {
            router.note_cut(start.index, start.offset);
        }
        router.finish(
            update_reader.framer.bytes(),
            update_reader.framer.seen_field(),
            sink,
        );
    }

    /// Ends the stream by an error from outside, after what [`UpdateReader::abort`] has decoded.
    pub fn abort(&mut self, error: StreamError) {
        let Self {
            update_reader,
            router,
            sink,
            ..
        } = self;
        if router.closed().is_none() {
            update_reader.abort(&error, &mut |update| router.update(update, sink));
        }
        router.abort(error, sink);
    }

    /// Ends the choice of a slot for the caller, as [`Router::cancel`] does. Returns false if the choice had ended before.
    pub fn cancel(&mut self, slot: usize) -> bool {
        let Self {
            update_reader,
            router,
            sink,
            ..
        } = self;
        if let Some(choice) = router.index(slot).filter(|_| !router.has_ended(slot)) {
            update_reader.flush(choice, &mut |update| router.update(update, sink));
        }
        router.cancel(slot, sink)
    }

    /// Ends a choice as another process has reported it. One that has not appeared opens for that.
    pub fn end_choice(&mut self, index: ChoiceIndex, end: ChoiceEnd) {
        if self.router.closed().is_some() {
            return;
        }
        if self.router.slot(index).is_none() {
            // The update brings nothing and belongs to the last event, so that no other choice ends.
            let update = Update::default()
                .with_event_index(self.router.last_event())
                .with_choice(index);
            self.router.update(&update, &mut self.sink);
        }
        if let Some(slot) = self.router.slot(index) {
            self.router.end_choice(slot, end, &mut self.sink);
        }
    }

    /// Ends the choices that have a finish reason, because no byte was received for a while.
    pub fn handle_idle(&mut self) {
        self.router.handle_idle(&mut self.sink);
    }
}

#[cfg(test)]
mod tests;
