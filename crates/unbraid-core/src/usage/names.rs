//! The names under which providers report tokens, and what their figures include.

use super::fields::{Fields, get, number};

/// The figures of a usage object, whichever provider sent it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) prompt: Option<u64>,
    pub(super) completion: Option<u64>,
    pub(super) total: Option<u64>,
    /// Of the prompt.
    pub(super) cached: Option<u64>,
    /// Of the completion.
    pub(super) reasoning: Option<u64>,
}

impl Counts {
    /// The figures by their names. Those of chat completions take precedence.
    pub(super) fn of(fields: &Fields) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| number(fields, name).is_some());
        if has(&["prompt_tokens", "completion_tokens", "total_tokens"])
            && !has(&["input_tokens", "output_tokens"])
        {
            Self::chat(fields)
        } else if has(&["input_tokens", "output_tokens"]) {
            Self::messages(fields)
        } else if has(&[
            "promptTokenCount",
            "candidatesTokenCount",
            "totalTokenCount",
        ]) {
            Self::gemini(fields)
        } else if has(&["prompt_eval_count", "eval_count"]) {
            Self {
                prompt: number(fields, "prompt_eval_count"),
                completion: number(fields, "eval_count"),
                ..Self::default()
            }
        } else if has(&[
            "inputTokens",
            "outputTokens",
            "inputTokenCount",
            "outputTokenCount",
        ]) {
            Self::bedrock(fields)
        } else if has(&[
            "prompt_token_count",
            "generation_token_count",
            "inputTextTokenCount",
            "totalOutputTextTokenCount",
        ]) {
            Self::invoked(fields)
        } else {
            Self::cohere(fields)
        }
    }

    fn chat(fields: &Fields) -> Self {
        Self {
            prompt: number(fields, "prompt_tokens"),
            completion: number(fields, "completion_tokens"),
            total: number(fields, "total_tokens"),
            cached: inner(fields, "prompt_tokens_details", "cached_tokens")
                .or_else(|| flat_cached(fields)),
            reasoning: inner(fields, "completion_tokens_details", "reasoning_tokens")
                .or_else(|| number(fields, "reasoning_tokens")),
        }
    }

    /// Anthropic and Responses. The input of Anthropic leaves out what was read from and written to the cache.
    fn messages(fields: &Fields) -> Self {
        let prompt = number(fields, "prompt_tokens").or_else(|| {
            sum(&[
                number(fields, "input_tokens"),
                number(fields, "cache_read_input_tokens"),
                number(fields, "cache_creation_input_tokens"),
            ])
        });
        Self {
            prompt,
            completion: number(fields, "completion_tokens")
                .or_else(|| number(fields, "output_tokens")),
            total: number(fields, "total_tokens"),
            cached: number(fields, "cache_read_input_tokens")
                .or_else(|| inner(fields, "input_tokens_details", "cached_tokens"))
                .or_else(|| inner(fields, "prompt_tokens_details", "cached_tokens")),
            reasoning: inner(fields, "output_tokens_details", "reasoning_tokens")
                .or_else(|| inner(fields, "output_tokens_details", "thinking_tokens"))
                .or_else(|| inner(fields, "completion_tokens_details", "reasoning_tokens")),
        }
    }

    /// The candidates leave out the thoughts, and the prompt leaves out what tools added to it.
    fn gemini(fields: &Fields) -> Self {
        let thoughts = number(fields, "thoughtsTokenCount");
        Self {
            prompt: sum(&[
                number(fields, "promptTokenCount"),
                number(fields, "toolUsePromptTokenCount"),
            ]),
            completion: sum(&[number(fields, "candidatesTokenCount"), thoughts]),
            total: number(fields, "totalTokenCount"),
            cached: number(fields, "cachedContentTokenCount"),
            reasoning: thoughts,
        }
    }

    /// Converse, and the metrics of `invoke`. The input leaves out the cache.
    fn bedrock(fields: &Fields) -> Self {
        let either = |one, other| number(fields, one).or_else(|| number(fields, other));
        let read = either("cacheReadInputTokens", "cacheReadInputTokenCount");
        let written = either("cacheWriteInputTokens", "cacheWriteInputTokenCount");
        Self {
            prompt: sum(&[either("inputTokens", "inputTokenCount"), read, written]),
            completion: either("outputTokens", "outputTokenCount"),
            total: number(fields, "totalTokens"),
            cached: read,
            reasoning: None,
        }
    }

    /// Llama and Titan in the chunks of `invoke`, and in its answer without streaming.
    fn invoked(fields: &Fields) -> Self {
        let either = |one, other| number(fields, one).or_else(|| number(fields, other));
        Self {
            prompt: either("prompt_token_count", "inputTextTokenCount"),
            completion: either("generation_token_count", "tokenCount")
                .or_else(|| number(fields, "totalOutputTextTokenCount")),
            ..Self::default()
        }
    }

    /// The tokens, and not the units that are billed.
    fn cohere(fields: &Fields) -> Self {
        Self {
            prompt: inner(fields, "tokens", "input_tokens"),
            completion: inner(fields, "tokens", "output_tokens"),
            total: None,
            cached: number(fields, "cached_tokens"),
            reasoning: inner(fields, "tokens", "reasoning_tokens"),
        }
    }
}

