//! The reader's side: the library's handles over a stream that another process produces.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};
use unbraid::{
    Completions, Config, Source, StreamError,
    internal::{self, PollSource, SourceError, SourceItem},
};
use unbraid_core::{
    ChoiceIndex, Dialect, EventIndex, Limit, LimitExceeded, TransportError, Update,
    internal::UpdateReader,
};

use super::{
    ends::{LibraryEnd, choice_end, stream_end},
    window::Window,
};
use crate::{
    Batch, Command, End, Event, Journal, JournalReader, LogError, LogStore, Seq, StreamEnd,
    StreamId,
};

/// How long a producer may be silent: the default of all logs.
const LEASE: Duration = Duration::from_secs(15);

/// What is read at once.
const READ_BYTES: usize = 64 * 1024;

/// How long a command is repeated while the log is not available.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const COMMAND_PAUSE: Duration = Duration::from_millis(250);

/// Reads a stream of a log with the library's handles, from its first event: its producer is another process, or another
/// task of this one.
///
/// - A stream that is still written is followed. It may not exist yet; one that does not appear within 15 seconds ends with
///   [`LogError::Unknown`](crate::LogError::Unknown) as the source of a [`StreamError::Transport`].
/// - [`Choice::cancel`](unbraid::Choice::cancel) and [`Completions::cancel`] end the handles at once, and send a command
///   through the log to the producer, which ends the choice, or the stream, for all its readers. A producer drops its body
///   with the last of its choices only if it knows their number ([`Meta::n`](crate::Meta::n)).
/// - Dropping all handles only stops reading.
/// - Reading takes the memory of the handles, as for any [`Completions`], of one event, and of about 1 MiB that was read from the
///   log and is not decoded yet: a log that is faster has to wait.
/// - The choices end as those of the producer did. If the producer is lost, or its upstream failed, the open choices end with
///   a [`Transport`](StreamError::Transport) error that has an [`EndError`](crate::EndError) as its source. No end without a
///   finish reason looks like a complete answer.
///
/// It needs a tokio runtime with a time driver, and returns handles with an error without one.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use futures::stream;
/// use unbraid_log::{LogStore, MemoryLog, MemoryOptions, StreamId, completions, record};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default())); // or one that processes share
/// let id = StreamId::random()?;
///
/// // The worker.
/// let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// let body = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let recording = record(body, Arc::clone(&log), id.clone()).await?;
///
/// // The web process.
/// let answer = completions(log, id).first().await?;
/// assert_eq!(answer.text().await?, "Hi");
/// # recording.ended().await;
/// # Ok(())
/// # }
/// ```
pub fn completions(log: Arc<dyn LogStore>, id: StreamId) -> Completions {
    Completions::builder().from_source(source(log, id))
}

/// The same as a source, for a [`CompletionsBuilder`](unbraid::CompletionsBuilder) with options, or for a merge.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use unbraid::Completions;
/// use unbraid_log::{LogStore, StreamId, source};
///
/// /// Two streams as one completion.
/// fn both(log: &Arc<dyn LogStore>, ids: [StreamId; 2]) -> Completions {
///     Completions::merge(ids.map(|id| source(Arc::clone(log), id).expect_choices(4)))
/// }
/// ```
pub fn source(log: Arc<dyn LogStore>, id: StreamId) -> Source {
    internal::source(LogSource::new(Origin::Log { log, id }))
}

/// Where the events come from.
pub(super) enum Origin {
    /// A stream that is followed once the reader runs.
    Log {
        log: Arc<dyn LogStore>,
        id: StreamId,
    },
    /// A stream of this process.
    Journal {
        journal: Journal,
        cancel: Box<dyn Fn(Command) + Send>,
    },
}

/// What is read, once it is read.
enum Input {
    Journal(JournalReader),
    Window(Window),
}

impl Input {
    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Batch, LogError>> {
        match self {
            Self::Journal(reader) => reader.poll_batch(cx, READ_BYTES),
            Self::Window(window) => window.poll_batch(cx, READ_BYTES),
        }
    }
}

