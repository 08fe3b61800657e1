//! `RecordBuilder`: collects events until the previous append is acknowledged.

use std::collections::VecDeque;

use unbraid_core::limits::{MAX_ENTRIES, MAX_NAME_BYTES};

use super::Record;
use crate::{ChoiceSet, Event, Seq, varint};

/// The longest payload of one event in a record, and about the longest record, in bytes. Engines have a limit of one
/// MiB by default (NATS), and a record in flight delays the ones after it.
pub const MAX_PAYLOAD_BYTES: usize = 512 * 1024;

/// Collects the events of a stream into records, and numbers them.
///
/// Events that arrive while an append is in flight go into the next record. A record that was taken does not change.
///
/// # Examples
///
/// ```
/// use unbraid_log::{End, Event, RecordBuilder, Seq};
///
/// let mut builder = RecordBuilder::new(Seq(1));
/// assert_eq!(builder.push(&Event::chunk(&[0.into()], b"{}")), Seq(1));
/// assert_eq!(builder.push(&Event::ChoiceEnd { choice: 0.into(), end: End::Finished, finish_reason: Some("stop") }), Seq(2));
/// assert_eq!(builder.next_seq(), Seq(3));
/// assert!(!builder.is_empty() && builder.bytes() > 0);
/// assert_eq!(builder.take().unwrap().last(), Seq(2));
/// assert!(builder.take().is_none() && builder.is_empty());
/// ```
///
/// A payload of more than 512 KiB takes several records. Its number is that of its last part:
///
/// ```
/// # use unbraid_log::{Event, RecordBuilder, Seq};
/// let mut builder = RecordBuilder::new(Seq(1));
/// assert_eq!(builder.push(&Event::chunk(&[0.into()], &[b'x'; 600 * 1024])), Seq(2));
/// assert!(matches!(builder.take().unwrap().events().next(), Some((Seq(1), Event::Part { .. }))));
/// assert!(matches!(builder.take().unwrap().events().next(), Some((Seq(2), Event::Chunk { .. }))));
/// ```
#[derive(Debug, Clone)]
pub struct RecordBuilder {
    first: Seq,
    count: u64,
    body: Vec<u8>,
    full: VecDeque<Record>,
    full_bytes: usize,
}

impl RecordBuilder {
    /// A builder whose first event has this number.
    #[must_use]
    pub fn new(next: Seq) -> Self {
        Self {
            first: next.max(Seq(1)),
            count: 0,
            body: Vec::new(),
            full: VecDeque::new(),
            full_bytes: 0,
        }
    }

    /// The number of the next event.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        Seq(self.first.0 + self.count)
    }

    /// Whether there is no event to take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.full.is_empty()
    }

    /// The bytes of the events that were not taken.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.full_bytes + self.body.len()
    }

    /// Appends an event and returns its number.
    ///
    /// A name that server-sent events cannot carry (with a line end, or longer than 4 KiB) is left out, and of more than
    /// 1,024 choices the first.
    pub fn push(&mut self, event: &Event<'_>) -> Seq {
        let mut event = *event;
        if let Some(mut payload) = event.payload() {
            while let Some((part, rest)) = payload.split_at_checked(MAX_PAYLOAD_BYTES)
                && !rest.is_empty()
            {
                self.push_part(&Event::Part { payload: part });
                payload = rest;
            }
            event = event.with_payload(payload);
        }
        self.push_part(&event)
    }

    fn push_part(&mut self, event: &Event<'_>) -> Seq {
        let length = event.payload().map_or(0, <[u8]>::len);
        if self.body.len() + length > MAX_PAYLOAD_BYTES {
            self.close();
        }
        let seq = self.next_seq();
        encode(event, &mut self.body);
        self.count += 1;
        seq
    }

    /// Takes the next record; `None` if there are no events.
    pub fn take(&mut self) -> Option<Record> {
        if self.full.is_empty() {
            self.close();
        }
        let record = self.full.pop_front()?;
        self.full_bytes -= record.body().len();
        Some(record)
    }

    /// Completes the record of the events so far.
    fn close(&mut self) {
        if self.count == 0 {
            return;
        }
        let next = self.next_seq();
        let record = Record::from_body(self.first, self.count, &[&self.body]);
        self.full_bytes += self.body.len();
        self.full.push_back(record);
        // The buffer of a burst is not kept for the whole stream.
        const KEPT: usize = 4096;
        self.body.clear();
        self.body.shrink_to(KEPT);
        self.first = next;
        self.count = 0;
    }
}

/// Whether a name fits into one line of an event stream.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && !name.contains(['\r', '\n', '\0'])
}

fn encode(event: &Event<'_>, bytes: &mut Vec<u8>) {
    let name = event.name().filter(|name| is_name(name));
    match event {
        Event::Chunk { choices, .. } => {
            bytes.push(if name.is_some() { 2 } else { 1 });
            write_choices(choices, bytes);
        }
        Event::ChoiceEnd {
            choice,
            end,
            finish_reason,
        } => {
            bytes.push(if finish_reason.is_some() { 4 } else { 3 });
            varint::write(choice.0.into(), bytes);
            bytes.push(end.code());
            write_bytes(finish_reason.map(str::as_bytes), bytes);
        }
        Event::Synthetic { choices, .. } => {
            bytes.push(5);
            write_choices(choices, bytes);
        }
        Event::Error { .. } => bytes.push(if name.is_some() { 7 } else { 6 }),
        Event::Part { .. } => bytes.push(8),
    }
    write_bytes(name.map(str::as_bytes), bytes);
    write_bytes(event.payload(), bytes);
}

fn write_choices(choices: &ChoiceSet<'_>, bytes: &mut Vec<u8>) {
    let count = choices.iter().take(MAX_ENTRIES).count();
    varint::write(count as u64, bytes);
    for choice in choices.iter().take(MAX_ENTRIES) {
        varint::write(choice.0.into(), bytes);
    }
}

fn write_bytes(part: Option<&[u8]>, bytes: &mut Vec<u8>) {
    if let Some(part) = part {
        varint::write(part.len() as u64, bytes);
        bytes.extend_from_slice(part);
    }
}
