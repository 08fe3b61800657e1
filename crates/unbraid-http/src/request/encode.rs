//! The JSON text of a request, and of the requests of a fan-out, which share all but a few fields.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::Request;

/// The bodies of a fan-out. What they have in common is held once, however many they are.
#[derive(Clone)]
pub(crate) struct EachChoice {
    segments: Vec<Segment>,
    /// The prompts of a list, each as JSON.
    prompts: Vec<Bytes>,
    /// How many choices each prompt has.
    n: u32,
}

#[derive(Clone)]
enum Segment {
    Shared(Bytes),
    Own(Own),
}

/// A value that differs from request to request.
#[derive(Clone)]
enum Own {
    Seed(Number),
    Prompt,
}

impl Request {
    /// The fields as they are sent, with the two that are set for the caller.
    pub(super) fn sent(&self) -> impl Iterator<Item = (&str, Cow<'_, Value>)> {
        let given = self.fields.iter().map(|(name, value)| {
            let sent = match name.as_str() {
                "stream" => Cow::Owned(Value::Bool(true)),
                "stream_options" if self.include_usage => Cow::Owned(with_usage(value)),
                _ => Cow::Borrowed(value),
            };
            (name.as_str(), sent)
        });
        let stream = ("stream", Value::Bool(true));
        let options = ("stream_options", with_usage(&Value::Null));
        let added = [Some(stream), self.include_usage.then_some(options)];
        let missing = |(name, _): &(&str, Value)| !self.fields.contains_key(*name);
        let added = added.into_iter().flatten().filter(missing);
        given.chain(added.map(|(name, value)| (name, Cow::Owned(value))))
    }

    /// The body as JSON text.
    pub(crate) fn encode(&self) -> Bytes {
        encode(|| self.sent(), |_, _| None).0
    }

    /// The bodies of requests of one choice each, `n` for each prompt.
    pub(crate) fn encode_each_choice(&self, n: u32) -> EachChoice {
        let prompts: Vec<Bytes> = self.prompts().iter().map(json_text).collect();
        let fields = || self.sent().filter(|(name, _)| *name != "n");
        let (text, cuts) = encode(fields, |name, value| match (name, value) {
            ("seed", Value::Number(seed)) if seed.is_i64() || seed.is_u64() => {
                Some(Own::Seed(seed.clone()))
            }
            ("prompt", _) if !prompts.is_empty() => Some(Own::Prompt),
            _ => None,
        });
        let mut segments = Vec::new();
        let mut from = 0;
        for (at, own) in cuts {
            segments.push(Segment::Shared(text.slice(from..at)));
            segments.push(Segment::Own(own));
            from = at;
        }
        segments.push(Segment::Shared(text.slice(from..)));
        EachChoice {
            segments,
            prompts,
            n: n.max(1),
        }
    }
}

impl EachChoice {
    /// The body of the request for the choice of an index alone, in parts.
    pub(crate) fn of(&self, index: u32) -> Vec<Bytes> {
        let part = |segment: &Segment| match segment {
            Segment::Shared(text) => text.clone(),
            Segment::Own(Own::Seed(base)) => Bytes::from(seed(base, index)),
            Segment::Own(Own::Prompt) => {
                let prompt = self.prompts.get((index / self.n) as usize);
                prompt.cloned().unwrap_or_default()
            }
        };
        self.segments.iter().map(part).collect()
    }
}

/// Counted up from choice to choice: equal seeds would give equal answers.
fn seed(base: &Number, index: u32) -> String {
    match (base.as_i64(), base.as_u64()) {
        (Some(base), _) => base.wrapping_add(index.into()).to_string(),
        (None, Some(base)) => base.wrapping_add(index.into()).to_string(),
        (None, None) => base.to_string(),
    }
}

/// `stream_options` with the request for usage, unless they say otherwise or are not an object.
fn with_usage(options: &Value) -> Value {
    match options {
        Value::Null => json!({ "include_usage": true }),
        Value::Object(given) => {
            let mut options = given.clone();
            options.entry("include_usage").or_insert(Value::Bool(true));
            Value::Object(options)
        }
        other => other.clone(),
    }
}

fn json_text(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

/// Gives an object as JSON text. The values that are `own` are left out, and listed with the places where they belong.
fn encode<'f, F>(
    fields: impl Fn() -> F,
    own: impl Fn(&str, &Value) -> Option<Own>,
) -> (Bytes, Vec<(usize, Own)>)
where
    F: Iterator<Item = (&'f str, Cow<'f, Value>)>,
{
    // Prompts have megabytes: a buffer that doubles would need as much again while it grows.
    let mut counted = Counted::new(io::sink());
    counted.object(fields(), &own);
    let mut text = Counted::new(Vec::with_capacity(counted.written));
    let cuts = text.object(fields(), &own);
    (Bytes::from(text.out), cuts)
}

/// Writes JSON, and counts its bytes.
struct Counted<W> {
    out: W,
    written: usize,
}

impl<W: Write> Counted<W> {
    fn new(out: W) -> Self {
        Self { out, written: 0 }
    }

    fn object<'f>(
        &mut self,
        fields: impl Iterator<Item = (&'f str, Cow<'f, Value>)>,
        own: &impl Fn(&str, &Value) -> Option<Own>,
    ) -> Vec<(usize, Own)> {
        let mut cuts = Vec::new();
        let mut before = "{";
        for (name, value) in fields {
            self.text(before);
            self.json(name);
            self.text(":");
            match own(name, &value) {
                Some(own) => cuts.push((self.written, own)),
                None => self.json(&value),
            }
            before = ",";
        }
        self.text("}");
        cuts
    }

    fn json(&mut self, value: &(impl Serialize + ?Sized)) {
        serde_json::to_writer(self, value).expect("memory takes every write");
    }

    fn text(&mut self, text: &str) {
        self.write_all(text.as_bytes())
            .expect("memory takes every write");
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
