//! What the flat view decodes: an event at a time, a large one on another thread.

use std::{panic::resume_unwind, sync::Arc};

use unbraid_core::{
    BoxError, Config, Redact, StreamError, TransportError, Update, internal::UpdateReader,
};

use crate::apart::{self, Done};

/// What is decoded at most before other tasks have their turn, where it brings nothing.
const PORTION: usize = 256 * 1024;

/// An intake, and what it has decoded but not yet given.
pub(super) struct Flat {
    intake: UpdateReader,
    redact: Redact,
    pub(super) ready: Vec<Result<Update<'static>, StreamError>>,
    /// Nothing is decoded any more.
    pub(super) over: bool,
    /// Whether large events, too, are decoded on the task: no other thread had time for one.
    here: bool,
    /// Bytes taken since the last item, or since other tasks had their turn.
    silent: usize,
}

/// A read, and how much of it was decoded.
pub(super) struct Reading<B> {
    bytes: Bytes<B>,
    at: usize,
}

enum Bytes<B> {
    Read(B),
    /// Several reads in a row.
    Gathered(Vec<u8>),
}

/// What is to be done next.
pub(super) enum Next {
    /// An event was decoded.
    Event,
    /// A portion was decoded that held no end of an event.
    Portion,
    /// A large event may end here: [`Flat::large`].
    Large,
    /// The read is used up.
    Read,
}

impl<B: AsRef<[u8]>> Reading<B> {
    pub(super) fn new(bytes: B) -> Self {
        let bytes = Bytes::Read(bytes);
        Self { bytes, at: 0 }
    }

    pub(super) fn gathered(bytes: Vec<u8>) -> Self {
        let bytes = Bytes::Gathered(bytes);
        Self { bytes, at: 0 }
    }

    pub(super) fn is_gathered(&self) -> bool {
        matches!(self.bytes, Bytes::Gathered(_))
    }

    pub(super) fn rest(&self) -> &[u8] {
        let bytes = match &self.bytes {
            Bytes::Read(bytes) => bytes.as_ref(),
            Bytes::Gathered(bytes) => bytes,
        };
        bytes.get(self.at..).unwrap_or_default()
    }

    fn portion(&self) -> &[u8] {
        let rest = self.rest();
        rest.get(..PORTION).unwrap_or(rest)
    }

    fn is_over(&self) -> bool {
        self.rest().is_empty()
    }
}

impl Flat {
    pub(super) fn new(options: &Config) -> Self {
        Self {
            intake: UpdateReader::new(options),
            redact: options.redact.clone(),
            ready: Vec::new(),
            over: false,
            here: false,
            silent: 0,
        }
    }

    /// Decodes the next event of a read, unless it may be a large one.
    pub(super) fn next<B: AsRef<[u8]>>(&mut self, read: &mut Reading<B>) -> Next {
        if !self.here && apart::may_end_large(&self.intake, read.portion()) {
            return Next::Large;
        }
        self.decode(read)
    }

    fn decode<B: AsRef<[u8]>>(&mut self, read: &mut Reading<B>) -> Next {
        let mut input = read.portion();
        let length = input.len();
        let Self {
            intake,
            redact,
            ready,
            ..
        } = self;
        let mut keep = |update: &Update<'_>| ready.push(Ok(kept(update, redact)));
        let event = intake.next(&mut input, &mut keep);
        let taken = length - input.len();
        read.at += taken;
        self.silent = if self.ready.is_empty() {
            self.silent + taken
        } else {
            0
        };
        match event {
            None if read.is_over() => return Next::Read,
            None => return Next::Portion,
            // Events may bring nothing (S12), however many of them a read holds.
            Some(Ok(())) if self.silent >= PORTION => {
                self.silent = 0;
                return Next::Portion;
            }
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.ready.push(Err(error));
                self.over = true;
            }
        }
        Next::Event
    }

    /// As [`next`](Self::next), on another thread.
    pub(super) async fn large<B>(self, read: Reading<B>) -> (Self, Reading<B>, Next)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let job = apart((self, read), |(flat, read): &mut (Self, Reading<B>)| {
            #[cfg(test)]
            crate::tests::large::in_job(read.portion());
            flat.decode(read)
        });
        let ((mut flat, read), next, here) = job.await;
        flat.here = here;
        (flat, read, next)
    }

    /// The stream has ended, perhaps by an error. What had arrived whole comes before that, as in
    /// [`Pipeline::abort`](unbraid_core::internal::Pipeline::abort).
    pub(super) async fn end(mut self, error: Option<BoxError>) -> Self {
        if !self.here && apart::is_large(&self.intake) {
            // Boxed, so that a stream without large events has a small task.
            return Box::pin(apart(self, |flat| flat.finish(error))).await.0;
        }
        self.finish(error);
        self
    }

    fn finish(&mut self, error: Option<BoxError>) {
        let Self {
            intake,
            redact,
            ready,
            ..
        } = self;
        // An event that has arrived but for its blank line is part of the answer (X14).
        let last = intake.finish(&mut |update| ready.push(Ok(kept(update, redact))));
        let error = match (error, last) {
            (Some(error), _) => {
                let error = TransportError::new(intake.bytes(), error);
                Some(StreamError::Transport(Arc::new(error)))
            }
            (None, last) => last.and_then(Result::err),
        };
        ready.extend(error.map(Err));
        self.over = true;
    }
}

/// An error is given without secrets here, too: what follows may print it.
fn kept(update: &Update<'_>, redact: &Redact) -> Update<'static> {
    let redacted = redact.update(update);
    redacted.unwrap_or_else(|| update.clone().into_owned())
}

/// Works on another thread, and says whether it had to be this one. A panic there is one here; what was worked on is lost
/// with the stream.
async fn apart<T, R, W>(value: T, work: W) -> (T, R, bool)
where
    T: Send + 'static,
    R: Send + 'static,
    W: FnOnce(&mut T) -> R + Send + 'static,
{
    let Done {
        value,
        result,
        here,
    } = apart::apart(value, work).await;
    match result {
        Ok(result) => (value, result, here),
        Err(panic) => resume_unwind(panic),
    }
}