/// Turns the events of a log into updates.
pub(super) struct LogSource {
    origin: Origin,
    input: Option<Input>,
    decoder: UpdateReader,
    /// The longest event.
    event_bytes: usize,
    /// The event that is decoded, as an event of a stream.
    frame: Vec<u8>,
    /// The choices whose finish reason was decoded.
    reasons: Vec<ChoiceIndex>,
    /// Choices that were cut off, or have failed, in a dialect that holds something back. They end with the next event, or after
    /// what was held back until the end of the body.
    cut: Vec<(ChoiceIndex, End)>,
    /// The first parts of a long event, together no longer than an event may be.
    parts: Vec<u8>,
    last: Seq,
    end: Option<StreamEnd>,
}

impl LogSource {
    pub(super) fn new(origin: Origin) -> Self {
        let config = Config::default();
        Self {
            origin,
            input: None,
            decoder: UpdateReader::new(&config),
            event_bytes: config.limits.event_bytes,
            frame: Vec::new(),
            reasons: Vec::new(),
            cut: Vec::new(),
            parts: Vec::new(),
            last: Seq::START,
            end: None,
        }
    }

    fn open(&mut self) -> Result<&mut Input, StreamError> {
        if self.input.is_none() {
            self.input = Some(match &self.origin {
                Origin::Journal { journal, .. } => Input::Journal(journal.reader(Seq::START)),
                Origin::Log { log, id } => {
                    if !internal::has_time_driver() {
                        return Err(StreamError::NoTimeDriver);
                    }
                    Input::Window(Window::start(Arc::clone(log), id.clone(), LEASE))
                }
            });
        }
        self.input.as_mut().ok_or(StreamError::Lost)
    }

