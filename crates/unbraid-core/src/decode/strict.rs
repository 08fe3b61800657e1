//! The ordinary chunk, in one pass of `serde_json`, borrowing from the event: what the scanner is held against.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    chunk::{Chunk, has_tokens, is_doubtful},
    fill::{Fill, Surprise, Values},
};
use crate::limits::MAX_ENTRIES;

/// The chunk, if the event is an ordinary one.
pub(super) fn chunk<'a>(text: &'a str, reasoning: &[Arc<str>]) -> Option<Chunk<'a>> {
    let mut chunk = Chunk::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let into = Fields {
        into: &mut chunk,
        reasoning,
    };
    let read = into.deserialize(&mut reader);
    let whole = matches!(read, Ok(true)) && reader.end().is_ok();
    chunk.format = chunk.recognise();
    (whole && chunk.has_choices).then_some(chunk)
}

fn not_ordinary<E: Error>(Surprise: Surprise) -> E {
    E::custom("not ordinary")
}

/// Where an object's fields go; false for `null`.
struct Fields<'t, 'k, T> {
    into: &'t mut T,
    reasoning: &'k [Arc<str>],
}

impl<'a, T: Fill<'a>> DeserializeSeed<'a> for Fields<'_, '_, T> {
    type Value = bool;
    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'a, T: Fill<'a>> Visitor<'a> for Fields<'_, '_, T> {
    type Value = bool;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_none<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_some<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(self)
    }
    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<bool, M::Error> {
        while let Some(Str(key)) = map.next_key()? {
            let mut from = Behind {
                map: &mut map,
                reasoning: self.reasoning,
            };
            self.into.fill(key, &mut from).map_err(not_ordinary)?;
        }
        self.into.done().map_err(not_ordinary)?;
        Ok(true)
    }
}

/// Where a list's entries go; false for `null`.
struct Entries<'t, 'k, T> {
    into: &'t mut Vec<T>,
    reasoning: &'k [Arc<str>],
}

impl<'a, T: Fill<'a> + Default> DeserializeSeed<'a> for Entries<'_, '_, T> {
    type Value = bool;
    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'a, T: Fill<'a> + Default> Visitor<'a> for Entries<'_, '_, T> {
    type Value = bool;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_none<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_some<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_seq(self)
    }
    fn visit_seq<S: SeqAccess<'a>>(self, mut list: S) -> Result<bool, S::Error> {
        self.into.clear();
        let (mut entry, mut weight) = (T::default(), 0);
        while let Some(is_object) = list.next_element_seed(Fields {
            into: &mut entry,
            reasoning: self.reasoning,
        })? {
            weight += entry.weight();
            if weight > MAX_ENTRIES || !is_object {
                return Err(not_ordinary(Surprise));
            }
            self.into.push(std::mem::take(&mut entry));
        }
        Ok(true)
    }
}

/// `Cow<str>` that really borrows: serde's own never does inside an `Option`.
struct Str<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for Str<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;
        impl<'a> Visitor<'a> for StrVisitor {
            type Value = Str<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Str<'a>, E> {
                Ok(Str(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Str<'a>, E> {
                Ok(Str(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(StrVisitor)
    }
}

/// An object of which a key was read.
struct Behind<'m, 'k, M> {
    map: &'m mut M,
    reasoning: &'k [Arc<str>],
}

impl<'a, M: MapAccess<'a>> Behind<'_, '_, M> {
    fn value<T: Deserialize<'a>>(&mut self) -> Result<T, Surprise> {
        self.map.next_value().map_err(|_| Surprise)
    }
}

impl<'a, M: MapAccess<'a>> Values<'a> for Behind<'_, '_, M> {
    fn reasoning_rank(&self, name: &str) -> Option<usize> {
        self.reasoning.iter().position(|known| **known == *name)
    }

    fn text(&mut self) -> Result<Option<Cow<'a, str>>, Surprise> {
        Ok(self.value::<Option<Str<'a>>>()?.map(|text| text.0))
    }

    fn number<N: Deserialize<'a> + TryFrom<u64>>(&mut self) -> Result<Option<N>, Surprise> {
        self.value()
    }

    fn raw(&mut self) -> Result<&'a str, Surprise> {
        let raw = self.value::<&'a RawValue>()?.get();
        if is_doubtful(raw) {
            Err(Surprise)
        } else {
            Ok(raw)
        }
    }

    fn logprobs(&mut self) -> Result<Option<&'a str>, Surprise> {
        match self.raw()? {
            "null" => Ok(None),
            raw if raw.starts_with('{') => Ok(Some(raw).filter(|raw| has_tokens(raw))),
            _ => Err(Surprise),
        }
    }

    fn object(&mut self, into: &mut impl Fill<'a>) -> Result<bool, Surprise> {
        let reasoning = self.reasoning;
        self.map
            .next_value_seed(Fields { into, reasoning })
            .map_err(|_| Surprise)
    }

    fn list<T: Fill<'a> + Default>(&mut self, into: &mut Vec<T>) -> Result<bool, Surprise> {
        let reasoning = self.reasoning;
        self.map
            .next_value_seed(Entries { into, reasoning })
            .map_err(|_| Surprise)
    }
}
