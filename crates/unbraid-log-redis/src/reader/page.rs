//! How many entries a reader requests at once.

use std::{mem, time::Duration};

use crate::entry::{Content, Entry};

/// How many bytes a page should have, and at most how many entries. Entries may suddenly be long, so the greatest page is 64
/// records of 512 KiB.
const BYTES: usize = 1024 * 1024;
const MAX: usize = 64;

/// The size of the first page: nothing is known of its entries, and a page that a slow link does not bring in time costs the
/// connection, which producers share.
const FIRST: usize = 2;

/// A page that took less time may be followed by one of twice its size, which a call has the time for.
const QUICK: Duration = Duration::from_millis(300);

/// The size of the next page.
pub(super) struct PageSize {
    count: usize,
    max: usize,
}

impl PageSize {
    pub(super) fn new() -> Self {
        Self {
            count: FIRST,
            max: MAX,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The next page follows this entry. It is one of many, so it makes no page larger.
    pub(super) fn follow(&mut self, entry: &Entry) {
        self.count = self.count.min(fitting(length(entry))).max(1);
    }

    /// The next page follows this one, which took this time.
    pub(super) fn fit(&mut self, page: &[Entry], took: Duration) {
        if took < QUICK {
            self.max = (2 * self.max).min(MAX);
        }
        let total: usize = page.iter().map(length).sum();
        if let Some(average) = total.checked_div(page.len()) {
            self.count = fitting(average).clamp(1, self.max);
        }
    }

    /// The page did not arrive in time: on a slow link long records would not at any attempt. Returns whether a smaller page
    /// is left. The next one has a single entry, because each further page that is too late costs the connection again.
    pub(super) fn shrink(&mut self) -> bool {
        self.max = 1;
        mem::replace(&mut self.count, 1) > 1
    }

    /// Everything was read. The link may be faster when there is the next page to read.
    pub(super) fn restore(&mut self) {
        self.max = MAX;
    }
}

/// How many entries of this length a page has.
fn fitting(length: usize) -> usize {
    BYTES / length.max(1)
}

fn length(entry: &Entry) -> usize {
    match &entry.content {
        Content::Record(Ok(record)) => record.encoded().len(),
        Content::Record(Err(_))
        | Content::Header(_)
        | Content::Seal { .. }
        | Content::Erased
        | Content::Foreign => 0,
    }
}

#[cfg(test)]
mod tests {
    use unbraid_log::{Event, RecordBuilder, Seq};

    use super::*;
    use crate::entry::EntryId;

    fn entry(length: usize) -> Entry {
        let mut builder = RecordBuilder::new(Seq(1));
        builder.push(&Event::chunk(&[0.into()], &vec![b'x'; length]));
        let record = builder.take().unwrap();
        Entry {
            id: EntryId::of(&record),
            content: Content::Record(Ok(record)),
        }
    }

    #[test]
    fn the_first_page_is_small_after_a_long_entry() {
        assert_eq!(PageSize::new().count(), 2);
        for (length, expected) in [(10, 2), (400_000, 2), (520_000, 2), (2_000_000, 1)] {
            let mut size = PageSize::new();
            size.follow(&entry(length));
            assert_eq!(size.count(), expected, "{length}");
        }
    }

    #[test]
    fn a_page_has_about_a_mebibyte() {
        for (length, expected) in [(10, 64), (40_000, 26), (400_000, 2)] {
            let mut size = PageSize::new();
            size.fit(&[entry(length), entry(length)], QUICK);
            assert_eq!(size.count(), expected, "{length}");
        }
    }

    #[test]
    fn a_page_that_was_late_is_followed_by_single_entries_and_they_grow_if_they_are_quick() {
        let mut size = PageSize::new();
        size.fit(&[entry(10), entry(10)], QUICK);
        assert_eq!(size.count(), 64);
        assert!(size.shrink());
        assert_eq!(size.count(), 1);
        assert!(!size.shrink());
        size.fit(&[entry(10)], QUICK);
        assert_eq!(size.count(), 1);
        for expected in [2, 4, 8, 16, 32, 64, 64] {
            size.fit(&[entry(10)], Duration::ZERO);
            assert_eq!(size.count(), expected);
        }
        assert!(size.shrink());
        size.restore();
        size.fit(&[entry(10)], QUICK);
        assert_eq!(size.count(), 64);
    }
}
