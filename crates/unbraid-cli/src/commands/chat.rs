//! `unbraid chat`: sends a request to a provider, and shows the answers as they stream.

mod answer;
mod conversation;
mod error;
mod format;
mod model;
mod provider;
mod question;
mod recording;
mod status;
mod take;
mod tools;
mod turn;

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint, builder::PathBufValueParser};
use serde_json::Value;
use unbraid_http::{ChoiceStrategy, Request};

use self::{
    conversation::Recordings, format::FormatArgs, provider::ProviderArgs, question::QuestionArgs,
    tools::RunToolArgs, turn::Turn,
};
use crate::{
    args::StreamArgs,
    exit::{Failure, Status},
    live,
    runtime::block_on,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid chat -m gpt-4o-mini -n 4 \"Name a prime number.\"
  unbraid chat -m gpt-4o-mini \"Name a prime number.\" > answer.txt
  unbraid chat --base-url http://localhost:8000/v1 -m llama --take 1 -n 8 < question.txt
  unbraid chat -m gpt-4o-mini -n 2 --record answer.sse --json \"Hello?\" | jq .unbraid.usage
  unbraid chat --request request.json --events
  unbraid chat -m gpt-4o-mini --tools tools.json --run-tool now=./now.sh --yes \"What time is it?\"";

#[derive(Debug, clap::Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    question: QuestionArgs,
    #[command(flatten)]
    provider: ProviderArgs,
    /// Send one request for each choice, for providers that do not support `n`; `auto` tries `n` first
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_value = "never",
        default_missing_value = "always"
    )]
    fan_out: FanOut,
    /// Cancel the other choices as soon as K have finished
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    take: Option<u32>,
    /// Write the body of the answer to a file as it arrives, byte for byte
    #[arg(
        long,
        value_name = "FILE",
        value_parser = PathBufValueParser::new(),
        value_hint = ValueHint::FilePath,
        conflicts_with = "fan_out"
    )]
    record: Option<PathBuf>,
    #[command(flatten)]
    run_tool: RunToolArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// When to send one request for each choice.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FanOut {
    Never,
    Always,
    Auto,
}

impl From<FanOut> for ChoiceStrategy {
    fn from(fan_out: FanOut) -> Self {
        match fan_out {
            FanOut::Never => Self::Native,
            FanOut::Always => Self::FanOut,
            FanOut::Auto => Self::Auto,
        }
    }
}

pub(super) fn run(args: &ChatArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let request = args.question.request()?;
    args.check_take(&request)?;
    let body = request.body();
    let expected = stream.config().expect_choices.unwrap_or(1);
    let choices = question::requested_choices(&body).max(expected);
    let runner = args.run_tool.runner(&body, choices)?;
    let recordings = args.record.as_deref().map(Recordings::open).transpose()?;
    let client = args.provider.client(stream.builder(args.format.usage()));
    let client = client.map_err(|error| Failure::Usage(error.to_string()))?;
    let request = request.choice_strategy(args.fan_out.into());
    block_on(async {
        let turn = Turn {
            client: &client,
            stream,
            format: args.format,
            fan_out: args.fan_out,
            take: args.take,
            runner: runner.as_ref(),
        };
        let conversation = conversation::run(turn, request, recordings);
        if runner.is_none() {
            return conversation.await;
        }
        // The programs are in process groups of their own, so nothing else would end them. The conversation, which kills them,
        // is dropped before the process exits.
        let ended = live::exit_signal().map_err(Failure::Output)?;
        tokio::select! {
            result = conversation => result,
            code = ended => std::process::exit(code),
        }
    })
}

impl ChatArgs {
    fn check_take(&self, request: &Request) -> Result<(), Failure> {
        let n = request.get("n").map_or(Some(1), Value::as_u64);
        match (self.take, n) {
            (Some(k), Some(n)) if u64::from(k) > n && request.get("prompt").is_none() => {
                Err(Failure::Usage(format!(
                    "--take {k} of {n} choices is impossible: request more with -n"
                )))
            }
            _ => Ok(()),
        }
    }
}
