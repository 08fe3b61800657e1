//! The prompts of a text completion.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::limits::MAX_PROMPTS;

/// The elements of a list of prompts.
pub(super) enum Prompts {
    /// None if there is one prompt, which may be a list of tokens.
    List(Vec<Box<RawValue>>),
    /// More than [`MAX_PROMPTS`].
    TooMany,
}

impl Prompts {
    pub(super) fn split(raw: &str) -> Self {
        // Whatever is not a list is one prompt.
        serde_json::from_str(raw).unwrap_or(Self::List(Vec::new()))
    }
}

impl<'de> Deserialize<'de> for Prompts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = Prompts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Prompts, A::Error> {
        let mut prompts = Vec::new();
        while let Some(prompt) = list.next_element::<&RawValue>()? {
            let result = if !prompt.get().starts_with(['"', '[']) {
                Prompts::List(Vec::new())
            } else if prompts.len() == MAX_PROMPTS {
                // The rest is not held: a body has room for ten million prompts.
                Prompts::TooMany
            } else {
                prompts.push(prompt.to_owned());
                continue;
            };
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(result);
        }
        Ok(Prompts::List(prompts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: Option<usize>) {
        let prompts = match Prompts::split(raw) {
            Prompts::List(prompts) => Some(prompts.len()),
            Prompts::TooMany => None,
        };
        assert_eq!(prompts, expected);
    }

    #[test]
    fn a_list_of_texts_or_of_token_lists_is_several_prompts() {
        check(r#"["a", "b"]"#, Some(2));
        check("[[1],[2,3],[4]]", Some(3));
        for one in [r#""a""#, "[1,2,3]", "[]", "null", r#"["a",1]"#] {
            check(one, Some(0));
        }
    }

    #[test]
    fn the_number_of_prompts_is_bounded_and_that_of_tokens_is_not() {
        let list = |element: &str, count| format!("[{}]", vec![element; count].join(","));
        check(&list(r#""""#, MAX_PROMPTS), Some(MAX_PROMPTS));
        check(&list(r#""""#, MAX_PROMPTS + 1), None);
        check(&list("[]", 100_000), None);
        check(&list("7", 100_000), Some(0));
    }
}
