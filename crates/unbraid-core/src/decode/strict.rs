//! The ordinary chunk, in one pass of `serde_json`, borrowing from the event.
//!
//! It takes what well-behaved servers send and nothing else: at the first surprise it gives up, and the lenient
//! decoder reads the event again, field by field. Unknown fields are no surprise; they are kept as raw JSON.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::chunk::{
    Chunk, Element, REASONING, has_tokens, is_doubtful, is_padding, non_empty, number_calls, put,
    some_text,
};
use crate::{Fragment, Shape, ToolCallUpdate, limits::MAX_ENTRIES};

/// The chunk, if the event is an ordinary one.
pub(super) fn chunk(text: &str) -> Option<Chunk<'_>> {
    serde_json::from_str::<Map<Chunk<'_>>>(text)
        .ok()
        .map(|map| map.0)
}

/// A struct that is filled key by key; a repeated key is filled again, so the last value counts (E26).
trait Fill<'a>: Default {
    const WHAT: &'static str;
    fn fill<M: MapAccess<'a>>(&mut self, key: Cow<'a, str>, map: &mut M) -> Result<(), M::Error>;
    fn done<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }
    /// As how many entries it counts: with those of a list inside of it.
    fn weight(&self) -> usize {
        1
    }
}

struct Map<T>(T);

impl<'a, T: Fill<'a>> Deserialize<'a> for Map<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<T>(PhantomData<T>);
        impl<'a, T: Fill<'a>> Visitor<'a> for MapVisitor<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::WHAT)
            }
            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<T, M::Error> {
                let mut filled = T::default();
                while let Some(Str(key)) = map.next_key()? {
                    filled.fill(key, &mut map)?;
                }
                filled.done()
            }
        }
        deserializer
            .deserialize_map(MapVisitor(PhantomData))
            .map(Map)
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

fn text<'a, M: MapAccess<'a>>(map: &mut M) -> Result<Option<Cow<'a, str>>, M::Error> {
    Ok(map.next_value::<Option<Str<'a>>>()?.map(|text| text.0))
}

fn fragment<'a, M: MapAccess<'a>>(map: &mut M) -> Result<Option<Fragment<'a>>, M::Error> {
    Ok(text(map)?.map(Fragment::from))
}

/// Raw JSON that is good for a value, too; `null` is absent.
fn raw<'a, M: MapAccess<'a>>(map: &mut M) -> Result<Option<Cow<'a, str>>, M::Error> {
    let raw = map.next_value::<&'a RawValue>()?.get();
    if is_doubtful(raw) {
        return Err(M::Error::custom("not ordinary"));
    }
    Ok((raw != "null").then_some(Cow::Borrowed(raw)))
}

/// The entries of a list, of which an ordinary one has few.
struct Entries<T>(Vec<T>);

impl<'a, T: Fill<'a>> Deserialize<'a> for Entries<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);
        impl<'a, T: Fill<'a>> Visitor<'a> for EntriesVisitor<T> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<S: SeqAccess<'a>>(self, mut list: S) -> Result<Vec<T>, S::Error> {
                let mut entries: Vec<T> = Vec::new();
                let mut weight = 0;
                while let Some(Map(entry)) = list.next_element::<Map<T>>()? {
                    weight += entry.weight();
                    if weight > MAX_ENTRIES {
                        return Err(S::Error::custom("not ordinary"));
                    }
                    entries.push(entry);
                }
                Ok(entries)
            }
        }
        deserializer
            .deserialize_seq(EntriesVisitor(PhantomData))
            .map(Self)
    }
}

/// An object's raw JSON; any other value is the lenient decoder's business.
fn object<'a, M: MapAccess<'a>>(map: &mut M) -> Result<Option<Cow<'a, str>>, M::Error> {
    match raw(map)? {
        Some(raw) if !raw.starts_with('{') => Err(M::Error::custom("not ordinary")),
        raw => Ok(raw),
    }
}

/// A key whose value, if there is one, is the lenient decoder's business.
fn null_only<'a, M: MapAccess<'a>>(map: &mut M) -> Result<(), M::Error> {
    match raw(map)? {
        None => Ok(()),
        Some(_) => Err(M::Error::custom("not ordinary")),
    }
}

impl<'a> Fill<'a> for Chunk<'a> {
    const WHAT: &'static str = "a chunk";

    fn fill<M: MapAccess<'a>>(&mut self, key: Cow<'a, str>, map: &mut M) -> Result<(), M::Error> {
        match &*key {
            "id" => self.id = text(map)?,
            "created" => self.created = map.next_value()?,
            "model" => self.model = text(map)?,
            "object" => {
                if text(map)?.is_some_and(|object| object == "error") {
                    return Err(M::Error::custom("not ordinary"));
                }
            }
            "choices" => {
                self.has_choices = true;
                self.elements = map.next_value::<Entries<Element<'a>>>()?.0;
            }
            "usage" => self.usage = object(map)?.or_else(|| self.usage.take()), // U2: null takes nothing back
            "error" | "error_message" | "error_type" | "detail" | "msg" | "message" | "code"
            | "success" | "base_resp" | "x_groq" => null_only(map)?,
            key_name if is_padding(key_name) => drop(raw(map)?),
            _ => {
                if let Some(raw) = raw(map)? {
                    put(&mut self.extra, key, raw);
                }
            }
        }
        Ok(())
    }

    fn done<E: Error>(self) -> Result<Self, E> {
        if self.has_choices {
            Ok(self)
        } else {
            Err(E::custom("not ordinary"))
        }
    }
}

