//! Framer, decoder and router in a row: what [`Demux`](crate::Demux) and the actors drive, so that both agree on
//! every stream by construction.

mod after_done;

use crate::{
    Config, Limit, LimitExceeded, StreamError, Update,
    decode::Decoder,
    format::Head,
    frame::{Frame, FrameError, FrameLimits, Framer},
    route::{ChoiceSink, Router},
    text_delta::{TextDelta, UpdateSink, Updates},
};

/// Framer and decoder: bytes in, updates out.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Config, internal::UpdateReader};
///
/// let mut intake = UpdateReader::new(&Config::default());
/// let mut input = &b"data: {\"choices\":[{\"index\":7,\"delta\":{\"content\":\"Hi\"}}]}\n\n"[..];
/// let mut seen = Vec::new();
/// while let Some(event) = intake.next(&mut input, &mut |update| seen.push(update.choice)) {
///     event.unwrap();
/// }
/// assert_eq!(seen[0].unwrap().0, 7);
/// ```
#[derive(Debug)]
pub struct UpdateReader {
    framer: Framer,
    decoder: Decoder,
}

impl UpdateReader {
    /// An intake at the start of a stream.
    #[must_use]
    pub fn new(options: &Config) -> Self {
        let limits = &options.limits;
        let frame_limits = FrameLimits {
            line: limits.line_bytes,
            event: limits.event_bytes,
        };
        Self {
            framer: Framer::new(frame_limits, options.strict),
            decoder: Decoder::new(options.strict, limits.json_depth)
                .with_reasoning_keys(&options.reasoning_keys)
                .folding(options.expect_choices == Some(1)),
        }
    }

    /// Decodes the next event of the input; `None` when it is used up.
    ///
    /// # Errors
    ///
    /// The first error is the last item: a limit on lines or events, or what strict mode refuses.
    pub fn next(
        &mut self,
        input: &mut &[u8],
        sink: &mut dyn FnMut(&Update<'_>),
    ) -> Option<Result<(), StreamError>> {
        self.next_to(input, &mut Updates(sink))
    }

    fn next_to(
        &mut self,
        input: &mut &[u8],
        taker: &mut impl UpdateSink,
    ) -> Option<Result<(), StreamError>> {
        let Self { framer, decoder } = self;
        let begun = framer.begun(input);
        let found = begun.and_then(|data| Some((data, decoder.find(data)?)));
        if let Some((data, found)) = found {
            let offset = framer.bytes();
            if framer.take_known(input, found.length) {
                if decoder.tell(&found, taker) {
                    return Some(Ok(()));
                }
                let data = data.get(..found.length)?;
                return Some(decoder.decode_to(Frame::of_data(data, offset), taker));
            }
        }
        let frame = framer.next(input)?;
        let decoded = decode(frame, decoder, taker);
        framer.release();
        Some(decoded)
    }

    /// How many events were decoded, and how many of them were read without parsing.
    #[doc(hidden)]
    #[must_use]
    pub fn fitted(&self) -> (u64, u64) {
        (self.decoder.events(), self.decoder.fitted())
    }

    /// Decodes what the end of the stream left unfinished, if anything.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn finish(&mut self, sink: &mut dyn FnMut(&Update<'_>)) -> Option<Result<(), StreamError>> {
        let mut decoded = None;
        while let Some(frame) = self.framer.finish() {
            let event = decode(frame, &mut self.decoder, &mut Updates(sink));
            if event.is_err() {
                return Some(event);
            }
            decoded = Some(event);
        }
        decoded
    }

    /// Bytes that were taken.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.framer.bytes()
    }

    /// How many bytes of the event under way are kept; see [`Framer::buffered_bytes`].
    ///
    /// [`next`](Self::next) and [`finish`](Self::finish) take time in proportion if the event ends there. So a caller
    /// whose thread has other work can see beforehand that it should decode elsewhere.
    #[inline]
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.framer.buffered_bytes()
    }

    /// Whether the event under way may end within these bytes; see [`Framer::may_end`].
    #[must_use]
    pub fn may_end(&self, input: &[u8]) -> bool {
        self.framer.may_end(input)
    }

    /// Events that were decoded.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.decoder.events()
    }
}

fn decode(
    frame: Result<Frame<'_>, FrameError>,
    decoder: &mut Decoder,
    taker: &mut dyn UpdateSink,
) -> Result<(), StreamError> {
    match frame {
        Ok(frame) => decoder.decode_to(frame, taker),
        Err(error) => Err(framing(error, decoder.events())),
    }
}

/// What a framing error means for the stream.
fn framing(error: FrameError, event: u64) -> StreamError {
    let limit = |limit, max: usize| {
        StreamError::Limit(LimitExceeded {
            limit,
            max: max as u64,
        })
    };
    match error {
        FrameError::LineTooLong { limit: max, .. } => limit(Limit::Line, max),
        FrameError::EventTooLong { limit: max, .. } => limit(Limit::Event, max),
        FrameError::NotData { offset } => StreamError::Malformed {
            what: "a line does not begin with `data:`",
            event_index: event.into(),
            offset,
        },
        FrameError::NotSse { offset } => StreamError::Malformed {
            what: "the body is no event stream",
            event_index: event.into(),
            offset,
        },
    }
}

/// The way from a decoder to a router.
struct Routed<'p, S> {
    router: &'p mut Router,
    sink: &'p mut S,
    /// Updates that came.
    count: usize,
}

