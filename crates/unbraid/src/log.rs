//! The log of one choice: its transcript, read by any number of cursors, written by its actor alone.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use unbraid_core::{ChoiceError, End, Options, Place, Transcript, choice::Machine};

use crate::{inbox::Batch, watched::Watched};

/// When things happened to a choice, counted from the start of the completion.
///
/// # Examples
///
/// ```
/// let timing = unbraid::Timing::default();
/// assert_eq!(timing.first_delta, None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Until its first delta was there to be read.
    pub first_delta: Option<Duration>,
    /// Until its end was.
    pub end: Option<Duration>,
}

/// What a choice's cursors read.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) transcript: Transcript,
    pub(crate) timing: Timing,
}

impl Record {
    /// How the choice's streams end: `None` while it is open, else with or without an error.
    pub(crate) fn over(&self) -> Option<Option<ChoiceError>> {
        let end = self.transcript.end()?;
        Some(if end.is_error() {
            self.transcript.outcome().and_then(Result::err)
        } else {
            None
        })
    }
}

pub(crate) type Log = Watched<Record>;

/// The one who writes a log. Whatever becomes of it, nobody is left waiting: dropped, it seals the choice as lost.
#[derive(Debug)]
pub(crate) struct Writer {
    log: Arc<Log>,
    machine: Machine,
    started: Instant,
    place: Place,
}

impl Writer {
    pub(crate) fn new(log: Arc<Log>, options: &Options, started: Instant) -> Self {
        Self {
            log,
            machine: Machine::new(options),
            started,
            place: Place::default(),
        }
    }

    /// Applies a batch: one lock, one wake.
    pub(crate) fn apply(&mut self, batch: &mut Batch) {
        let Self {
            log,
            machine,
            started,
            place,
        } = self;
        *place = batch.last_place().unwrap_or(*place);
        log.change(|record| {
            batch.apply(machine, &mut record.transcript);
            let now = || Some(started.elapsed());
            // Event 0 is the start: the first delta is the second event.
            if record.timing.first_delta.is_none() && record.transcript.visible() > 1 {
                record.timing.first_delta = now();
            }
            if record.timing.end.is_none() && record.transcript.end().is_some() {
                record.timing.end = now();
            }
        });
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.log.read(|record| record.transcript.end().is_some()) {
            return;
        }
        let Self {
            log,
            machine,
            started,
            place,
        } = self;
        log.change(|record| {
            machine.end(End::Lost, *place, &mut record.transcript);
            record.timing.end = Some(started.elapsed());
        });
    }
}
