//! Counts the tokens that surround a call, beside the tool's name and the arguments.
//!
//! The constants were fitted on recorded answers and requests, as docs/usage.md describes.

use super::tokenizer::{Framing, Tokenizer, sum};

/// A call of a tool: its name, and its arguments as text.
pub(super) type NamedCall<'a> = (&'a str, &'a str);

/// OpenAI: the tokens around the recipient and the arguments of a call in an answer.
const OPENAI_CALL: u64 = 6;
/// OpenAI, in the history: the tokens around one call and its result. The recipient appears in both.
const OPENAI_PAST_CALL: u64 = 3;
/// OpenAI, in the history: the tokens around parallel calls and their results, beside the JSON of the calls.
const OPENAI_PAST_PARALLEL: u64 = 12;
/// Other models: the tokens around each call. It is the median of the recordings, and single models differ by more
/// than that.
const OTHER_CALL: u64 = 6;

impl Framing {
    /// Counts the tokens of the calls that one answer makes.
    pub(super) fn calls(self, calls: &[NamedCall<'_>], counter: &dyn Tokenizer) -> u64 {
        match (self, calls) {
            (_, []) => 0,
            (Self::OpenAi, [(name, arguments)]) => {
                OPENAI_CALL + recipient(name, counter) + counter.count(arguments)
            }
            (Self::OpenAi, calls) => {
                let wrapper = counter.count("multi_tool_use.parallel");
                OPENAI_CALL + wrapper + counter.count(&parallel(calls))
            }
            (Self::Other, calls) => other(calls, counter),
        }
    }

    /// Counts the tokens of calls in an earlier message of the request, including those that frame their results.
    pub(super) fn past_calls(self, calls: &[NamedCall<'_>], counter: &dyn Tokenizer) -> u64 {
        match (self, calls) {
            (_, []) => 0,
            (Self::OpenAi, [(name, arguments)]) => {
                OPENAI_PAST_CALL + 2 * recipient(name, counter) + counter.count(arguments)
            }
            (Self::OpenAi, calls) => OPENAI_PAST_PARALLEL + counter.count(&parallel(calls)),
            (Self::Other, calls) => other(calls, counter),
        }
    }
}

/// Counts the tokens of calls whose tool the request named. The model writes only the arguments.
pub(super) fn arguments(calls: &[NamedCall<'_>], counter: &dyn Tokenizer) -> u64 {
    sum(calls.iter().map(|(_, arguments)| counter.count(arguments)))
}

fn recipient(name: &str, counter: &dyn Tokenizer) -> u64 {
    counter.count(&format!("functions.{name}"))
}

fn parallel(calls: &[NamedCall<'_>]) -> String {
    let mut json = String::from("{\"tool_uses\":[");
    for (position, (name, arguments)) in calls.iter().enumerate() {
        let comma = if position > 0 { "," } else { "" };
        json.push_str(comma);
        json.push_str("{\"recipient_name\":\"functions.");
        json.push_str(name);
        json.push_str("\",\"parameters\":");
        json.push_str(arguments);
        json.push('}');
    }
    json.push_str("]}");
    json
}

fn other(calls: &[NamedCall<'_>], counter: &dyn Tokenizer) -> u64 {
    let each = |(name, arguments): &NamedCall<'_>| {
        let texts = counter.count(name).saturating_add(counter.count(arguments));
        texts.saturating_add(OTHER_CALL)
    };
    sum(calls.iter().map(each))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts characters, so that the constants are distinguishable from the texts.
    fn letters(text: &str) -> u64 {
        text.chars().count() as u64
    }

    const ONE: NamedCall<'_> = ("add", "{}");
    const OTHER: NamedCall<'_> = ("sub", "[1]");

    #[test]
    fn one_call_costs_its_recipient_and_its_arguments() {
        let functions_add = 13;
        assert_eq!(
            Framing::OpenAi.calls(&[ONE], &letters),
            6 + functions_add + 2
        );
        assert_eq!(
            Framing::OpenAi.past_calls(&[ONE], &letters),
            3 + 2 * functions_add + 2
        );
        assert_eq!(Framing::Other.calls(&[ONE], &letters), 6 + 3 + 2);
        assert_eq!(arguments(&[ONE], &letters), 2);
    }

    #[test]
    fn parallel_calls_are_one_call_that_holds_them_as_json() {
        let json = "{\"tool_uses\":[{\"recipient_name\":\"functions.add\",\"parameters\":{}},\
            {\"recipient_name\":\"functions.sub\",\"parameters\":[1]}]}";
        assert_eq!(parallel(&[ONE, OTHER]), json);
        let all = letters(json);
        let name = letters("multi_tool_use.parallel");
        assert_eq!(
            Framing::OpenAi.calls(&[ONE, OTHER], &letters),
            6 + name + all
        );
        assert_eq!(
            Framing::OpenAi.past_calls(&[ONE, OTHER], &letters),
            12 + all
        );
        assert_eq!(Framing::Other.calls(&[ONE, OTHER], &letters), 2 * 6 + 5 + 6);
    }

    #[test]
    fn no_call_costs_nothing() {
        for framing in [Framing::OpenAi, Framing::Other] {
            assert_eq!(framing.calls(&[], &letters), 0);
            assert_eq!(framing.past_calls(&[], &letters), 0);
        }
    }
}
