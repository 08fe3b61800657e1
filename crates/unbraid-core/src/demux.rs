//! All of it in one synchronous object.

use std::collections::VecDeque;

use serde_json::Value;

use crate::{
    ChoiceError, ChoiceIndex, End, Finished, Limit, LimitExceeded, Limits, Metadata, Options,
    Shape, Stamped, StreamError, Text, Transcript, Update, Usage, Warning,
    choice::Machine,
    decode::Decoder,
    event::Place,
    frame::{Frame, FrameError, FrameLimits, Framer},
    route::{Router, Sink},
};

/// Takes one completion stream apart, synchronously: bytes in, events out, every choice's transcript at hand.
///
/// The same bytes give the same events however they are cut into reads. Everything is kept until the `Demux` is
/// dropped, within [`Limits`]; for a stream that is read as it comes, without actors, take the events after each read.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Event, Options};
///
/// let mut demux = Demux::new(Options::default());
/// let mut text = String::new();
/// for read in ["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"}}]}\n", "\ndata: [DONE]\n\n"] {
///     demux.feed(read.as_bytes());
///     while let Some(stamped) = demux.next_event() {
///         if let Event::Content(delta) = stamped.event {
///             text.push_str(delta);
///         }
///     }
/// }
/// demux.finish();
/// assert_eq!(text, "He");
/// assert!(demux.closed().unwrap().is_ok());
/// ```
#[derive(Debug)]
pub struct Demux {
    framer: Framer,
    decoder: Decoder,
    core: Core,
}

#[derive(Debug)]
struct Core {
    router: Router,
    board: Board,
}

/// Every choice's machine and transcript, and the order of what has happened.
#[derive(Debug)]
struct Board {
    limits: Limits,
    choices: Vec<Slot>,
    queue: VecDeque<Item>,
}

#[derive(Debug)]
struct Slot {
    machine: Machine,
    log: Transcript,
    /// Events that were taken.
    read: usize,
    /// Events that stand in the queue or were taken.
    queued: usize,
}

#[derive(Debug)]
enum Item {
    /// The next so many events of a choice.
    Choice {
        slot: usize,
        events: usize,
    },
    Stream(Box<Stamped<Text>>),
}

impl Demux {
    /// A demultiplexer at the start of a stream.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let limits = options.limits.clone();
        let frame_limits = FrameLimits {
            line: limits.line_bytes,
            event: limits.event_bytes,
        };
        Self {
            framer: Framer::new(frame_limits, options.strict),
            decoder: Decoder::new(options.strict, limits.json_depth),
            core: Core {
                router: Router::new(options),
                board: Board {
                    limits,
                    choices: Vec::new(),
                    queue: VecDeque::new(),
                },
            },
        }
    }

    /// Takes the next bytes of the stream. What comes behind the stream's end is dropped (S26).
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while self.core.router.closed().is_none() {
            let Some(frame) = self.framer.next(&mut input) else {
                break;
            };
            self.core.frame(frame, &mut self.decoder);
        }
    }

    /// Takes an update that was decoded elsewhere, in place of bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, Options, Update};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed_update(&Update { choice_index: Some(ChoiceIndex(0)), content_update: Some("Hi".into()), last: true, ..Update::default() });
    /// demux.finish();
    /// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().message().content, "Hi");
    /// ```
    pub fn feed_update(&mut self, update: &Update<'_>) {
        self.core.router.update(update, &mut self.core.board);
    }

    /// The source has ended: what is open ends with it. A second call does nothing.
    pub fn finish(&mut self) {
        if self.core.router.closed().is_none()
            && let Some(frame) = self.framer.finish()
        {
            self.core.frame(frame, &mut self.decoder);
        }
        self.core.router.finish(
            self.framer.bytes(),
            self.framer.seen_field(),
            &mut self.core.board,
        );
    }

    /// The source has failed, or the caller gives up: every choice that is open ends by this error.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, End, Options, StreamError};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"}}]}\n\n");
    /// demux.fail(StreamError::Cancelled);
    /// assert!(matches!(demux.choice(ChoiceIndex(0)).unwrap().end(), Some(End::Cancelled)));
    /// ```
    pub fn fail(&mut self, error: StreamError) {
        self.core.router.fail(error, &mut self.core.board);
    }

    /// Ends one choice; what still comes for it is dropped. Nothing happens if it has ended or never came.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, End, Options};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// demux.cancel(ChoiceIndex(0));
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" dropped\"}}]}\n\n");
    /// let choice = demux.choice(ChoiceIndex(0)).unwrap();
    /// assert!(matches!(choice.end(), Some(End::Cancelled)));
    /// assert_eq!(choice.message().content, "Hi");
    /// ```
    pub fn cancel(&mut self, choice: ChoiceIndex) {
        if let Some(slot) = self.core.router.slot(choice) {
            self.core.router.cancel(slot, &mut self.core.board);
        }
    }

    /// Says that no byte has come for a while, so that choices with a finish reason end.
    ///
    /// The core has no clock; a caller that waits for bytes decides what a while is (the actors take 250 ms).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, Options};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    /// assert!(demux.finished(ChoiceIndex(0)).is_none(), "more may follow");
    /// demux.quiet();
    /// assert!(demux.finished(ChoiceIndex(0)).is_some());
    /// ```
    pub fn quiet(&mut self) {
        self.core.router.quiet(&mut self.core.board);
    }

    /// The next event in the order of the stream, borrowed until the next call.
    ///
    /// `None` means that more bytes are needed or, once [`closed`](Self::closed) is known, that there are no more.
    pub fn next_event(&mut self) -> Option<Stamped<&str>> {
        self.core.board.next_event()
    }

    /// What the stream came to, once it is over: `Ok` even where a choice did not finish.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Options};
    /// # let mut demux = Demux::new(Options::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// assert!(matches!(demux.closed(), Some(Ok(()))));
    /// ```
    #[must_use]
    pub fn closed(&self) -> Option<&Result<(), StreamError>> {
        self.core.router.closed()
    }

    /// One choice's record so far.
    #[must_use]
    pub fn choice(&self, index: ChoiceIndex) -> Option<&Transcript> {
        let slot = self.core.router.slot(index)?;
        self.core.board.choices.get(slot).map(|slot| &slot.log)
    }

    /// The records of all choices, in order of first appearance.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Options};
    /// # let mut demux = Demux::new(Options::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// let texts: Vec<String> = demux.choices().map(|choice| choice.message().content).collect();
    /// assert_eq!(texts, ["Hi"]);
    /// ```
    pub fn choices(&self) -> impl Iterator<Item = &Transcript> {
        self.core.board.choices.iter().map(|slot| &slot.log)
    }

    /// What a choice came to; `None` while it is open, or if it never came.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Options};
    /// # let mut demux = Demux::new(Options::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// assert_eq!(demux.finished(ChoiceIndex(0)).unwrap()?.message.content, "Hi");
    /// assert!(demux.finished(ChoiceIndex(1)).is_none());
    /// # Ok::<(), unbraid_core::ChoiceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChoiceError`] for every end but `finished` and `done_without_finish`; it holds what had arrived.
    #[must_use]
    pub fn finished(&self, index: ChoiceIndex) -> Option<Result<Finished, ChoiceError>> {
        self.choice(index)?.outcome()
    }

    /// The non-streaming response, as far as it has come; see [`aggregate`](crate::aggregate()).
    #[must_use]
    pub fn aggregate(&self) -> Value {
        crate::aggregate(self.metadata(), &self.usage(), self.choices())
    }

    /// Usage as the server reported it, so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.core.router.usage()
    }

    /// What the stream says of itself.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        self.core.router.metadata()
    }

    /// Everything that was tolerated, on the stream and on its choices, by event.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Options};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// assert_eq!(demux.warnings()[0].to_string(), "event 0: choice 0: the choice index is missing (E8)");
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let on_choices = self.choices().flat_map(Transcript::warnings);
        let mut warnings: Vec<Warning> = self
            .core
            .router
            .warnings()
            .iter()
            .chain(on_choices)
            .cloned()
            .collect();
        warnings.sort_by_key(|warning| warning.event);
        warnings
    }

    /// How many further warnings there were; see [`Limits::warnings`].
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        let on_choices = self.choices().map(Transcript::warnings_dropped);
        self.core.router.warnings_dropped() + on_choices.sum::<u64>()
    }
}

