//! Fills a chunk field by field, from whichever reader parses the JSON.
//!
//! This is the single definition of an ordinary chunk, which well-behaved servers send; the scan and `serde_json`
//! differ only in how they read values. Anything else is a [`Fallback`]: the lenient decoder then reads the event
//! again from its start. Unknown fields are ordinary, and are kept as raw JSON.

mod call;
mod delta;
mod parts;

use std::borrow::Cow;

use delta::DeltaFields;
pub(super) use parts::{Content, InnerPart, Part, inner_text};
use serde::Deserialize;

use crate::{
    CompletionKind, Fragment,
    chunk::{
        Chunk, Element, Pairs, has_number, is_padding, is_padding_of_p, some_reason, some_text,
        usage_json,
    },
    dialect::openai_text,
    limits::{MAX_FIELDS, MAX_JSON_DEPTH},
    node::{self, may_overflow},
};

/// How many names of reasoning fields a chunk may use; the lenient decoder has no such limit.
const REASONING_SLOTS: usize = 8;

/// The chunk is not ordinary, so the event is left to a slower path.
///
/// A visitor that is unsure returns this in place of a guess. That costs time, never correctness, because the next
/// path starts from the event's first byte.
#[derive(Debug)]
pub(super) struct Fallback;

/// Reads the value of the key that was read last.
pub(super) trait ValueReader<'a> {
    /// Reads a string; `None` for `null`.
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, Fallback>;
    /// Reads a whole number; `None` for `null`.
    fn number<N: Deserialize<'a> + TryFrom<u64>>(&mut self) -> Result<Option<N>, Fallback>;
    /// Reads any value as raw JSON that `serde_json` can also turn into a value.
    fn raw(&mut self) -> Result<&'a str, Fallback>;
    /// Reads log probabilities as raw JSON; `None` if they hold no token (M7).
    fn logprobs(&mut self) -> Result<Option<&'a str>, Fallback>;
    /// Reads the fields of an object; false for `null`.
    fn object(&mut self, visitor: &mut impl FieldVisitor<'a>) -> Result<bool, Fallback>;
    /// Reads the entries of a list, of which an ordinary chunk has few; false for `null`.
    fn list<T: FieldVisitor<'a> + Default>(&mut self, list: &mut Vec<T>) -> Result<bool, Fallback>;

    /// The rank of the name of a reasoning field; `None` for any other name.
    fn reasoning_rank(&self, name: &str) -> Option<usize>;

    /// The offset at which the last value ended, if the reader keeps offsets.
    fn last_value_end(&self) -> Option<usize> {
        None
    }

    /// Reads content that is a text. A reader may also read a list of parts; the lenient decoder reads any other value.
    fn content(&mut self) -> Result<Content<'a>, Fallback> {
        let text = self.fragment()?;
        Ok(Content {
            text,
            thinking: None,
        })
    }

    /// Reads the text of a part of such a list.
    fn part_text(&mut self) -> Result<Cow<'a, str>, Fallback> {
        self.text()?.ok_or(Fallback)
    }

    fn fragment(&mut self) -> Result<Option<Fragment<'a>>, Fallback> {
        Ok(some_text(self.text()?.map(Fragment::from)))
    }

    /// Reads raw JSON; `None` for `null`.
    fn some_raw(&mut self) -> Result<Option<Cow<'a, str>>, Fallback> {
        let raw = self.raw()?;
        Ok((raw != "null").then_some(Cow::Borrowed(raw)))
    }

    /// Reads the raw JSON of an object; the lenient decoder handles any other value.
    fn raw_object(&mut self) -> Result<Option<Cow<'a, str>>, Fallback> {
        match self.some_raw()? {
            Some(raw) if !raw.starts_with('{') => Err(Fallback),
            raw => Ok(raw),
        }
    }

    /// Reads the value of a key that is ordinary only with `null`.
    fn null_only(&mut self) -> Result<(), Fallback> {
        match self.some_raw()? {
            None => Ok(()),
            Some(_) => Err(Fallback),
        }
    }
}

