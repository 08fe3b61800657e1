//! Usage whose fields nobody has read yet.
//!
//! Many consumers never ask for the usage of a stream, and making the objects of its fields costs as much as several events of a
//! short stream. Of a usual report the router needs one number, which a search finds.

use std::fmt;

use super::{Known, Reported, Usage};
use crate::ChoiceIndex;

/// The usage of a stream that has closed, as text.
pub struct UnreadUsage {
    reported: Box<Reported>,
    received: Vec<(ChoiceIndex, u64)>,
    finished: bool,
    choices_per_prompt: Option<u32>,
}

impl UnreadUsage {
    /// The rest is what [`Known`] has.
    pub(crate) fn new(
        reported: Box<Reported>,
        received: Vec<(ChoiceIndex, u64)>,
        finished: bool,
        choices_per_prompt: Option<u32>,
    ) -> Self {
        Self {
            reported,
            received,
            finished,
            choices_per_prompt,
        }
    }

    /// Reads it.
    #[must_use]
    pub fn read(&self) -> Usage {
        self.reported.usage(&Known {
            received: &self.received,
            finished: self.finished,
            choices_per_prompt: self.choices_per_prompt,
        })
    }

    pub(crate) fn into_reported(self) -> Box<Reported> {
        self.reported
    }
}

/// The usage of a stream that closes.
#[derive(Debug)]
pub(crate) enum LastUsage {
    Absent,
    Read(Box<Usage>),
    /// It has numbers, which are not below what was received.
    Unread(UnreadUsage),
}

impl LastUsage {
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether fewer completion tokens were reported than deltas with text arrived (U15).
    pub(crate) fn is_below_received(&self) -> bool {
        matches!(self, Self::Read(usage) if usage.below_received)
    }
}

impl fmt::Debug for UnreadUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnreadUsage").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Source;

    fn stays_unread(reports: &[&str], received: u64) -> bool {
        let mut reported = Reported::default();
        for raw in reports {
            assert!(reported.envelope(raw, Source::Bare, None), "{raw}");
        }
        reported.may_stay_unread(&Known {
            received: &[(ChoiceIndex(0), received)],
            finished: true,
            choices_per_prompt: None,
        })
    }

    #[test]
    fn only_a_single_report_with_enough_tokens_stays_unread() {
        let usual = r#"{"prompt_tokens":5,"completion_tokens":3}"#;
        assert!(stays_unread(&[usual], 3));
        assert!(!stays_unread(&[usual], 4), "U15");
        assert!(!stays_unread(&[usual, usual], 3));
        assert!(!stays_unread(&[r#"{"output_tokens":3}"#], 3));
        assert!(!stays_unread(&[], 0));
    }
}