    /// Keeps a part of an event, if the event is not too long with it.
    fn keep_part(&mut self, payload: &[u8]) -> Result<(), StreamError> {
        if self.parts.len() + payload.len() > self.event_bytes {
            let error = LimitExceeded::new(Limit::Event, self.event_bytes as u64);
            return Err(StreamError::Limit(error));
        }
        self.parts.extend_from_slice(payload);
        Ok(())
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Result<(), StreamError> {
        match *event {
            Event::Part { payload } => self.keep_part(payload)?,
            Event::Chunk { name, payload, .. } | Event::Error { name, payload } => {
                self.end_cut(accept);
                write_frame(name, &[&self.parts, payload], &mut self.frame);
                self.parts.clear();
                self.decode(accept)?;
            }
            // The end that follows says the same, and how: a reason in it would look like that of a complete answer.
            Event::Synthetic { .. } => self.parts.clear(),
            Event::ChoiceEnd { choice, end, .. } if self.may_follow(end) => {
                self.cut.push((choice, end));
            }
            Event::ChoiceEnd {
                choice,
                end,
                finish_reason,
            } => {
                // A dialect may report the reason at the end of the body only, where there is no event with it.
                if let Some(reason) = finish_reason.filter(|_| !self.reasons.contains(&choice)) {
                    let last = EventIndex(self.decoder.events().saturating_sub(1));
                    let mut update = Update::default().with_event_index(last).with_choice(choice);
                    update.finish_reason = Some(reason.into());
                    accept(SourceItem::Update(&update));
                } else if end == End::Cancelled {
                    self.decoder
                        .flush(choice, &mut |update| accept(SourceItem::Update(update)));
                }
                accept(SourceItem::ChoiceEnd(choice, choice_end(end)));
            }
        }
        Ok(())
    }

    /// Whether what a dialect has held back may still follow this end of a choice.
    fn may_follow(&self, end: End) -> bool {
        (end == End::Interrupted || end.is_error()) && self.decoder.may_hold_back()
    }

    fn end_cut(&mut self, accept: &mut dyn FnMut(SourceItem<'_>)) {
        for (choice, end) in self.cut.drain(..) {
            accept(SourceItem::ChoiceEnd(choice, choice_end(end)));
        }
    }

    fn decode(&mut self, accept: &mut dyn FnMut(SourceItem<'_>)) -> Result<(), StreamError> {
        let Self {
            frame,
            decoder,
            reasons,
            ..
        } = self;
        let mut input = &**frame;
        while let Some(event) = decoder.next(&mut input, &mut |update| {
            if let (Some(choice), Some(_)) = (update.choice, &update.finish_reason)
                && !reasons.contains(&choice)
            {
                reasons.push(choice);
            }
            accept(SourceItem::Update(update));
        }) {
            event?;
        }
        Ok(())
    }

    /// The end of the stream, after its last event.
    fn end(
        &mut self,
        end: &StreamEnd,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Result<(), StreamError> {
        let stream_end = stream_end(end.end);
        let Self { decoder, cut, .. } = self;
        // What a dialect has held back comes before the ends. The log does not have the event that was cut, after which a
        // reason that was held back is not the last one (Gemini, G6): the producer has judged that.
        let mut held = |update: &Update<'_>| {
            let is_cut = cut.iter().any(|(choice, _)| Some(*choice) == update.choice);
            if is_cut && update.finish_reason.is_some() {
                let mut update = update.clone();
                update.finish_reason = None;
                accept(SourceItem::Update(&update));
            } else {
                accept(SourceItem::Update(update));
            }
        };
        match &stream_end {
            LibraryEnd::Error(error) => decoder.abort(error, &mut held),
            LibraryEnd::Done | LibraryEnd::Interrupted => {
                decoder.finish(&mut held).transpose()?;
            }
        }
        self.end_cut(accept);
        match stream_end {
            LibraryEnd::Done => {
                write_frame(None, &[b"[DONE]"], &mut self.frame);
                self.decode(accept)
            }
            LibraryEnd::Interrupted => Ok(()),
            LibraryEnd::Error(error) => Err(error),
        }
    }

    /// The next events. Ready with false at the end.
    fn poll_events(
        &mut self,
        cx: &mut Context<'_>,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Poll<Result<bool, StreamError>> {
        if let Some(end) = self.end.take() {
            return Poll::Ready(self.end(&end, accept).map(|()| false));
        }
        let batch = ready!(self.open()?.poll_batch(cx));
        let batch = batch.map_err(|error| {
            StreamError::Transport(TransportError::new(self.decoder.bytes(), error).into())
        })?;
        for (seq, event) in batch.records.iter().flat_map(crate::Record::events) {
            if seq > self.last {
                self.last = seq;
                self.event(&event, accept)?;
            }
        }
        self.end = batch.end;
        Poll::Ready(Ok(true))
    }
}

impl PollSource for LogSource {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Poll<Option<Result<(), SourceError>>> {
        self.poll_events(cx, accept).map(|read| match read {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(SourceError::Stream(error))),
        })
    }

    fn configure(&mut self, config: &Config) {
        self.event_bytes = config.limits.event_bytes;
        // What is kept are the events of a body and not its frames. Indices are folded by the router, which gets the ends, too.
        let dialect = config
            .dialect
            .filter(|dialect| *dialect != Dialect::Bedrock);
        let config = config.clone().with_expect_choices(None);
        self.decoder = UpdateReader::new(&config.with_dialect(dialect));
    }

    fn cancelled(&mut self, choice: Option<ChoiceIndex>) {
        let command = Command::Cancel(choice);
        match &self.origin {
            Origin::Journal { cancel, .. } => cancel(command),
            Origin::Log { log, id } => {
                // The reader that calls this runs in a runtime.
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(send(Arc::clone(log), id.clone(), command));
                }
            }
        }
    }
}

/// Sends a command, also while the log is not available for a moment.
async fn send(log: Arc<dyn LogStore>, id: StreamId, command: Command) {
    let sent = async {
        while let Err(error) = log.send_command(&id, command).await
            && error.is_temporary()
        {
            sleep(COMMAND_PAUSE).await;
        }
    };
    // The handles have ended, so there is nobody to report a failure to: the generation then ends by itself.
    let _sent = timeout(COMMAND_TIMEOUT, sent).await;
}

/// Writes an event as the decoder reads it. A line end in its data is white space between values.
fn write_frame(name: Option<&str>, parts: &[&[u8]], frame: &mut Vec<u8>) {
    frame.clear();
    if let Some(name) = name {
        frame.extend_from_slice(b"event: ");
        frame.extend_from_slice(name.as_bytes());
        frame.push(b'\n');
    }
    frame.extend_from_slice(b"data: ");
    for part in parts {
        for (number, line) in part.split(|byte| matches!(byte, b'\n' | b'\r')).enumerate() {
            if number > 0 {
                frame.extend_from_slice(b"\ndata: ");
            }
            frame.extend_from_slice(line);
        }
    }
    frame.extend_from_slice(b"\n\n");
}
