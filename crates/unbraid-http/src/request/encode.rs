//! The JSON text of a request, and of the requests of a fan-out, which share all but a few fields.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::{Request, RequestError, requested::Choices, wire::Fields};
use crate::provider::Provider;

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

    /// The body for a provider as JSON text.
    pub(crate) fn encode(&self, provider: Provider) -> Result<Bytes, RequestError> {
        let fields = self.wire_fields(provider, Choices::AsRequested)?;
        Ok(encode(&fields, |_, _| Part::Whole).0)
    }

    /// The bodies of requests to a provider for one choice each, `n` for each prompt.
    pub(crate) fn encode_fan_out(
        &self,
        provider: Provider,
        n: u32,
    ) -> Result<FanOutBodies, RequestError> {
        let prompts: Vec<Bytes> = self.prompts().iter().map(json_text).collect();
        let fields = self.wire_fields(provider, Choices::One)?;
        let (parent, seed) = provider.seed_path();
        let (text, cuts) = encode(&fields, |path, value| match (path, value) {
            ([name], Value::Number(number)) if parent.is_none() && *name == seed => varying(number),
            ([outer, name], Value::Number(number)) if parent == Some(*outer) && *name == seed => {
                varying(number)
            }
            ([outer], Value::Object(_)) if parent == Some(*outer) => Part::Fields,
            (["prompt"], _) if !prompts.is_empty() => Part::Varying(Varying::Prompt),
            _ => Part::Whole,
        });
        let mut segments = Vec::new();
        let mut start = 0;
        for (offset, varying) in cuts {
            segments.push(Segment::Shared(text.slice(start..offset)));
            segments.push(Segment::Varying(varying));
            start = offset;
        }
        segments.push(Segment::Shared(text.slice(start..)));
        Ok(FanOutBodies {
            segments,
            prompts,
            n: n.max(1),
        })
    }
}

/// How a value is written.
enum Part {
    /// As it is.
    Whole,
    /// Field by field.
    Fields,
    /// Not at all: it differs from request to request.
    Varying(Varying),
}

fn varying(seed: &Number) -> Part {
    if seed.is_i64() || seed.is_u64() {
        return Part::Varying(Varying::Seed(seed.clone()));
    }
    Part::Whole
}

impl FanOutBodies {
    /// The body of the request for one choice, in segments.
    pub(crate) fn body(&self, index: u32) -> Vec<Bytes> {
        let bytes = |segment: &Segment| match segment {
            Segment::Shared(text) => text.clone(),
            Segment::Varying(Varying::Seed(base)) => Bytes::from(seed_of(base, index).to_string()),
            Segment::Varying(Varying::Prompt) => {
                let prompt = self.prompts.get((index / self.n) as usize);
                prompt.cloned().unwrap_or_default()
            }
        };
        self.segments.iter().map(bytes).collect()
    }
}

/// The seed of a request for one choice. It increases from choice to choice: equal seeds would give equal answers. A seed that is
/// not a whole number stays as it is.
pub fn seed_of(base: &Number, index: u32) -> Number {
    match (base.as_i64(), base.as_u64()) {
        (Some(base), _) => base.wrapping_add(index.into()).into(),
        (None, Some(base)) => base.wrapping_add(index.into()).into(),
        (None, None) => base.clone(),
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

/// Encodes an object as JSON text. The values that vary are left out, and are returned with the offsets where they belong.
/// `part` receives the path of a value.
fn encode(
    fields: &Fields<'_>,
    part: impl Fn(&[&str], &Value) -> Part,
) -> (Bytes, Vec<(usize, Varying)>) {
    // A prompt may have megabytes, and a buffer that doubles would need as much again while it grows. So the length is
    // counted first.
    let mut counted = Counted::new(io::sink());
    counted.fields(fields, &part);
    let mut text = Counted::new(Vec::with_capacity(counted.written));
    text.fields(fields, &part);
    (Bytes::from(text.out), text.cuts)
}

/// Writes JSON and counts its bytes.
struct Counted<W> {
    out: W,
    written: usize,
    cuts: Vec<(usize, Varying)>,
}

impl<W: Write> Counted<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            written: 0,
            cuts: Vec::new(),
        }
    }

    fn fields(&mut self, fields: &Fields<'_>, part: &impl Fn(&[&str], &Value) -> Part) {
        let fields = fields.iter().map(|(name, value)| (&**name, &**value));
        self.object(fields, |out, name, value| {
            match (part(&[name], value), value) {
                (Part::Varying(varying), _) => out.cut(varying),
                (Part::Fields, Value::Object(inner)) => {
                    let inner = inner.iter().map(|(name, value)| (name.as_str(), value));
                    out.object(inner, |out, member, value| {
                        match part(&[name, member], value) {
                            Part::Varying(varying) => out.cut(varying),
                            Part::Whole | Part::Fields => out.json(value),
                        }
                    });
                }
                (Part::Whole | Part::Fields, value) => out.json(value),
            }
        });
    }

    fn object<'f>(
        &mut self,
        fields: impl Iterator<Item = (&'f str, &'f Value)>,
        mut write: impl FnMut(&mut Self, &'f str, &'f Value),
    ) {
        self.text("{");
        let mut separator = "";
        for (name, value) in fields {
            self.text(separator);
            self.json(name);
            self.text(":");
            write(self, name, value);
            separator = ",";
        }
        self.text("}");
    }

    fn cut(&mut self, varying: Varying) {
        self.cuts.push((self.written, varying));
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
