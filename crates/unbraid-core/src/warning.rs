//! Warnings: deviations from the format that were tolerated.

use std::{borrow::Cow, fmt};

use crate::{ChoiceIndex, EventIndex};

/// A deviation that was tolerated: which rule, on which choice, in which event.
///
/// It never contains payload, only lengths and offsets.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {oops}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n");
/// demux.finish();
/// assert_eq!(demux.warnings()[0].code, "X13");
/// assert_eq!(demux.warnings()[0].event_index.0, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The id of the rule in `docs/edge-cases.md`, for example `X13` for a chunk that was skipped.
    pub code: &'static str,
    /// The choice that it concerns; `None` for the stream.
    pub choice: Option<ChoiceIndex>,
    /// The server-sent event.
    pub event_index: EventIndex,
    /// What happened, in one lower-case fragment.
    pub message: Cow<'static, str>,
}

impl Warning {
    /// A warning about the whole stream.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::Warning;
    /// assert_eq!(Warning::new("E8", 3, "index missing").to_string(), "event 3: index missing (E8)");
    /// ```
    #[must_use]
    pub fn new(
        code: &'static str,
        event_index: impl Into<EventIndex>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            code,
            choice: None,
            event_index: event_index.into(),
            message: message.into(),
        }
    }

    /// The same warning about one choice.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Warning};
    ///
    /// let warning = Warning::new("E8", 3, "the choice index is missing").with_choice(ChoiceIndex(0));
    /// assert_eq!(warning.to_string(), "event 3: choice 0: the choice index is missing (E8)");
    /// ```
    #[must_use]
    pub fn with_choice(mut self, choice: ChoiceIndex) -> Self {
        self.choice = Some(choice);
        self
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: ", self.event_index)?;
        if let Some(choice) = self.choice {
            write!(f, "choice {choice}: ")?;
        }
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// Warnings up to a bound. A deviation that a server repeats in every chunk is kept once per choice, a lost chunk each time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings {
    kept: Vec<Warning>,
    dropped: u64,
}

impl Warnings {
    /// Keeps the warning if it is new and there is room; true if it was kept.
    pub(crate) fn keep(&mut self, warning: &Warning, max: usize) -> bool {
        let each_time = matches!(
            warning.code,
            "C14" | "E11" | "M8" | "S19" | "S21" | "S27" | "T27" | "T28" | "X13"
        );
        let known = |w: &Warning| w.code == warning.code && w.choice == warning.choice;
        if !each_time && self.kept.iter().any(known) {
            return false;
        }
        if self.kept.len() >= max {
            self.dropped += 1;
            return false;
        }
        self.kept.push(warning.clone());
        true
    }

    /// Keeps a warning about the whole stream. If there is no room, it replaces the last one, because a full list mostly
    /// repeats one fault.
    pub(crate) fn keep_summary(&mut self, warning: &Warning, max: usize) -> bool {
        if max > 0 && self.kept.len() >= max && self.kept.pop().is_some() {
            self.dropped += 1;
        }
        self.keep(warning, max)
    }

    /// How many warnings found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn kept(&self) -> &[Warning] {
        &self.kept
    }
}
