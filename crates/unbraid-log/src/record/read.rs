//! Reads the parts of a record. No bytes make it panic or allocate.

use unbraid_core::{ChoiceIndex, limits::MAX_ENTRIES};

use crate::{ChoiceSet, End, Event, LogError, varint};

/// The rest of an encoded value.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
        }
    }

    pub(crate) fn offset(&self) -> usize {
        self.length - self.rest.len()
    }

    pub(crate) fn error(&self, what: &'static str) -> LogError {
        LogError::InvalidRecord {
            what,
            offset: self.offset(),
        }
    }

    pub(crate) fn version(&mut self, known: u8) -> Result<(), LogError> {
        match self.byte("the version")? {
            version if version == known => Ok(()),
            version => Err(LogError::UnsupportedVersion { version }),
        }
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8, LogError> {
        let Some((byte, rest)) = self.rest.split_first() else {
            return Err(self.error(what));
        };
        self.rest = rest;
        Ok(*byte)
    }

    pub(crate) fn number(&mut self, what: &'static str) -> Result<u64, LogError> {
        varint::read(&mut self.rest).ok_or_else(|| self.error(what))
    }

    fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], LogError> {
        let length = self.number(what)?;
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let Some((bytes, rest)) = split else {
            return Err(self.error(what));
        };
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a str, LogError> {
        let bytes = self.bytes(what)?;
        str::from_utf8(bytes).map_err(|_| self.error(what))
    }

    /// The name of an event, which has to fit into one line.
    fn name(&mut self) -> Result<&'a str, LogError> {
        let name = self.text("a name")?;
        if super::builder::is_name(name) {
            Ok(name)
        } else {
            Err(self.error("a name"))
        }
    }

    pub(crate) fn end_code(&mut self) -> Result<End, LogError> {
        let code = self.byte("an end")?;
        End::from_code(code).ok_or_else(|| self.error("an end"))
    }

    fn choice(&mut self) -> Result<ChoiceIndex, LogError> {
        let number = self.number("a choice")?;
        let index = u32::try_from(number).map_err(|_| self.error("a choice"))?;
        Ok(ChoiceIndex(index))
    }

    fn choices(&mut self) -> Result<ChoiceSet<'a>, LogError> {
        let count = self.number("the choices")?;
        if count > MAX_ENTRIES as u64 {
            return Err(self.error("the choices"));
        }
        let start = self.rest;
        for _ in 0..count {
            self.choice()?;
        }
        let length = start.len() - self.rest.len();
        Ok(ChoiceSet::encoded(start.get(..length).unwrap_or_default()))
    }

    pub(crate) fn event(&mut self) -> Result<Event<'a>, LogError> {
        Ok(match self.byte("an event")? {
            1 => Event::Chunk {
                choices: self.choices()?,
                name: None,
                payload: self.bytes("a payload")?,
            },
            2 => Event::Chunk {
                choices: self.choices()?,
                name: Some(self.name()?),
                payload: self.bytes("a payload")?,
            },
            3 => Event::ChoiceEnd {
                choice: self.choice()?,
                end: self.end_code()?,
                finish_reason: None,
            },
            4 => Event::ChoiceEnd {
                choice: self.choice()?,
                end: self.end_code()?,
                finish_reason: Some(self.text("a finish reason")?),
            },
            5 => Event::Synthetic {
                choices: self.choices()?,
                payload: self.bytes("a payload")?,
            },
            6 => Event::Error {
                name: None,
                payload: self.bytes("a payload")?,
            },
            7 => Event::Error {
                name: Some(self.name()?),
                payload: self.bytes("a payload")?,
            },
            8 => Event::Part {
                payload: self.bytes("a payload")?,
            },
            _ => return Err(self.error("the kind of an event")),
        })
    }

    pub(crate) fn end(&self) -> Result<(), LogError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error("bytes after the last event"))
        }
    }
}
