//! The ordinary chunk, field by field, whoever reads its JSON.
//!
//! It is what well-behaved servers send and nothing else: at the first surprise the reader gives up, and the lenient
//! decoder reads the event again. Unknown fields are no surprise; they are kept as raw JSON.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    chunk::{Chunk, Element, Pairs, is_padding, may_overflow, non_empty, number_calls, some_text},
    node,
};
use crate::{
    CompletionKind, Fragment, ToolCallUpdate,
    dialect::openai_chat,
    limits::{MAX_FIELDS, MAX_JSON_DEPTH},
};

/// How many names of reasoning an ordinary chunk may use; the lenient decoder knows any number of them.
const REASONING_SLOTS: usize = 8;

/// Something that an ordinary chunk does not hold.
#[derive(Debug)]
pub(super) struct Surprise;

/// A reader that stands behind a key: each of these takes the key's value.
pub(super) trait Values<'a> {
    /// A string; `None` for `null`.
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, Surprise>;
    /// A whole number; `None` for `null`.
    fn number<N: Deserialize<'a> + TryFrom<u64>>(&mut self) -> Result<Option<N>, Surprise>;
    /// Any value, as raw JSON that is good for a value, too.
    fn raw(&mut self) -> Result<&'a str, Surprise>;
    /// Log probabilities, as raw JSON; `None` where they hold no token (M7).
    fn logprobs(&mut self) -> Result<Option<&'a str>, Surprise>;
    /// An object's fields; false for `null`.
    fn object(&mut self, into: &mut impl Fill<'a>) -> Result<bool, Surprise>;
    /// A list's entries, of which an ordinary one has few; false for `null`.
    fn list<T: Fill<'a> + Default>(&mut self, into: &mut Vec<T>) -> Result<bool, Surprise>;

    /// The rank of a name under which reasoning comes; `None` for any other name.
    fn reasoning_rank(&self, name: &str) -> Option<usize>;

    /// Where the last value ended, if the reader knows.
    fn place(&self) -> Option<usize> {
        None
    }

    fn fragment(&mut self) -> Result<Option<Fragment<'a>>, Surprise> {
        Ok(some_text(self.text()?.map(Fragment::from)))
    }

    /// Raw JSON; `null` is absent.
    fn some_raw(&mut self) -> Result<Option<Cow<'a, str>>, Surprise> {
        let raw = self.raw()?;
        Ok((raw != "null").then_some(Cow::Borrowed(raw)))
    }

    /// An object's raw JSON; any other value is the lenient decoder's business.
    fn raw_object(&mut self) -> Result<Option<Cow<'a, str>>, Surprise> {
        match self.some_raw()? {
            Some(raw) if !raw.starts_with('{') => Err(Surprise),
            raw => Ok(raw),
        }
    }

    /// A key whose value, if there is one, is the lenient decoder's business.
    fn null_only(&mut self) -> Result<(), Surprise> {
        match self.some_raw()? {
            None => Ok(()),
            Some(_) => Err(Surprise),
        }
    }
}

/// Keeps an unknown field. A name that is known already is a surprise, since its last value may be null (E26); so is one
/// beyond the limit, since it matters which fields were left out.
fn keep<'a>(
    pairs: &mut Pairs<'a>,
    key: Cow<'a, str>,
    from: &mut impl Values<'a>,
) -> Result<(), Surprise> {
    let raw = from.some_raw()?;
    let known = pairs.iter().any(|(known, _)| *known == key);
    match raw {
        _ if known => Err(Surprise),
        Some(_) if pairs.len() >= MAX_FIELDS => Err(Surprise),
        Some(raw) => {
            pairs.push((key, raw));
            Ok(())
        }
        None => Ok(()),
    }
}

/// Reported usage: the lenient decoder warns of figures that are beyond any number (U9).
fn usage<'a>(from: &mut impl Values<'a>) -> Result<Option<Cow<'a, str>>, Surprise> {
    let usage = from.raw_object()?;
    if usage.as_deref().is_some_and(may_overflow) {
        return Err(Surprise);
    }
    Ok(usage)
}

/// What is filled key by key; a repeated key is filled again, so the last value counts (E26).
pub(super) trait Fill<'a> {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise>;
    /// All keys have come.
    fn done(&mut self) -> Result<(), Surprise> {
        Ok(())
    }
    /// As how many entries it counts: with those of a list inside of it.
    fn weight(&self) -> usize {
        1
    }
}

impl<'a> Fill<'a> for Chunk<'a> {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise> {
        match &*key {
            "id" => self.id = from.text()?,
            "created" => self.created = from.number()?,
            "model" => self.model = from.text()?,
            "object" => {
                self.object = from.text()?;
                if self.object.as_deref() == Some("error") {
                    return Err(Surprise);
                }
            }
            "choices" => {
                self.has_choices = true;
                if !from.list(&mut self.elements)? {
                    return Err(Surprise);
                }
            }
            "usage" => self.usage = usage(from)?,
            "error" | "error_message" | "error_type" | "detail" | "msg" | "message" | "code"
            | "success" | "base_resp" | "x_groq" => from.null_only()?,
            name if is_padding(name) => drop(from.raw()?),
            _ => keep(&mut self.extra, key, from)?,
        }
        Ok(())
    }
}

