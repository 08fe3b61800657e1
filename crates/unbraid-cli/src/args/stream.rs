//! How a stream is decoded: options of every subcommand.

use clap::ValueEnum;
use unbraid::{Completions, CompletionsBuilder};
use unbraid_core::{Config, Dialect, ThinkTags};

use super::usage::UsageMode;
use crate::usage;

/// Groups the options in the help, apart from those of a subcommand.
const HEADING: &str = "How the stream is read";

/// Selects how the stream is decoded, for every output format.
#[derive(Debug, clap::Args)]
pub(crate) struct StreamArgs {
    /// How many choices were requested; with 1, every index is read as 0
    #[arg(long, value_name = "N", global = true, help_heading = HEADING, value_parser = clap::value_parser!(u32).range(1..))]
    expect_choices: Option<u32>,
    /// End the stream at the first line that is not data, payload that is not JSON, or delta that cannot be merged with
    /// those before it; a stream of another dialect than chat or text completions needs `--dialect` with it
    #[arg(long, global = true, help_heading = HEADING)]
    strict: bool,
    /// Separate reasoning in `<think>..</think>` from the text; with `start`, the answer begins with reasoning, as from
    /// servers that send the closing tag alone
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        value_name = "FROM",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tag"
    )]
    split_think: Option<SplitThink>,
    /// Count usage that arrives after `[DONE]`; the stream is read a little longer for it
    #[arg(long, global = true, help_heading = HEADING)]
    usage_after_done: bool,
    /// The provider's format, in place of the one that the first event shows: chat, text, responses, anthropic, gemini,
    /// ollama, cohere or bedrock
    #[arg(long, value_name = "NAME", global = true, help_heading = HEADING)]
    dialect: Option<Dialect>,
    /// The names of the reasoning field in a delta, in order of preference
    #[arg(
        long,
        value_name = "NAMES",
        global = true,
        help_heading = HEADING,
        value_delimiter = ',',
        default_value = REASONING_KEYS
    )]
    reasoning_keys: Vec<String>,
}

/// The default of the library, as the option is written.
const REASONING_KEYS: &str =
    "reasoning_content,reasoning,reasoning_text,thinking,thinking_content,thought";

/// Where reasoning inside the text begins.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitThink {
    /// At `<think>`
    Tag,
    /// At the start of the answer
    Start,
}

impl StreamArgs {
    pub(crate) fn config(&self) -> Config {
        Config::default()
            .with_strict(self.strict)
            .with_expect_choices(self.expect_choices)
            .with_think_tags(match self.split_think {
                None => ThinkTags::Off,
                Some(SplitThink::Tag) => ThinkTags::Split,
                Some(SplitThink::Start) => ThinkTags::SplitOpen,
            })
            .with_usage_after_done(self.usage_after_done)
            .with_dialect(self.dialect)
            .with_reasoning_keys(self.reasoning_keys.iter().map(String::as_str))
    }

    /// The first of these options that is given, for a command that reads no stream.
    #[cfg(feature = "serve")]
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            (self.expect_choices.is_some(), "--expect-choices"),
            (self.strict, "--strict"),
            (self.split_think.is_some(), "--split-think"),
            (self.usage_after_done, "--usage-after-done"),
            (self.dialect.is_some(), "--dialect"),
            (
                self.reasoning_keys.join(",") != REASONING_KEYS,
                "--reasoning-keys",
            ),
        ];
        let first = given.into_iter().find(|(is_given, _)| *is_given);
        first.map(|(_, option)| option)
    }

    /// Without a tokenizer, tokens that the server does not report are not counted.
    pub(crate) fn builder(&self, usage: UsageMode) -> CompletionsBuilder {
        let builder = Completions::builder().config(self.config());
        match usage {
            UsageMode::Reported => builder,
            UsageMode::Estimate => usage::with_counter(builder),
        }
    }
}

#[cfg(test)]
mod tests {
    use unbraid_core::Config;

    use super::REASONING_KEYS;

    #[test]
    fn the_help_shows_the_default_of_the_library() {
        assert_eq!(Config::default().reasoning_keys.join(","), REASONING_KEYS);
    }
}