/// Keeps an unknown field.
///
/// A repeated name is left to the lenient decoder, since its last value may be `null` and then removes the field
/// (E26). So is a field that exceeds the limit, since it matters which fields are left out.
fn keep_unknown<'a>(
    pairs: &mut Pairs<'a>,
    key: Cow<'a, str>,
    value: &mut impl ValueReader<'a>,
) -> Result<(), Fallback> {
    let raw = value.some_raw()?;
    keep_raw(pairs, key, raw)
}

/// The same for a value that was read; `None` is null.
fn keep_raw<'a>(
    pairs: &mut Pairs<'a>,
    key: Cow<'a, str>,
    raw: Option<Cow<'a, str>>,
) -> Result<(), Fallback> {
    // A linear search: an ordinary chunk has about a dozen fields, and the limit bounds the rest.
    let is_known = pairs.iter().any(|(known, _)| *known == key);
    match raw {
        _ if is_known => Err(Fallback),
        Some(_) if pairs.len() >= MAX_FIELDS => Err(Fallback),
        Some(raw) => {
            pairs.push((key, raw));
            Ok(())
        }
        None => Ok(()),
    }
}

/// Reads reported usage. The lenient decoder warns of numbers that no `f64` can hold (U9).
pub(super) fn usage<'a>(
    value: &mut impl ValueReader<'a>,
) -> Result<Option<Cow<'a, str>>, Fallback> {
    let usage = usage_with_number(value)?;
    if usage.as_deref().is_some_and(may_overflow) {
        return Err(Fallback);
    }
    Ok(usage)
}

/// Reads an object that has a number. The lenient decoder finds out whether any other one reports something (U5).
fn usage_with_number<'a>(
    value: &mut impl ValueReader<'a>,
) -> Result<Option<Cow<'a, str>>, Fallback> {
    let usage = value.raw_object()?.filter(|raw| raw != "{}");
    match &usage {
        Some(raw) if !has_number(raw) => Err(Fallback),
        _ => Ok(usage),
    }
}

/// Finds usage inside of an unknown field, which may hold an error, too.
fn usage_inside<'a>(raw: &Cow<'a, str>) -> Result<Option<Cow<'a, str>>, Fallback> {
    let Cow::Borrowed(raw) = raw else {
        return Err(Fallback);
    };
    // An escape may hide a name.
    if !["\"usage\"", "\"error\"", "\\"]
        .iter()
        .any(|sign| raw.contains(sign))
    {
        return Ok(None);
    }
    let node = node::read(raw, MAX_JSON_DEPTH).map_err(|_| Fallback)?;
    // Only the lenient decoder knows errors.
    if node.get("error").is_some_and(node::Node::has_content) {
        return Err(Fallback);
    }
    let usage = node.get("usage").and_then(usage_json);
    if usage.as_deref().is_some_and(may_overflow) {
        return Err(Fallback);
    }
    Ok(usage)
}

/// Is filled key by key. A repeated key is visited again, so that its last value counts (E26).
pub(super) trait FieldVisitor<'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback>;
    /// Called after the last key.
    fn finish(&mut self) -> Result<(), Fallback> {
        Ok(())
    }
    /// How many entries this value counts as, including those of lists inside it.
    fn entry_count(&self) -> usize {
        1
    }
}

