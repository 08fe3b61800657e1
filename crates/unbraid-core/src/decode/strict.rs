//! Reads an ordinary chunk in one pass of `serde_json`, borrowing from the event. It is the reference for the scan.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::{Fallback, FieldVisitor, ValueReader};
use crate::{
    chunk::{Chunk, has_tokens},
    limits::MAX_ENTRIES,
    node::is_doubtful,
};

/// The chunk, if the event is an ordinary one.
pub(super) fn chunk<'a>(text: &'a str, reasoning_keys: &[Arc<str>]) -> Option<Chunk<'a>> {
    let mut chunk = Chunk::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let seed = ObjectSeed {
        visitor: &mut chunk,
        reasoning_keys,
    };
    let result = seed.deserialize(&mut reader);
    // A `Fallback` arrives as an error of `serde_json`, whose type has no room for it. Which of the two it was does not
    // matter: the next path reads everything again.
    let is_complete = matches!(result, Ok(true)) && reader.end().is_ok();
    chunk.format = chunk.recognise();
    // A value without choices is left to the lenient decoder: it may be an error or foreign JSON.
    (is_complete && chunk.has_choices).then_some(chunk)
}

fn not_ordinary<E: Error>(Fallback: Fallback) -> E {
    E::custom("not ordinary")
}

/// Reads the fields of an object into a visitor; false for `null`.
struct ObjectSeed<'t, 'k, T> {
    visitor: &'t mut T,
    reasoning_keys: &'k [Arc<str>],
}

impl<'a, T: FieldVisitor<'a>> DeserializeSeed<'a> for ObjectSeed<'_, '_, T> {
    type Value = bool;
    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'a, T: FieldVisitor<'a>> Visitor<'a> for ObjectSeed<'_, '_, T> {
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
        while let Some(BorrowedStr(key)) = map.next_key()? {
            let mut value = MapValue {
                map: &mut map,
                reasoning_keys: self.reasoning_keys,
            };
            self.visitor
                .visit_field(key, &mut value)
                .map_err(not_ordinary)?;
        }
        self.visitor.finish().map_err(not_ordinary)?;
        Ok(true)
    }
}

/// Reads the entries of a list; false for `null`.
struct ListSeed<'t, 'k, T> {
    list: &'t mut Vec<T>,
    reasoning_keys: &'k [Arc<str>],
}

impl<'a, T: FieldVisitor<'a> + Default> DeserializeSeed<'a> for ListSeed<'_, '_, T> {
    type Value = bool;
    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'a, T: FieldVisitor<'a> + Default> Visitor<'a> for ListSeed<'_, '_, T> {
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
    fn visit_seq<S: SeqAccess<'a>>(self, mut seq: S) -> Result<bool, S::Error> {
        self.list.clear();
        let (mut entry, mut count) = (T::default(), 0);
        // `null` entries are declined: the lenient decoder skips them with a warning.
        while let Some(is_object) = seq.next_element_seed(ObjectSeed {
            visitor: &mut entry,
            reasoning_keys: self.reasoning_keys,
        })? {
            count += entry.entry_count();
            if count > MAX_ENTRIES || !is_object {
                return Err(not_ordinary(Fallback));
            }
            // The seed borrows the entry, so each one is read into the same place and then moved.
            self.list.push(std::mem::take(&mut entry));
        }
        Ok(true)
    }
}

/// A string that borrows if it can. The `Cow` of `serde` never borrows inside an `Option`.
struct BorrowedStr<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for BorrowedStr<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct BorrowedStrVisitor;
        impl<'a> Visitor<'a> for BorrowedStrVisitor {
            type Value = BorrowedStr<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<BorrowedStr<'a>, E> {
                Ok(BorrowedStr(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<BorrowedStr<'a>, E> {
                Ok(BorrowedStr(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(BorrowedStrVisitor)
    }
}

/// The value of a map entry whose key was read.
struct MapValue<'m, 'k, M> {
    map: &'m mut M,
    reasoning_keys: &'k [Arc<str>],
}

impl<'a, M: MapAccess<'a>> MapValue<'_, '_, M> {
    fn value<T: Deserialize<'a>>(&mut self) -> Result<T, Fallback> {
        self.map.next_value().map_err(|_| Fallback)
    }
}

impl<'a, M: MapAccess<'a>> ValueReader<'a> for MapValue<'_, '_, M> {
    fn reasoning_rank(&self, name: &str) -> Option<usize> {
        self.reasoning_keys
            .iter()
            .position(|known| **known == *name)
    }

    fn text(&mut self) -> Result<Option<Cow<'a, str>>, Fallback> {
        Ok(self.value::<Option<BorrowedStr<'a>>>()?.map(|text| text.0))
    }

    fn number<N: Deserialize<'a> + TryFrom<u64>>(&mut self) -> Result<Option<N>, Fallback> {
        self.value()
    }

    fn raw(&mut self) -> Result<&'a str, Fallback> {
        let raw = self.value::<&'a RawValue>()?.get();
        // A field that is kept as raw JSON has to be valid as a value too, or a consumer could not read it.
        if is_doubtful(raw) {
            Err(Fallback)
        } else {
            Ok(raw)
        }
    }

    fn logprobs(&mut self) -> Result<Option<&'a str>, Fallback> {
        match self.raw()? {
            "null" => Ok(None),
            raw if raw.starts_with('{') => Ok(Some(raw).filter(|raw| has_tokens(raw))),
            _ => Err(Fallback),
        }
    }

    fn object(&mut self, visitor: &mut impl FieldVisitor<'a>) -> Result<bool, Fallback> {
        let reasoning_keys = self.reasoning_keys;
        self.map
            .next_value_seed(ObjectSeed {
                visitor,
                reasoning_keys,
            })
            .map_err(|_| Fallback)
    }

    fn list<T: FieldVisitor<'a> + Default>(&mut self, list: &mut Vec<T>) -> Result<bool, Fallback> {
        let reasoning_keys = self.reasoning_keys;
        self.map
            .next_value_seed(ListSeed {
                list,
                reasoning_keys,
            })
            .map_err(|_| Fallback)
    }
}
