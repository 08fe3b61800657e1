//! What can be written behind `unbraid`.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::{
    Parser, Subcommand, ValueEnum, ValueHint,
    builder::{OsStringValueParser, TypedValueParser},
};
use clap_complete::Shell;
use unbraid_core::ThinkTags;

use crate::{chat::Chat, input::Source, live::Display, replay::Manner};

/// Takes the answer stream of a language model apart: one text and one list of tool calls for every choice.
#[derive(Debug, Parser)]
#[command(name = "unbraid", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the stream is read, whatever is made of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Reading {
    /// How many choices were asked for; with 1 every index is read as 0
    #[arg(long, value_name = "N", global = true, value_parser = clap::value_parser!(u32).range(1..))]
    expect_choices: Option<u32>,
    /// End at the first line that is not data, payload that is not JSON, or delta that does not fit those before it
    #[arg(long, global = true)]
    strict: bool,
    /// Separate reasoning in `<think>..</think>` from the text; with `start` the answer begins inside, where a server
    /// sends the closing tag alone
    #[arg(
        long,
        global = true,
        value_name = "FROM",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tag"
    )]
    split_think: Option<SplitThink>,
    /// Count usage that comes after `[DONE]`; the stream is read a little longer for it
    #[arg(long, global = true)]
    usage_after_done: bool,
    /// The names under which reasoning comes in a delta, the preferred one first
    #[arg(long, value_name = "NAMES", global = true, value_delimiter = ',')]
    reasoning_keys: Option<Vec<String>>,
}

/// Where reasoning inside the text begins.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitThink {
    /// At `<think>`
    Tag,
    /// At the start of the answer
    Start,
}

impl Reading {
    pub(crate) fn options(&self) -> unbraid_core::Config {
        let default = unbraid_core::Config::default();
        let keys = self.reasoning_keys.as_ref();
        unbraid_core::Config::default()
            .with_strict(self.strict)
            .with_expect_choices(self.expect_choices)
            .with_think_tags(match self.split_think {
                None => ThinkTags::Off,
                Some(SplitThink::Tag) => ThinkTags::Split,
                Some(SplitThink::Start) => ThinkTags::SplitOpen,
            })
            .with_usage_after_done(self.usage_after_done)
            .with_reasoning_keys(keys.map_or(default.reasoning_keys, |keys| {
                keys.iter().map(|key| key.as_str().into()).collect()
            }))
    }

    pub(crate) fn builder(&self) -> unbraid::CompletionsBuilder {
        unbraid::Completions::builder()
            .config(self.options())
            .tokenizer_for(unbraid::tokens::Counter::for_response)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the whole answer as one JSON object, in the shape of the non-streaming response
    #[command(after_help = COLLECT_EXAMPLES)]
    Collect {
        /// The request that is answered, a JSON file; its prompt is counted if the server does not report it
        #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
        request: Option<PathBuf>,
        /// The recorded stream, or `-` for the standard input
        #[arg(default_value = "-", value_parser = source(), value_hint = ValueHint::FilePath)]
        file: Source,
    },
    /// Print one JSON object a line for every event, as it happens
    #[command(after_help = EVENTS_EXAMPLES)]
    Events {
        /// The recorded stream, or `-` for the standard input
        #[arg(default_value = "-", value_parser = source(), value_hint = ValueHint::FilePath)]
        file: Source,
    },
    /// Write one text file a choice, one JSON file a tool call, and summary.json
    #[command(after_help = SPLIT_EXAMPLES)]
    Split {
        /// The directory to write into; it is created if need be
        #[arg(long, value_name = "DIR", value_parser = clap::value_parser!(PathBuf), value_hint = ValueHint::DirPath)]
        out: PathBuf,
        /// The recorded stream, or `-` for the standard input
        #[arg(default_value = "-", value_parser = source(), value_hint = ValueHint::FilePath)]
        file: Source,
    },
    /// Show the choices as they stream, side by side on a terminal, and how each of them ended
    #[command(after_help = WATCH_EXAMPLES)]
    Watch {
        /// Replay so many events a second; without it, they are shown as fast as they come
        #[arg(long, value_name = "PER_SECOND", value_parser = per_second)]
        speed: Option<f64>,
        #[command(flatten)]
        display: Display,
        /// The recorded stream, or `-` for the standard input
        #[arg(default_value = "-", value_parser = source(), value_hint = ValueHint::FilePath)]
        file: Source,
    },
    /// Ask a provider, and show the answers as they stream
    #[command(after_help = CHAT_EXAMPLES)]
    Chat(Box<Chat>),
    /// Show four answers to one question, streamed by a server inside this process: no key, no network
    #[command(after_help = DEMO_EXAMPLES)]
    Demo {
        /// How many times as fast
        #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
        speed: f64,
        #[command(flatten)]
        display: Display,
    },
    /// Serve a recorded stream over HTTP, as the provider that it came from
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay {
        #[command(flatten)]
        manner: Manner,
        /// The recorded stream, or `-` for the standard input
        #[arg(value_parser = source(), value_hint = ValueHint::FilePath)]
        file: Source,
    },
    /// Print what a shell needs to complete this command line
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
}

pub(crate) fn source() -> impl TypedValueParser<Value = Source> {
    OsStringValueParser::new().map(Source::from)
}

pub(crate) fn per_second(text: &str) -> Result<f64, String> {
    number(text, 0.01..=1_000_000.0)
}

fn factor(text: &str) -> Result<f64, String> {
    number(text, SLOWEST_DEMO..=1_000.0)
}

/// The least factor of the demo: below it, its pauses would come near the client's timeouts.
pub(crate) const SLOWEST_DEMO: f64 = 0.1;

/// A number within a range, which also keeps out NaN.
pub(crate) fn number(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let (low, high) = (range.start(), range.end());
    text.parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("not a number from {low} to {high}"))
}