impl<'a> FieldVisitor<'a> for Chunk<'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        match &*key {
            "id" => self.id = value.text()?,
            "created" => {
                self.created = value.number()?;
                // A template needs the span of the number, which a `u64` does not have.
                self.created_end = value.last_value_end();
            }
            "model" => self.model = value.text()?,
            "object" => {
                self.object = value.text()?;
                // An error may be in any of the fields (X1 to X8), which only the lenient decoder knows.
                if self.object.as_deref() == Some("error") {
                    return Err(Fallback);
                }
            }
            "choices" => {
                self.has_choices = true;
                if !value.list(&mut self.elements)? {
                    return Err(Fallback);
                }
            }
            "usage" => self.usage = usage(value)?,
            // Some gateways send these fields with `null` in each chunk, so null is ordinary.
            "error" | "error_message" | "error_type" | "detail" | "msg" | "message" | "code"
            | "success" | "base_resp" => value.null_only()?,
            "type" => {
                let raw = value.some_raw()?;
                let may_be_error = |raw: &str| raw.contains("error") || raw.contains('\\');
                if raw.as_deref().is_some_and(may_be_error) {
                    return Err(Fallback);
                }
                keep_raw(&mut self.extra, key, raw)?;
            }
            "x_groq" => {
                keep_unknown(&mut self.extra, key, value)?;
                let kept = self.extra.last().filter(|(name, _)| name == "x_groq");
                self.inner_usage = kept.map_or(Ok(None), |(_, raw)| usage_inside(raw))?;
            }
            name if is_padding(name) => {
                self.has_padding = true;
                value.raw()?;
            }
            "p" => {
                let raw = value.some_raw()?;
                let is_padding = raw.as_deref().is_some_and(is_padding_of_p);
                // Of repeated keys the last one counts (E26), which the lenient decoder finds.
                if self.has_alphabet || self.extra.iter().any(|(known, _)| known == "p") {
                    return Err(Fallback);
                }
                if !is_padding {
                    keep_raw(&mut self.extra, key, raw)?;
                }
                self.has_alphabet = is_padding;
            }
            _ => keep_unknown(&mut self.extra, key, value)?,
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fallback> {
        // Beside choices these are ordinary fields. Without any, they may say that the value is an error (X7, X8).
        const NAMES: [&str; 6] = [
            "error_code",
            "error_msg",
            "errors",
            "status",
            "statusCode",
            "status_code",
        ];
        let may_be_error = |(key, _): &(Cow<'a, str>, _)| NAMES.contains(&&**key);
        if self.elements.is_empty() && self.extra.iter().any(may_be_error) {
            return Err(Fallback);
        }
        // U6: usage in the envelope takes precedence, wherever it is.
        self.usage = self.usage.take().or_else(|| self.inner_usage.take());
        Ok(())
    }
}

impl<'a> FieldVisitor<'a> for Element<'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        match &*key {
            "index" => {
                self.index = value.number()?;
                // As for `created`.
                self.index_end = value.last_value_end();
            }
            "delta" => {
                // E26: only the last of two deltas counts, so no field of the first may stay.
                if std::mem::replace(&mut self.has_delta, true)
                    || !value.object(&mut DeltaFields::of(self))?
                {
                    return Err(Fallback);
                }
            }
            "text" => {
                // C19: the text counts if the delta has none.
                let text = value.fragment()?;
                // A second `text`, or one beside a delta with content, needs the rule that the lenient decoder
                // implements once.
                if std::mem::replace(&mut self.has_text, true)
                    || (text.is_some() && self.update.content.is_some())
                {
                    return Err(Fallback);
                }
                self.update.content = self.update.content.take().or(text);
                if !self.has_delta {
                    // The order of keys must not matter: a delta after the text sets the kind again.
                    self.update.kind = CompletionKind::Text;
                }
            }
            "finish_reason" => self.update.finish_reason = some_reason(value.text()?),
            "logprobs" => self.update.logprobs = value.logprobs()?.map(Cow::Borrowed),
            "usage" => self.update.usage = usage_with_number(value)?,
            "message" => self.message = value.some_raw()?.or_else(|| self.message.take()),
            "error" => value.null_only()?,
            name if is_padding(name) => {
                self.has_padding = true;
                value.raw()?;
            }
            // Beside a text these are fields of a delta, and the text may come later.
            name if openai_text::is_beside_text(name, || value.reasoning_rank(name).is_some()) => {
                value.null_only()?;
            }
            _ => keep_unknown(&mut self.update.metadata, key, value)?,
        }
        Ok(())
    }

    fn entry_count(&self) -> usize {
        1 + self.update.tool_calls.len()
    }

    fn finish(&mut self) -> Result<(), Fallback> {
        // E21: a message beside a delta only repeats it. A message in place of a delta has to be read.
        let update = &self.update;
        let is_used =
            self.message.is_some() && update.kind == CompletionKind::Chat && !update.has_payload();
        if is_used { Err(Fallback) } else { Ok(()) }
    }
}
