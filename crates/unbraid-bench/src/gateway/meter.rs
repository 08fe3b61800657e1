//! Finds the stamps of deltas in the bytes that a client receives, whatever is around them.
//!
//! The text of a delta is `@choice.number.nanoseconds;`. Numbers of a choice count from 0.

use memchr::{memchr, memmem};

use super::Clock;

/// The longest stamp: three numbers of at most 20 digits.
const MAX_STAMP: usize = 64;

/// The text of a delta.
pub(super) fn stamp(choice: usize, number: u32, clock: Clock) -> String {
    format!("@{choice}.{number}.{};", clock.nanos())
}

/// What one client has received.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// The number that each choice has next.
    next: Vec<u32>,
    /// The beginning of a stamp, or of the end mark, at the end of the last read.
    rest: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) deltas: u64,
    /// Deltas that are missing, repeated or out of order.
    pub(super) wrong: u64,
    pub(super) is_done: bool,
}

impl Meter {
    /// Takes the bytes of a read, and reports the time stamp of each delta.
    pub(super) fn read(&mut self, bytes: &[u8], mut report: impl FnMut(u64)) {
        self.bytes += bytes.len() as u64;
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let mut input = &rest[..];
        while let Some(at) = memchr(b'@', input) {
            let Some((_, stamp)) = input.split_at_checked(at + 1) else {
                break;
            };
            match memchr(b';', stamp.get(..MAX_STAMP).unwrap_or(stamp)) {
                Some(end) => {
                    let (stamp, after) = stamp.split_at(end);
                    self.stamp(stamp, &mut report);
                    input = after;
                }
                None if stamp.len() < MAX_STAMP => {
                    self.rest = input.get(at..).unwrap_or_default().to_vec();
                    return;
                }
                None => input = stamp,
            }
        }
        self.is_done |= memmem::find(input, b"[DONE]").is_some();
        self.rest = input
            .get(input.len().saturating_sub(5)..)
            .unwrap_or_default()
            .to_vec();
    }

    fn stamp(&mut self, stamp: &[u8], report: &mut impl FnMut(u64)) {
        let text = str::from_utf8(stamp).unwrap_or_default();
        let mut numbers = text.split('.').map(str::parse::<u64>);
        let (Some(Ok(choice)), Some(Ok(number)), Some(Ok(nanos))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            self.wrong += 1;
            return;
        };
        let choice = usize::try_from(choice).unwrap_or_default();
        if choice >= self.next.len() {
            self.next.resize(choice + 1, 0);
        }
        if let Some(next) = self.next.get_mut(choice) {
            self.wrong += u64::from(u64::from(*next) != number);
            *next += 1;
        }
        self.deltas += 1;
        report(nanos);
    }
}