impl<S: ChoiceSink> UpdateSink for Routed<'_, S> {
    fn update(&mut self, update: &Update<'_>) {
        self.count += 1;
        self.router.update(update, self.sink);
    }

    fn piece(&mut self, piece: &TextDelta<'_>) {
        self.count += 1;
        self.router.piece(piece, self.sink);
    }
}

/// Takes bytes (or updates) and tells a [`ChoiceSink`] what reaches which choice.
#[derive(Debug)]
pub struct Pipeline<S> {
    intake: UpdateReader,
    head: Head,
    router: Router,
    /// Bytes that were read after `[DONE]`.
    after_done: usize,
    /// Carries out what the router decides.
    pub sink: S,
}

impl<S: ChoiceSink> Pipeline<S> {
    /// A pipeline at the start of a stream.
    #[must_use]
    pub fn new(options: Config, sink: S) -> Self {
        Self {
            intake: UpdateReader::new(&options),
            head: Head::default(),
            router: Router::new(options),
            after_done: 0,
            sink,
        }
    }

    /// The router: what is known of the stream as a whole.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The intake: how much was read.
    #[must_use]
    pub fn intake(&self) -> &UpdateReader {
        &self.intake
    }

    /// Takes the next bytes of the stream. What comes behind the stream's end is dropped (S26).
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while self.feed_portion(&mut input) {}
    }

    /// Takes the next bytes of the stream up to the event that fills a portion, and advances the input; true if there may
    /// be more in it.
    ///
    /// A sink that keeps its input hands it on between portions. One is 256 KiB of the stream or
    /// 4,096 updates, whichever is reached first; the last event may go beyond by as much as one event may bring
    /// ([`MAX_ENTRIES`](crate::limits::MAX_ENTRIES)).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, ChoiceEnd, Config, Position, CompletionKind, Sequenced, Text, Update, internal::{ChoiceSink, Pipeline}};
    ///
    /// #[derive(Default)]
    /// struct Count(usize);
    ///
    /// impl ChoiceSink for Count {
    ///     fn open(&mut self, _slot: usize, _index: ChoiceIndex, _kind: CompletionKind) {}
    ///     fn update(&mut self, _slot: usize, _update: &Update<'_>, _place: Position) {
    ///         self.0 += 1;
    ///     }
    ///     fn late_update(&mut self, _slot: usize, _update: &Update<'_>, _place: Position) {}
    ///     fn finish(&mut self, _slot: usize, _end: ChoiceEnd, _place: Position) {}
    ///     fn finish_with_error(&mut self, _slot: usize, _end: ChoiceEnd, _place: Position) {}
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
        const BYTES: usize = 256 * 1024;
        const UPDATES: usize = 4096;
        let (mut portion, rest) = input.split_at_checked(BYTES).unwrap_or((*input, &[]));
        let Self {
            intake,
            head,
            router,
            sink,
            ..
        } = self;
        let mut count = 0;
        while count < UPDATES && router.closed().is_none() {
            if router.is_after_done() {
                let left = portion.len() + rest.len();
                let after = input.get(input.len() - left..).unwrap_or_default();
                *input = &[];
                self.feed_after_done(after);
                return false;
            }
            let mut taker = Routed {
                router,
                sink,
                count,
            };
            let Some(event) = intake.next_to(&mut portion, &mut taker) else {
                break;
            };
            count = taker.count;
            if let Err(error) = event {
                router.abort(error, sink);
            }
        }
        if router.closed().is_some() {
            *input = &[];
            return false;
        }
        let left = portion.len() + rest.len();
        let (taken, behind) = input
            .split_at_checked(input.len() - left)
            .unwrap_or((*input, &[]));
        head.take(taken);
        *input = behind;
        left > 0 || count >= UPDATES
    }

    /// Takes an update that was decoded elsewhere.
    pub fn feed_update(&mut self, update: &Update<'_>) {
        if self.router.is_after_done() {
            return self.update_after_done(update);
        }
        self.router.update(update, &mut self.sink);
    }

    /// The source has ended: what is open ends with it. A second call does nothing.
    pub fn finish(&mut self) {
        let Self {
            intake,
            head,
            router,
            sink,
            ..
        } = self;
        if router.closed().is_none()
            && let Some(Err(error)) = intake.finish(&mut |update| router.update(update, sink))
        {
            router.abort(error, sink);
        }
        if let Some(format) = head.format() {
            router.recognise(format);
        }
        router.finish(intake.framer.bytes(), intake.framer.seen_field(), sink);
    }

    /// The stream ends by an error from outside.
    ///
    /// A last event that had arrived whole, but for its blank line, is delivered first if the connection died or was
    /// given up: its bytes were received, and nothing is known to be wrong with them (S21, X14).
    pub fn abort(&mut self, error: StreamError) {
        if matches!(error, StreamError::Transport(_) | StreamError::TimedOut(_)) {
            self.deliver_rest();
        }
        self.router.abort(error, &mut self.sink);
    }

    /// Decodes what the framer holds. An error in it yields to the one that ends the stream.
    fn deliver_rest(&mut self) {
        let Self {
            intake,
            router,
            sink,
            ..
        } = self;
        if router.closed().is_none() {
            let _superseded = intake.finish(&mut |update| router.update(update, sink));
        }
    }

    /// The caller ends the choice of a slot; what still comes for it is dropped. False if it had ended before.
    pub fn cancel(&mut self, slot: usize) -> bool {
        self.router.cancel(slot, &mut self.sink)
    }

    /// No byte has come for a while: choices that have a finish reason end.
    pub fn handle_idle(&mut self) {
        self.router.handle_idle(&mut self.sink);
    }
}

#[cfg(test)]
mod tests;