/// The cached tokens of providers without details of the prompt: DeepSeek, Moonshot and Mistral.
fn flat_cached(fields: &Fields) -> Option<u64> {
    let names = [
        "prompt_cache_hit_tokens",
        "cached_tokens",
        "num_cached_tokens",
    ];
    names.iter().find_map(|name| number(fields, name))
}

fn inner(fields: &Fields, object: &str, key: &str) -> Option<u64> {
    number(get(fields, object)?.as_object()?, key)
}

/// The sum of the figures that were reported; `None` if none was.
fn sum(figures: &[Option<u64>]) -> Option<u64> {
    let figures = figures.iter().flatten().copied();
    figures.reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::{super::fields::parse, Counts};

    #[track_caller]
    fn check(raw: &str, expected: [Option<u64>; 5]) {
        let counts = Counts::of(&parse(raw).unwrap());
        let [prompt, completion, total, cached, reasoning] = expected;
        let expected = Counts {
            prompt,
            completion,
            total,
            cached,
            reasoning,
        };
        assert_eq!(counts, expected, "{raw}");
    }

    #[test]
    fn the_figures_of_every_provider_have_the_same_meaning() {
        check(
            r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}"#,
            [Some(5), Some(7), Some(12), Some(2), Some(3)],
        );
        check(
            r#"{"input_tokens":5,"output_tokens":7,"cache_read_input_tokens":100,"cache_creation_input_tokens":10}"#,
            [Some(115), Some(7), None, Some(100), None],
        );
        check(
            r#"{"input_tokens":5,"output_tokens":7,"total_tokens":12,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":6}}"#,
            [Some(5), Some(7), Some(12), Some(4), Some(6)],
        );
        check(
            r#"{"promptTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":3,"totalTokenCount":15,"cachedContentTokenCount":2}"#,
            [Some(5), Some(10), Some(15), Some(2), Some(3)],
        );
        check(
            r#"{"promptTokenCount":5,"totalTokenCount":5}"#,
            [Some(5), None, Some(5), None, None],
        );
        check(
            r#"{"total_duration":3000000000,"prompt_eval_count":5,"eval_count":7}"#,
            [Some(5), Some(7), None, None, None],
        );
        check(
            r#"{"inputTokens":5,"outputTokens":7,"totalTokens":112,"cacheReadInputTokens":100}"#,
            [Some(105), Some(7), Some(112), Some(100), None],
        );
        check(
            r#"{"inputTokenCount":5,"outputTokenCount":7,"invocationLatency":9}"#,
            [Some(5), Some(7), None, None, None],
        );
        for raw in [
            r#"{"prompt_token_count":5,"generation_token_count":7}"#,
            r#"{"inputTextTokenCount":5,"tokenCount":7}"#,
            r#"{"totalOutputTextTokenCount":7,"inputTextTokenCount":5}"#,
        ] {
            check(raw, [Some(5), Some(7), None, None, None]);
        }
        check(
            r#"{"billed_units":{"input_tokens":1,"output_tokens":7},"tokens":{"input_tokens":5,"output_tokens":7},"cached_tokens":2}"#,
            [Some(5), Some(7), None, Some(2), None],
        );
        check(r#"{"cost":1}"#, [None; 5]);
    }

    #[test]
    fn figures_outside_of_the_details_are_found() {
        for name in [
            "prompt_cache_hit_tokens",
            "cached_tokens",
            "num_cached_tokens",
        ] {
            check(
                &format!(r#"{{"prompt_tokens":5,"completion_tokens":7,"{name}":4}}"#),
                [Some(5), Some(7), None, Some(4), None],
            );
        }
        check(
            r#"{"prompt_tokens":5,"prompt_cache_hit_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}"#,
            [Some(5), None, None, Some(3), None],
        );
        check(
            r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":21,"reasoning_tokens":9}"#,
            [Some(5), Some(7), Some(21), None, Some(9)],
        );
        check(
            r#"{"input_tokens":5,"output_tokens":7,"output_tokens_details":{"thinking_tokens":6}}"#,
            [Some(5), Some(7), None, None, Some(6)],
        );
    }
}
