//! The first half of a pipeline, from bytes to updates.

use crate::{
    ChoiceIndex, Config, Dialect, Limit, LimitExceeded, StreamError, Update,
    decode::{Decoder, EventStart},
    frame::{Frame, FrameError, FrameLimits, Framer, Mode},
    text_delta::{UpdateSink, Updates},
};

/// Framer and decoder: turns bytes into updates.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Config, internal::UpdateReader};
///
/// let mut reader = UpdateReader::new(&Config::default());
/// let mut input = &b"data: {\"choices\":[{\"index\":7,\"delta\":{\"content\":\"Hi\"}}]}\n\n"[..];
/// let mut seen = Vec::new();
/// while let Some(event) = reader.next(&mut input, &mut |update| seen.push(update.choice)) {
///     event.unwrap();
/// }
/// assert_eq!(seen[0].unwrap().0, 7);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct UpdateReader {
    decoder: Decoder,
    pub(super) framer: Framer,
}

impl UpdateReader {
    /// Creates a reader at the start of a stream.
    #[must_use]
    pub fn new(options: &Config) -> Self {
        let limits = &options.limits;
        let has_choices = options.dialect.is_none_or(Dialect::has_choices);
        let frame_limits = FrameLimits {
            line: limits.line_bytes,
            event: limits.event_bytes,
        };
        Self {
            // Strict mode knows the lines of chat and text completions.
            framer: Framer::new(frame_limits, options.strict && has_choices)
                .expect(expected_format(options.dialect)),
            decoder: Decoder::new(options.strict, limits.json_depth)
                .with_dialect(options.dialect)
                .with_reasoning_keys(&options.reasoning_keys)
                .fold_choices(options.expect_choices == Some(1)),
        }
    }

    /// Loads what the next event most likely needs.
    #[inline]
    pub(super) fn prefetch(&mut self) {
        self.decoder.prefetch();
        self.framer.prefetch();
    }

