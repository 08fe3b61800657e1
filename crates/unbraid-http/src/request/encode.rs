//! The JSON text of a request, and of the requests of a fan-out, which share all but a few fields.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::Request;

/// The bodies of a fan-out. The text that they have in common is in memory once, however many bodies there are.
#[derive(Clone)]
pub(crate) struct FanOutBodies {
    segments: Vec<Segment>,
    /// The prompts of a list, each as JSON.
    prompts: Vec<Bytes>,
    /// The number of choices of each prompt.
    n: u32,
}

#[derive(Clone)]
enum Segment {
    Shared(Bytes),
    Varying(Varying),
}

/// A value that differs from request to request.
#[derive(Clone)]
enum Varying {
    Seed(Number),
    Prompt,
}

impl Request {
    /// The fields as they are sent, including the two that are set for the caller.
    pub(super) fn sent_fields(&self) -> impl Iterator<Item = (&str, Cow<'_, Value>)> {
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
        encode(|| self.sent_fields(), |_, _| None).0
    }

    /// The bodies of requests for one choice each, `n` for each prompt.
    pub(crate) fn encode_fan_out(&self, n: u32) -> FanOutBodies {
        let prompts: Vec<Bytes> = self.prompts().iter().map(json_text).collect();
        let fields = || self.sent_fields().filter(|(name, _)| *name != "n");
        let (text, cuts) = encode(fields, |name, value| match (name, value) {
            ("seed", Value::Number(seed)) if seed.is_i64() || seed.is_u64() => {
                Some(Varying::Seed(seed.clone()))
            }
            ("prompt", _) if !prompts.is_empty() => Some(Varying::Prompt),
            _ => None,
        });
        let mut segments = Vec::new();
        let mut start = 0;
        for (offset, varying) in cuts {
            segments.push(Segment::Shared(text.slice(start..offset)));
            segments.push(Segment::Varying(varying));
            start = offset;
        }
        segments.push(Segment::Shared(text.slice(start..)));
        FanOutBodies {
            segments,
            prompts,
            n: n.max(1),
        }
    }
}

impl FanOutBodies {
    /// The body of the request for one choice, in segments.
    pub(crate) fn body(&self, index: u32) -> Vec<Bytes> {
        let bytes = |segment: &Segment| match segment {
            Segment::Shared(text) => text.clone(),
            Segment::Varying(Varying::Seed(base)) => Bytes::from(seed(base, index)),
            Segment::Varying(Varying::Prompt) => {
                let prompt = self.prompts.get((index / self.n) as usize);
                prompt.cloned().unwrap_or_default()
            }
        };
        self.segments.iter().map(bytes).collect()
    }
}

/// The seed increases from choice to choice: equal seeds would give equal answers.
fn seed(base: &Number, index: u32) -> String {
    match (base.as_i64(), base.as_u64()) {
        (Some(base), _) => base.wrapping_add(index.into()).to_string(),
        (None, Some(base)) => base.wrapping_add(index.into()).to_string(),
        (None, None) => base.to_string(),
    }
}

/// `stream_options` with `include_usage`, unless they set it themselves or are not an object.
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

/// Encodes an object as JSON text. The values for which `varying` returns something are left out, and are returned with the
/// offsets where they belong.
fn encode<'f, F>(
    fields: impl Fn() -> F,
    varying: impl Fn(&str, &Value) -> Option<Varying>,
) -> (Bytes, Vec<(usize, Varying)>)
where
    F: Iterator<Item = (&'f str, Cow<'f, Value>)>,
{
    // A prompt may have megabytes, and a buffer that doubles would need as much again while it grows. So the length is
    // counted first.
    let mut counted = Counted::new(io::sink());
    counted.object(fields(), &varying);
    let mut text = Counted::new(Vec::with_capacity(counted.written));
    let cuts = text.object(fields(), &varying);
    (Bytes::from(text.out), cuts)
}

/// Writes JSON and counts its bytes.
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
        varying: &impl Fn(&str, &Value) -> Option<Varying>,
    ) -> Vec<(usize, Varying)> {
        let mut cuts = Vec::new();
        let mut separator = "{";
        for (name, value) in fields {
            self.text(separator);
            self.json(name);
            self.text(":");
            match varying(name, &value) {
                Some(varying) => cuts.push((self.written, varying)),
                None => self.json(&value),
            }
            separator = ",";
        }
        self.text("}");
        cuts
    }

    fn json(&mut self, value: &(impl Serialize + ?Sized)) {
        serde_json::to_writer(self, value).expect("a write to memory cannot fail");
    }

    fn text(&mut self, text: &str) {
        self.write_all(text.as_bytes())
            .expect("a write to memory cannot fail");
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