impl<'a> Fill<'a> for Element<'a> {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise> {
        match &*key {
            "index" => {
                self.index = from.number()?;
                self.index_end = from.place();
            }
            "delta" => {
                // E26: of two deltas only the last counts, and none of the first may stay.
                if std::mem::replace(&mut self.has_delta, true)
                    || !from.object(&mut Delta::of(self))?
                {
                    return Err(Surprise);
                }
            }
            "text" => {
                // C19: the text counts where the delta holds none.
                let text = from.fragment()?;
                if std::mem::replace(&mut self.has_text, true)
                    || (text.is_some() && self.update.content.is_some())
                {
                    return Err(Surprise);
                }
                self.update.content = self.update.content.take().or(text);
                if !self.has_delta {
                    self.update.kind = CompletionKind::Text;
                }
            }
            "finish_reason" => self.update.finish_reason = non_empty(from.text()?),
            "logprobs" => self.update.logprobs = from.logprobs()?.map(Cow::Borrowed),
            "usage" => self.update.usage = from.raw_object()?,
            "message" => self.has_message |= from.some_raw()?.is_some(),
            "error" => from.null_only()?,
            name if is_padding(name) => drop(from.raw()?),
            _ => keep(&mut self.update.metadata, key, from)?,
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        1 + self.update.tool_calls.len()
    }

    fn done(&mut self) -> Result<(), Surprise> {
        // E21: a message beside a delta only repeats what has come; in place of one it needs a closer look.
        let update = &self.update;
        let counts =
            self.has_message && update.kind == CompletionKind::Chat && !update.has_payload();
        if counts { Err(Surprise) } else { Ok(()) }
    }
}

/// A delta on its way into the entry that holds it.
struct Delta<'e, 'a> {
    element: &'e mut Element<'a>,
    content: Option<Fragment<'a>>,
    /// By the rank of its name.
    reasoning: [Option<Fragment<'a>>; REASONING_SLOTS],
    details: Option<&'a str>,
}

impl<'e, 'a> Delta<'e, 'a> {
    fn of(element: &'e mut Element<'a>) -> Self {
        Self {
            element,
            content: None,
            reasoning: Default::default(),
            details: None,
        }
    }
}

impl<'a> Fill<'a> for Delta<'_, 'a> {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise> {
        let update = &mut self.element.update;
        match &*key {
            "role" => update.role = non_empty(from.text()?),
            "content" => self.content = from.fragment()?,
            "refusal" => update.refusal = from.fragment()?,
            "tool_calls" => {
                if from.list(&mut update.tool_calls)? {
                    number_calls(&mut update.tool_calls);
                } else {
                    update.tool_calls.clear();
                }
            }
            "function_call" => {
                let mut function = Function::default();
                let _is_null = !from.object(&mut function)?;
                update.function_name = function.name;
                update.function_arguments = function.arguments;
            }
            "reasoning_details" => {
                let raw = from.raw()?;
                if self.details.replace(raw).is_some() {
                    return Err(Surprise);
                }
                if raw != "null" {
                    self.element.fields.push((key, Cow::Borrowed(raw)));
                }
            }
            other => match from.reasoning_rank(other) {
                Some(rank) => {
                    let reasoning = from.fragment()?;
                    *self.reasoning.get_mut(rank).ok_or(Surprise)? = reasoning;
                }
                None if is_padding(other) => drop(from.raw()?),
                None => keep(&mut self.element.fields, key, from)?,
            },
        }
        Ok(())
    }

    fn done(&mut self) -> Result<(), Surprise> {
        let update = &mut self.element.update;
        update.kind = CompletionKind::Chat;
        if self.content.is_some() {
            update.content = self.content.take();
        }
        update.reasoning = self.reasoning.iter_mut().find_map(Option::take);
        if let (None, Some(details)) = (&update.reasoning, self.details.take()) {
            let details = node::read(details, MAX_JSON_DEPTH).map_err(|_| Surprise)?;
            let (text, _) = openai_chat::details(&details); // halves of characters are a surprise
            update.reasoning = text;
            self.element.details_only = update.reasoning.is_some();
        }
        Ok(())
    }
}

#[derive(Default)]
struct Function<'a> {
    name: Option<Fragment<'a>>,
    arguments: Option<Fragment<'a>>,
}

impl<'a> Fill<'a> for Function<'a> {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise> {
        match &*key {
            "name" => self.name = from.fragment()?,
            "arguments" => self.arguments = from.fragment()?,
            _ => drop(from.raw()?),
        }
        Ok(())
    }
}

impl<'a> Fill<'a> for ToolCallUpdate<'a> {
    fn fill(&mut self, key: Cow<'a, str>, from: &mut impl Values<'a>) -> Result<(), Surprise> {
        match &*key {
            "index" => self.wire_index = from.number()?,
            "id" => self.id = non_empty(from.text()?),
            "type" => self.kind = non_empty(from.text()?),
            "function" => {
                let mut function = Function::default();
                let _is_null = !from.object(&mut function)?;
                self.name = function.name;
                self.arguments = function.arguments;
            }
            "custom" => from.null_only()?,
            _ => keep(&mut self.extra, key, from)?,
        }
        Ok(())
    }
}
