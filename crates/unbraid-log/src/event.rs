//! `Event`: one entry of a stream's log.

use std::fmt;

use unbraid_core::ChoiceIndex;

use crate::{End, varint};

/// One entry of a stream's log. Its payload is borrowed from the record that contains it.
///
/// The end of the stream is not an event: it is the seal ([`StreamEnd`](crate::StreamEnd)), whose number is that of the
/// last event plus one.
///
/// # Examples
///
/// ```
/// use unbraid_log::Event;
///
/// let choices = [1.into()];
/// let event = Event::chunk(&choices, br#"{"choices":[{"index":1,"delta":{}}]}"#);
/// assert!(event.choices().contains(1.into()));
/// assert_eq!(event.payload().map(<[u8]>::len), Some(36));
/// assert!(!format!("{event:?}").contains("delta"), "no payload in debug output");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An event of the upstream.
    Chunk {
        /// The choices that the event concerns, as the core has routed it; none for usage and the like.
        choices: ChoiceSet<'a>,
        /// The event's name, if it has one.
        name: Option<&'a str>,
        /// The event's data, unparsed. The last part of it, if [`Part`](Self::Part) events precede it.
        payload: &'a [u8],
    },
    /// A choice ended.
    ChoiceEnd {
        /// The choice.
        choice: ChoiceIndex,
        /// How it ended.
        end: End,
        /// Its finish reason, if one has arrived.
        finish_reason: Option<&'a str>,
    },
    /// An event that the gateway added: the last chunk of a cancelled or failed choice.
    Synthetic {
        /// The choices that it concerns.
        choices: ChoiceSet<'a>,
        /// The event's data.
        payload: &'a [u8],
    },
    /// An error of the upstream that ends the stream. Views pass it on unchanged, as their last event.
    Error {
        /// The event's name, if it has one.
        name: Option<&'a str>,
        /// The event's data.
        payload: &'a [u8],
    },
    /// The next 512 KiB of a payload that is too long for one record. The event that follows has the rest, and gives the
    /// whole event its number.
    Part {
        /// The part.
        payload: &'a [u8],
    },
}

impl<'a> Event<'a> {
    /// An event of the upstream without a name.
    #[must_use]
    pub fn chunk(choices: &'a [ChoiceIndex], payload: &'a [u8]) -> Self {
        Self::Chunk {
            choices: choices.into(),
            name: None,
            payload,
        }
    }

    /// The choices that the event concerns.
    #[must_use]
    pub fn choices(&self) -> ChoiceSet<'a> {
        match *self {
            Self::Chunk { choices, .. } | Self::Synthetic { choices, .. } => choices,
            Self::ChoiceEnd { .. } | Self::Error { .. } | Self::Part { .. } => (&[][..]).into(),
        }
    }

    /// The name under which server-sent events pass it on.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::Event;
    ///
    /// assert_eq!(Event::Error { name: Some("error"), payload: b"{}" }.name(), Some("error"));
    /// ```
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        match *self {
            Self::Chunk { name, .. } | Self::Error { name, .. } => name,
            Self::ChoiceEnd { .. } | Self::Synthetic { .. } | Self::Part { .. } => None,
        }
    }

    /// The data, if it has any.
    #[must_use]
    pub fn payload(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Chunk { payload, .. }
            | Self::Synthetic { payload, .. }
            | Self::Error { payload, .. }
            | Self::Part { payload } => Some(payload),
            Self::ChoiceEnd { .. } => None,
        }
    }

    /// The same event with other data. An event without data stays as it is.
    pub(crate) fn with_payload(mut self, new: &'a [u8]) -> Self {
        match &mut self {
            Self::Chunk { payload, .. }
            | Self::Synthetic { payload, .. }
            | Self::Error { payload, .. }
            | Self::Part { payload } => *payload = new,
            Self::ChoiceEnd { .. } => {}
        }
        self
    }
}

/// Shows everything but the payload.
impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Chunk { .. } => "Chunk",
            Self::ChoiceEnd { .. } => "ChoiceEnd",
            Self::Synthetic { .. } => "Synthetic",
            Self::Error { .. } => "Error",
            Self::Part { .. } => "Part",
        };
        let mut debug = f.debug_struct(name);
        if let Self::ChoiceEnd { choice, end, .. } = self {
            debug.field("choice", choice).field("end", end);
        }
        debug
            .field("choices", &self.choices())
            .field("payload_bytes", &self.payload().map(<[u8]>::len))
            .finish()
    }
}

/// The choices that an event concerns, in the order of its entries.
///
/// # Examples
///
/// ```
/// use unbraid_log::ChoiceSet;
///
/// let list = [0.into(), 4.into()];
/// let choices = ChoiceSet::from(&list[..]);
/// assert_eq!(choices.iter().map(|choice| choice.0).collect::<Vec<_>>(), [0, 4]);
/// assert!(choices.contains(4.into()) && !choices.contains(1.into()));
/// assert!(!choices.is_empty());
/// ```
#[derive(Clone, Copy)]
pub struct ChoiceSet<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    List(&'a [ChoiceIndex]),
    /// As in a record, after it was checked.
    Encoded(&'a [u8]),
}

impl<'a> ChoiceSet<'a> {
    /// A set of encoded indices, each of which was checked to fit into 32 bits.
    pub(crate) fn encoded(bytes: &'a [u8]) -> Self {
        Self(Source::Encoded(bytes))
    }

    /// The choices.
    pub fn iter(&self) -> impl Iterator<Item = ChoiceIndex> + use<'a> {
        let (mut list, mut encoded) = match self.0 {
            Source::List(list) => (list.iter(), &[][..]),
            Source::Encoded(bytes) => ([].iter(), bytes),
        };
        std::iter::from_fn(move || {
            if let Some(choice) = list.next() {
                return Some(*choice);
            }
            let number = varint::read(&mut encoded)?;
            u32::try_from(number).ok().map(ChoiceIndex)
        })
    }

    /// Whether the event concerns this choice.
    #[must_use]
    pub fn contains(&self, choice: ChoiceIndex) -> bool {
        self.iter().any(|member| member == choice)
    }

    /// Whether the event concerns no choice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self.0 {
            Source::List(list) => list.is_empty(),
            Source::Encoded(bytes) => bytes.is_empty(),
        }
    }
}

impl<'a> From<&'a [ChoiceIndex]> for ChoiceSet<'a> {
    fn from(choices: &'a [ChoiceIndex]) -> Self {
        Self(Source::List(choices))
    }
}

impl PartialEq for ChoiceSet<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ChoiceSet<'_> {}

impl fmt::Debug for ChoiceSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|choice| choice.0))
            .finish()
    }
}
