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
    fn only_one_report_with_enough_tokens_stays_unread() {
        let usual = r#"{"prompt_tokens":5,"completion_tokens":3}"#;
        let other = r#"{"prompt_tokens":5,"completion_tokens":4}"#;
        assert!(stays_unread(&[usual], 3));
        assert!(!stays_unread(&[usual], 4), "U15");
        assert!(stays_unread(&[usual, usual, usual], 3));
        assert!(!stays_unread(&[usual, other], 3));
        assert!(!stays_unread(&[r#"{"output_tokens":3}"#], 3));
        assert!(!stays_unread(&[], 0));
    }

    /// A report that differs in white space alone is read, and one that is equal is not.
    #[test]
    fn a_report_that_comes_again_unread_gives_the_usage_that_reading_it_gives() {
        const USUAL: &str = r#"{"prompt_tokens":5,"completion_tokens":4,"cost":0.10}"#;
        const SPACED: &str = r#"{"prompt_tokens":5, "completion_tokens":4,"cost":0.10}"#;
        const OTHER: &str = r#"{"completion_tokens":6,"prompt_tokens":5,"total_tokens":11}"#;
        let at_finish = |choice, shared, last| Source::AtFinish {
            choice: ChoiceIndex(choice),
            shared,
            last,
        };
        let after_finish = |choice, last| Source::AfterFinish {
            choice: ChoiceIndex(choice),
            last,
        };
        let sources = [
            Source::WithChoices,
            Source::Bare,
            at_finish(0, false, false),
            at_finish(1, false, true),
            at_finish(1, true, true),
            after_finish(0, false),
            after_finish(1, true),
        ];
        let usage = |taken: [Source; 3], raw: [&str; 3], received: u64, finished: bool| {
            let mut reported = Reported::default();
            for (source, raw) in taken.into_iter().zip(raw) {
                assert!(reported.envelope(raw, source, None));
            }
            let received = [(ChoiceIndex(0), received), (ChoiceIndex(1), 1)];
            let usage = reported.usage(&Known {
                received: &received,
                finished,
                choices_per_prompt: None,
            });
            format!("{usage:?} {:?}", usage.raw_json())
        };
        let mut compared = 0;
        for first in sources {
            for second in sources {
                for third in sources {
                    for (received, finished) in [(1, false), (1, true), (9, false), (9, true)] {
                        let taken = [first, second, third];
                        for (last, as_read) in [(USUAL, SPACED), (OTHER, OTHER)] {
                            let unread = [USUAL, USUAL, last];
                            let read = [USUAL, SPACED, as_read];
                            assert_eq!(
                                usage(taken, unread, received, finished),
                                usage(taken, read, received, finished),
                                "{taken:?} {last} {received} {finished}"
                            );
                            compared += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(compared, 7 * 7 * 7 * 4 * 2);
    }
}