impl<'a> Fill<'a> for Element<'a> {
    const WHAT: &'static str = "a choice";

    fn fill<M: MapAccess<'a>>(&mut self, key: Cow<'a, str>, map: &mut M) -> Result<(), M::Error> {
        match &*key {
            "index" => self.index = Some(map.next_value()?),
            "delta" => {
                let delta: Map<Delta<'a>> = map.next_value()?;
                // E26: of two deltas only the last counts, and none of the first may stay.
                if std::mem::replace(&mut self.has_delta, true) {
                    return Err(M::Error::custom("not ordinary"));
                }
                delta.0.give(self);
            }
            "text" => {
                let text = some_text(fragment(map)?);
                if text.is_some() && self.update.content_update.is_some() {
                    return Err(M::Error::custom("not ordinary"));
                }
                self.update.content_update = text;
                self.update.shape = Shape::Text;
            }
            "finish_reason" => self.update.finish_reason = non_empty(text(map)?),
            "logprobs" => self.update.logprobs = object(map)?.filter(|raw| has_tokens(raw)),
            "usage" => self.update.usage = object(map)?,
            "message" | "error" => null_only(map)?,
            key_name if is_padding(key_name) => drop(raw(map)?),
            _ => {
                if let Some(raw) = raw(map)? {
                    put(&mut self.update.metadata, key, raw);
                }
            }
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        1 + self.update.tool_call_updates.len()
    }

    fn done<E: Error>(self) -> Result<Self, E> {
        // Either the one or the other: what has both, or neither, needs a closer look.
        if self.index.is_some() {
            Ok(self)
        } else {
            Err(E::custom("not ordinary"))
        }
    }
}

#[derive(Default)]
struct Delta<'a> {
    role: Option<Cow<'a, str>>,
    content: Option<Fragment<'a>>,
    refusal: Option<Fragment<'a>>,
    reasoning: [Option<Fragment<'a>>; REASONING.len()],
    calls: Vec<ToolCallUpdate<'a>>,
    function: Function<'a>,
    extra: super::chunk::Pairs<'a>,
}

impl<'a> Fill<'a> for Delta<'a> {
    const WHAT: &'static str = "a delta";

    fn fill<M: MapAccess<'a>>(&mut self, key: Cow<'a, str>, map: &mut M) -> Result<(), M::Error> {
        match &*key {
            "role" => self.role = non_empty(text(map)?),
            "content" => self.content = some_text(fragment(map)?),
            "refusal" => self.refusal = some_text(fragment(map)?),
            "tool_calls" => {
                let calls = map.next_value::<Option<Entries<ToolCallUpdate<'a>>>>()?;
                self.calls = calls.map_or_else(Vec::new, |calls| calls.0);
                number_calls(&mut self.calls);
            }
            "function_call" => {
                self.function = map
                    .next_value::<Option<Map<Function<'a>>>>()?
                    .map_or_else(Function::default, |map| map.0)
            }
            "reasoning_details" => null_only(map)?,
            other => match REASONING.iter().position(|name| *name == other) {
                Some(at) => {
                    if let (Some(slot), reasoning) = (self.reasoning.get_mut(at), fragment(map)?) {
                        *slot = some_text(reasoning);
                    }
                }
                None if is_padding(other) => drop(raw(map)?),
                None => {
                    if let Some(raw) = raw(map)? {
                        put(&mut self.extra, key, raw);
                    }
                }
            },
        }
        Ok(())
    }
}

impl<'a> Delta<'a> {
    fn give(self, element: &mut Element<'a>) {
        let update = &mut element.update;
        update.shape = Shape::Chat;
        update.role = self.role;
        update.content_update = self.content.or_else(|| update.content_update.take());
        update.refusal_update = self.refusal;
        update.reasoning_update = self.reasoning.into_iter().flatten().next();
        update.tool_call_updates = self.calls;
        update.function_name = self.function.name;
        update.function_arguments_update = self.function.arguments;
        element.fields = self.extra;
    }
}

#[derive(Default)]
struct Function<'a> {
    name: Option<Fragment<'a>>,
    arguments: Option<Fragment<'a>>,
}

impl<'a> Fill<'a> for Function<'a> {
    const WHAT: &'static str = "a function";

    fn fill<M: MapAccess<'a>>(&mut self, key: Cow<'a, str>, map: &mut M) -> Result<(), M::Error> {
        match &*key {
            "name" => self.name = some_text(fragment(map)?),
            "arguments" => self.arguments = some_text(fragment(map)?),
            _ => drop(raw(map)?),
        }
        Ok(())
    }
}

impl<'a> Fill<'a> for ToolCallUpdate<'a> {
    const WHAT: &'static str = "a tool call";

    fn fill<M: MapAccess<'a>>(&mut self, key: Cow<'a, str>, map: &mut M) -> Result<(), M::Error> {
        match &*key {
            "index" => self.index = map.next_value()?,
            "id" => self.id = non_empty(text(map)?),
            "type" => self.kind = non_empty(text(map)?),
            "function" => {
                let function = map
                    .next_value::<Option<Map<Function<'a>>>>()?
                    .map_or_else(Function::default, |map| map.0);
                self.name = function.name;
                self.arguments = function.arguments;
            }
            "custom" => null_only(map)?,
            _ => {
                if let Some(raw) = raw(map)? {
                    put(&mut self.extra, key, raw);
                }
            }
        }
        Ok(())
    }
}