    /// Decodes the next event of the input; `None` when the input is used up.
    ///
    /// # Errors
    ///
    /// The first error is the last item: an exceeded limit on lines or events, or an event that strict mode refuses.
    pub fn next(
        &mut self,
        input: &mut &[u8],
        sink: &mut dyn FnMut(&Update<'_>),
    ) -> Option<Result<(), StreamError>> {
        self.next_to(input, &mut Updates(sink))
    }

    #[inline]
    pub(super) fn next_to(
        &mut self,
        input: &mut &[u8],
        sink: &mut impl UpdateSink,
    ) -> Option<Result<(), StreamError>> {
        let Self { framer, decoder } = self;
        let peeked = framer.peek_data(input, decoder.usual_name());
        let found = peeked.and_then(|peeked| {
            let found = decoder.match_template(peeked.data)?;
            Some((peeked, found))
        });
        if let Some((peeked, found)) = found {
            let offset = framer.bytes();
            if framer.take_data_event(input, &peeked, found.length) {
                if decoder.emit_match(&found, peeked.name, sink) {
                    return Some(Ok(()));
                }
                let frame = Frame {
                    event: peeked.name,
                    ..Frame::of_data(peeked.data.get(..found.length)?, offset)
                };
                return Some(decoder.decode_to(frame, sink));
            }
        }
        if framer.is_used_up(input) {
            return None; // as most reads end, one event each
        }
        let frame = framer.next(input)?;
        let decoded = decode(frame, decoder, sink);
        framer.release();
        Some(decoded)
    }

    /// Returns how many events were decoded, and how many of them a template decoded.
    #[doc(hidden)]
    #[must_use]
    pub fn template_hits(&self) -> (u64, u64) {
        (self.decoder.events(), self.decoder.template_hits())
    }

    /// Decodes the unfinished event at the end of the stream, if any, and then what the dialect reports at the end.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next).
    pub fn finish(&mut self, sink: &mut dyn FnMut(&Update<'_>)) -> Option<Result<(), StreamError>> {
        self.finish_as(true, sink)
    }

    /// Ends the stream by an error from outside.
    ///
    /// If the connection failed or timed out, a last event that is complete except for its blank line is decoded first:
    /// its bytes were received, and nothing is known to be wrong with them (S21, X14). After any error follows what the dialect
    /// has held back until the end, as far as it does not need a complete answer. An error in them is superseded by this one.
    pub fn abort(&mut self, error: &StreamError, sink: &mut dyn FnMut(&Update<'_>)) {
        if matches!(error, StreamError::Transport(_) | StreamError::TimedOut(_)) {
            let _superseded = self.finish_as(false, sink);
        } else {
            self.decoder.finish(false, &mut Updates(sink));
        }
    }

    /// Decodes what a dialect has held back of a choice that the caller is about to cancel.
    pub fn flush(&mut self, choice: ChoiceIndex, sink: &mut dyn FnMut(&Update<'_>)) {
        self.decoder.flush(choice, &mut Updates(sink));
    }

    /// Returns whether the dialect may hold something back until a later event, or the end. Chat and text completions hold nothing
    /// back.
    #[must_use]
    pub fn may_hold_back(&self) -> bool {
        self.decoder.may_hold_back()
    }

    /// With `is_complete` unset, the connection was lost, so the answer may be incomplete.
    fn finish_as(
        &mut self,
        is_complete: bool,
        sink: &mut dyn FnMut(&Update<'_>),
    ) -> Option<Result<(), StreamError>> {
        let mut decoded = None;
        while let Some(frame) = self.framer.finish() {
            let event = decode(frame, &mut self.decoder, &mut Updates(sink));
            if event.is_err() {
                self.decoder.finish(false, &mut Updates(sink));
                return Some(event);
            }
            decoded = Some(event);
        }
        if self.framer.ends_inside() {
            self.decoder.cut_before_data();
        }
        let has_closing_update = self.decoder.finish(is_complete, &mut Updates(sink));
        decoded.or(has_closing_update.then_some(Ok(())))
    }

    /// Where the event began that the end of the body cut.
    pub(super) fn cut(&self) -> Option<EventStart> {
        self.decoder.cut()
    }

    /// Returns how many bytes were consumed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.framer.bytes()
    }

    /// Returns how many bytes of the current event are kept; see [`Framer::buffered_bytes`].
    ///
    /// [`next`](Self::next) and [`finish`](Self::finish) take time in proportion to it if the event ends there. A
    /// caller whose thread has other work can therefore decode a large event elsewhere.
    #[inline]
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.framer.buffered_bytes()
    }

    /// Returns whether the current event may end within these bytes; see [`Framer::may_end`].
    #[must_use]
    pub fn may_end(&self, input: &[u8]) -> bool {
        self.framer.may_end(input)
    }

    /// Returns how many events were decoded.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.decoder.events()
    }
}

fn decode(
    frame: Result<Frame<'_>, FrameError>,
    decoder: &mut Decoder,
    sink: &mut dyn UpdateSink,
) -> Result<(), StreamError> {
    match frame {
        Ok(frame) => decoder.decode_to(frame, sink),
        Err(error) => Err(framing_error(error, decoder.events())),
    }
}

/// The error of the stream for an error of framing.
fn framing_error(error: FrameError, event_index: u64) -> StreamError {
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
            event_index: event_index.into(),
            offset,
        },
        FrameError::NotSse { offset } => StreamError::Malformed {
            what: "the body is not an event stream",
            event_index: event_index.into(),
            offset,
        },
        FrameError::Checksum { offset } => StreamError::Malformed {
            what: "the checksum of a message is wrong",
            event_index: event_index.into(),
            offset,
        },
        FrameError::InvalidMessage { offset } => StreamError::Malformed {
            what: "the lengths or headers of a message are invalid",
            event_index: event_index.into(),
            offset,
        },
    }
}

/// The format in which a forced dialect is sent, where the start of a body may not show it.
fn expected_format(dialect: Option<Dialect>) -> Mode {
    match dialect {
        Some(Dialect::Bedrock) => Mode::Messages,
        Some(Dialect::Ollama) => Mode::Json,
        _ => Mode::Undecided,
    }
}
