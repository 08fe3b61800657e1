//! The decoder of the flat view: one event at a time, a large one on a blocking thread.

use std::panic::resume_unwind;

use unbraid_core::{
    BoxError, Config, Redact, StreamError, Update,
    internal::{UpdateReader, redact_update},
};

use crate::{
    blocking::{self, Completed},
    source::SourceError,
};

/// How many bytes are decoded at most before other tasks run, if they bring nothing.
const PORTION: usize = 256 * 1024;

/// An update reader, and what it has decoded but not yet returned.
pub(super) struct FlatDecoder {
    reader: UpdateReader,
    redact: Redact,
    pub(super) ready: Vec<Result<Update<'static>, StreamError>>,
    /// Whether nothing more is decoded.
    pub(super) done: bool,
    /// Whether the end mark ends the stream.
    ends_at_done: bool,
    /// Whether large events, too, are decoded on the task, because no blocking thread took one in time.
    inline_only: bool,
    /// The bytes taken since the last item, or since other tasks could run.
    silent_bytes: usize,
}

/// A read, and how much of it has been decoded.
pub(super) struct Reading<B> {
    bytes: Bytes<B>,
    decoded: usize,
}

enum Bytes<B> {
    One(B),
    /// Several reads in a row.
    Gathered(Vec<u8>),
}

/// The next step.
pub(super) enum Step {
    /// An event was decoded.
    Event,
    /// A portion was decoded in which no event ended.
    Portion,
    /// A large event may end here: call [`FlatDecoder::decode_large`].
    Large,
    /// The read is used up.
    ReadAgain,
}

impl<B: AsRef<[u8]>> Reading<B> {
    pub(super) fn new(bytes: B) -> Self {
        let bytes = Bytes::One(bytes);
        Self { bytes, decoded: 0 }
    }

    pub(super) fn gathered(bytes: Vec<u8>) -> Self {
        let bytes = Bytes::Gathered(bytes);
        Self { bytes, decoded: 0 }
    }

    pub(super) fn is_gathered(&self) -> bool {
        matches!(self.bytes, Bytes::Gathered(_))
    }

    pub(super) fn rest(&self) -> &[u8] {
        let bytes = match &self.bytes {
            Bytes::One(bytes) => bytes.as_ref(),
            Bytes::Gathered(bytes) => bytes,
        };
        bytes.get(self.decoded..).unwrap_or_default()
    }

    fn portion(&self) -> &[u8] {
        let rest = self.rest();
        rest.get(..PORTION).unwrap_or(rest)
    }

    fn is_used_up(&self) -> bool {
        self.rest().is_empty()
    }
}

impl FlatDecoder {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            reader: UpdateReader::new(config),
            redact: config.redact.clone(),
            ready: Vec::new(),
            done: false,
            ends_at_done: !config.usage_after_done,
            inline_only: false,
            silent_bytes: 0,
        }
    }

    /// Decodes the next event of a read, unless it may be a large one.
    pub(super) fn step<B: AsRef<[u8]>>(&mut self, reading: &mut Reading<B>) -> Step {
        if !self.inline_only && blocking::may_end_large(&self.reader, reading.portion()) {
            return Step::Large;
        }
        self.decode(reading)
    }

    fn decode<B: AsRef<[u8]>>(&mut self, reading: &mut Reading<B>) -> Step {
        let mut input = reading.portion();
        let length = input.len();
        let Self {
            reader,
            redact,
            ready,
            done,
            ends_at_done,
            silent_bytes,
            ..
        } = self;
        let mut keep = |update: &Update<'_>| {
            if !*done {
                *done = update.done && *ends_at_done; // S25: a server may never close the connection
                ready.push(Ok(redacted(update, redact)));
            }
        };
        let event = reader.next(&mut input, &mut keep);
        let taken = length - input.len();
        reading.decoded += taken;
        *silent_bytes = if ready.is_empty() {
            *silent_bytes + taken
        } else {
            0
        };
        match event {
            None if reading.is_used_up() => return Step::ReadAgain,
            None => return Step::Portion,
            // Events may bring nothing (S12), however many of them a read holds.
            Some(Ok(())) if *silent_bytes >= PORTION => {
                *silent_bytes = 0;
                return Step::Portion;
            }
            Some(Ok(())) => {}
            // What follows the end mark in its event is ignored.
            Some(Err(_)) if *done => {}
            Some(Err(error)) => {
                reader.abort(&error, &mut |update| {
                    ready.push(Ok(redacted(update, redact)));
                });
                ready.push(Err(error));
                *done = true;
            }
        }
        Step::Event
    }

    /// As [`step`](Self::step), on a blocking thread.
    pub(super) async fn decode_large<B>(self, reading: Reading<B>) -> (Self, Reading<B>, Step)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let value = (self, reading);
        let job = run_blocking(value, |(decoder, reading): &mut (Self, Reading<B>)| {
            #[cfg(test)]
            crate::tests::large::in_job(reading.portion());
            decoder.decode(reading)
        });
        let ((mut decoder, reading), step, ran_inline) = job.await;
        decoder.inline_only = ran_inline;
        (decoder, reading, step)
    }

    /// Ends the stream, perhaps by an error. What [`UpdateReader::abort`] decodes comes before the error.
    pub(super) async fn end(mut self, error: Option<BoxError>) -> Self {
        if !self.inline_only && blocking::is_large(&self.reader) {
            // Boxed, so that the task of a stream without large events stays small.
            return Box::pin(run_blocking(self, |decoder| decoder.finish(error)))
                .await
                .0;
        }
        self.finish(error);
        self
    }

    fn finish(&mut self, error: Option<BoxError>) {
        let Self {
            reader,
            redact,
            ready,
            ..
        } = self;
        let mut keep = |update: &Update<'_>| ready.push(Ok(redacted(update, redact)));
        let error = match error {
            Some(error) => {
                let error = SourceError::from(error).into_stream_error(reader.bytes());
                reader.abort(&error, &mut keep);
                Some(error)
            }
            // An event that has arrived except for its blank line is part of the answer (X14).
            None => reader.finish(&mut keep).and_then(Result::err),
        };
        ready.extend(error.map(Err));
        self.done = true;
    }
}

/// The update without the secrets that the server repeats in an error, because a caller may print it.
fn redacted(update: &Update<'_>, redact: &Redact) -> Update<'static> {
    let redacted = redact_update(redact, update);
    redacted.unwrap_or_else(|| update.clone().into_owned())
}

/// Runs work on a blocking thread, and returns whether it had to run on this one. A panic there is a panic here; the value is
/// lost with the stream.
async fn run_blocking<T, R, W>(value: T, work: W) -> (T, R, bool)
where
    T: Send + 'static,
    R: Send + 'static,
    W: FnOnce(&mut T) -> R + Send + 'static,
{
    let Completed {
        value,
        result,
        ran_inline,
    } = blocking::run_blocking(value, work).await;
    match result {
        Ok(result) => (value, result, ran_inline),
        Err(panic) => resume_unwind(panic),
    }
}
