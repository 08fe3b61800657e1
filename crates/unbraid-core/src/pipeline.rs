//! Framer, decoder and router in a row: what [`Demux`](crate::Demux) and the actors drive, so that both agree on
//! every stream by construction.

use crate::{
    Limit, LimitExceeded, Options, StreamError, Update,
    decode::Decoder,
    frame::{Frame, FrameError, FrameLimits, Framer},
    route::{Router, Sink},
};

/// Takes bytes (or updates) and tells a [`Sink`] what reaches which choice.
#[derive(Debug)]
pub struct Pipeline<S> {
    framer: Framer,
    decoder: Decoder,
    router: Router,
    /// Carries out what the router decides.
    pub sink: S,
}

impl<S: Sink> Pipeline<S> {
    /// A pipeline at the start of a stream.
    #[must_use]
    pub fn new(options: Options, sink: S) -> Self {
        let limits = &options.limits;
        let frame_limits = FrameLimits {
            line: limits.line_bytes,
            event: limits.event_bytes,
        };
        Self {
            framer: Framer::new(frame_limits, options.strict),
            decoder: Decoder::new(options.strict, limits.json_depth),
            router: Router::new(options),
            sink,
        }
    }

    /// The router: what is known of the stream as a whole.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Bytes and events that were taken.
    #[must_use]
    pub fn taken(&self) -> (u64, u64) {
        (self.framer.bytes(), self.decoder.events())
    }

    /// Takes the next bytes of the stream. What comes behind the stream's end is dropped (S26).
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while self.router.closed().is_none() {
            let Some(frame) = self.framer.next(&mut input) else {
                break;
            };
            route(frame, &mut self.decoder, &mut self.router, &mut self.sink);
        }
    }

    /// Takes an update that was decoded elsewhere.
    pub fn feed_update(&mut self, update: &Update<'_>) {
        self.router.update(update, &mut self.sink);
    }

    /// The source has ended: what is open ends with it. A second call does nothing.
    pub fn finish(&mut self) {
        let open = self.router.closed().is_none();
        if let Some(frame) = self.framer.finish().filter(|_| open) {
            route(frame, &mut self.decoder, &mut self.router, &mut self.sink);
        }
        self.router.finish(
            self.framer.bytes(),
            self.framer.seen_field(),
            &mut self.sink,
        );
    }

    /// The stream ends by an error from outside.
    pub fn fail(&mut self, error: StreamError) {
        self.router.fail(error, &mut self.sink);
    }

    /// The caller ends the choice of a slot; what still comes for it is dropped.
    pub fn cancel(&mut self, slot: usize) {
        self.router.cancel(slot, &mut self.sink);
    }

    /// No byte has come for a while: choices that have a finish reason end.
    pub fn quiet(&mut self) {
        self.router.quiet(&mut self.sink);
    }
}

fn route<S: Sink>(
    frame: Result<Frame<'_>, FrameError>,
    decoder: &mut Decoder,
    router: &mut Router,
    sink: &mut S,
) {
    let result = match frame {
        Ok(frame) => decoder.decode(frame, &mut |update| router.update(update, sink)),
        Err(error) => Err(framing(error, decoder.events())),
    };
    if let Err(error) = result {
        router.fail(error, sink);
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
            event,
            offset,
        },
        FrameError::NotSse { offset } => StreamError::Malformed {
            what: "the body is no event stream",
            event,
            offset,
        },
    }
}