impl Core {
    fn frame(&mut self, frame: Result<Frame<'_>, FrameError>, decoder: &mut Decoder) {
        let Self { router, board } = self;
        let result = match frame {
            Ok(frame) => decoder.decode(frame, &mut |update| router.update(update, board)),
            Err(error) => Err(decoder.framing(error)),
        };
        if let Err(error) = result {
            router.fail(error, board);
        }
    }
}

impl Board {
    fn next_event(&mut self) -> Option<Stamped<&str>> {
        loop {
            match self.queue.pop_front()? {
                Item::Stream(event) => return Some(event.map(|_| "")), // its events hold no text
                Item::Choice { slot, events } => {
                    let taken = self.choices.get_mut(slot)?;
                    let seq = taken.read;
                    taken.read += 1;
                    if events > 1 {
                        self.queue.push_front(Item::Choice {
                            slot,
                            events: events - 1,
                        });
                    }
                    if self
                        .choices
                        .get(slot)
                        .is_some_and(|slot| slot.log.event(seq).is_some())
                    {
                        return self.choices.get(slot)?.log.event(seq);
                    }
                }
            }
        }
    }

    /// Lets a machine work, and queues what it told.
    fn with(&mut self, slot: usize, work: impl FnOnce(&mut Machine, &mut Transcript)) {
        let Some(choice) = self.choices.get_mut(slot) else {
            return;
        };
        work(&mut choice.machine, &mut choice.log);
        let events = choice.log.visible().saturating_sub(choice.queued);
        choice.queued += events;
        if events > 0 {
            self.queue.push_back(Item::Choice { slot, events });
        }
    }
}

impl Sink for Board {
    fn open(&mut self, _slot: usize, index: ChoiceIndex, shape: Shape) {
        self.choices.push(Slot {
            machine: Machine::new(self.limits.clone()),
            log: Transcript::new(index, shape),
            read: 0,
            queued: 0,
        });
    }

    fn update(&mut self, slot: usize, update: &Update<'_>, place: Place) {
        self.with(slot, |machine, log| machine.apply(update, place, log));
    }

    fn late(&mut self, slot: usize, update: &Update<'_>, place: Place) {
        self.with(slot, |machine, log| machine.late(update, place, log));
    }

    fn end(&mut self, slot: usize, end: End, place: Place) {
        self.with(slot, |machine, log| machine.end(end, place, log));
    }

    fn fail(&mut self, slot: usize, end: End, place: Place) {
        self.with(slot, |machine, log| machine.fail(end, place, log));
    }

    fn stream(&mut self, event: Stamped<Text>) {
        self.queue.push_back(Item::Stream(Box::new(event)));
    }
}

impl Decoder {
    /// What a framing error means for the stream.
    #[must_use]
    pub fn framing(&self, error: FrameError) -> StreamError {
        let event = self.events();
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
}

#[cfg(test)]
mod tests;