const EXIT_CODES: &str = "\
Exit codes:
  0  every choice finished
  1  the input could not be read, or held no choice
  2  the command line was wrong
  3  some choice did not finish, or chat got fewer than it requested

Examples:
  unbraid collect answer.sse
  curl -sN .. | unbraid events | jq -c .";

const COLLECT_EXAMPLES: &str = "\
Examples:
  unbraid collect answer.sse | jq -r '.choices[].message.content'
  unbraid collect answer.sse | jq '.unbraid.choices[] | select(.end != \"finished\")'
  unbraid collect --request request.json answer.sse | jq .unbraid.usage
  curl -sN .. | unbraid collect --expect-choices 1";

const EVENTS_EXAMPLES: &str = "\
Examples:
  curl -sN .. | unbraid events | jq -c .
  curl -sN .. | unbraid events | jq --unbuffered -rj 'select(.choice == 0 and .type == \"content.delta\").delta'
  unbraid events answer.sse | jq 'select(.type == \"tool_call.done\")'";

const SPLIT_EXAMPLES: &str = "\
Examples:
  unbraid split --out answers answer.sse
  curl -sN .. | unbraid split --out answers && cat answers/choice-0.txt";

const WATCH_EXAMPLES: &str = "\
Examples:
  curl -sN .. | unbraid watch
  unbraid watch --speed 20 answer.sse
  NO_COLOR=1 unbraid watch answer.sse";

const CHAT_EXAMPLES: &str = "\
Examples:
  unbraid chat -m gpt-4o-mini -n 4 \"Name a prime number.\"
  unbraid chat --base-url http://localhost:8000/v1 -m llama --take 1 -n 8 < question.txt
  unbraid chat -m gpt-4o-mini -n 2 --record answer.sse --json \"Hello?\" | jq .unbraid.usage
  unbraid chat --request request.json --events";

const DEMO_EXAMPLES: &str = "\
Examples:
  unbraid demo
  unbraid demo --speed 0.5";

const REPLAY_EXAMPLES: &str = "\
Examples:
  unbraid replay answer.sse --port 8080 --speed 30
  unbraid replay answer.sse --port 8080 --fault reset:12
  unbraid replay answer.sse --port 8080 --fault status:429 --times 2";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  unbraid completions bash > ~/.local/share/bash-completion/completions/unbraid
  unbraid completions fish > ~/.config/fish/completions/unbraid.fish
  unbraid completions zsh > \"${fpath[1]}/_unbraid\"";
