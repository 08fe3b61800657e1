//! Remembers the envelope of a stream, so that only fields that changed are emitted.

use std::{
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
};

/// The unknown envelope fields of a stream, with their last values.
#[derive(Default)]
pub(super) struct EnvelopeMemo {
    fields: Vec<(Box<str>, LastValue)>,
    /// How often a value has changed.
    version: u64,
}

impl EnvelopeMemo {
    /// Records a field's value; returns whether it has to be emitted.
    pub(super) fn record(&mut self, key: &str, raw: &str) -> bool {
        /// A foreign envelope has about a dozen fields. The ones beyond this number are emitted with every event.
        const MAX_FIELDS: usize = 32;
        const MAX_KEY_BYTES: usize = 1024;
        // Emitting a field again is correct, only redundant, so whatever is too large to remember is emitted again.
        if key.len() > MAX_KEY_BYTES {
            return true;
        }
        let Some((_, value)) = self.fields.iter_mut().find(|(known, _)| **known == *key) else {
            if self.fields.len() < MAX_FIELDS {
                self.fields.push((key.into(), LastValue::new(raw)));
            }
            return true;
        };
        let changed = value.replace(raw);
        // Templates compare this number, so that a match need not compare every field with its last value.
        self.version += u64::from(changed);
        changed
    }

    /// A number that differs after each change of a known field's value.
    pub(super) fn version(&self) -> u64 {
        self.version
    }
}

/// The longest value that is kept.
const MAX_TEXT_BYTES: usize = 4096;

/// A field's last value. Only the hash of a long one is kept, since it may be as long as an event.
#[derive(Debug, PartialEq)]
enum LastValue {
    Text(String),
    Hash(usize, u64),
}

impl LastValue {
    fn new(raw: &str) -> Self {
        /// The keys are random for each process, so that a server cannot choose two values with the same hash.
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        if raw.len() <= MAX_TEXT_BYTES {
            return Self::Text(raw.to_owned());
        }
        let keys = KEYS.get_or_init(RandomState::new);
        Self::Hash(raw.len(), keys.hash_one(raw))
    }

    /// Replaces the value; returns whether it changed.
    fn replace(&mut self, raw: &str) -> bool {
        // The usual case, an unchanged short value, allocates nothing.
        if matches!(self, Self::Text(known) if known == raw) {
            return false;
        }
        if let Self::Text(known) = self
            && raw.len() <= MAX_TEXT_BYTES
        {
            raw.clone_into(known); // a value that varies from event to event allocates nothing either
            return true;
        }
        let new = Self::new(raw);
        let changed = *self != new;
        *self = new;
        changed
    }
}
