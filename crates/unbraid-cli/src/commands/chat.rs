//! `unbraid chat`: sends a request to a provider, and shows the answers as they stream.

mod answer;
mod context;
mod conversation;
mod error;
mod format;
mod model;
mod provider;
mod question;
mod recording;
mod several;
mod status;
mod take;
mod target;
mod tools;
mod turn;

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint, builder::PathBufValueParser};
use serde_json::Value;
use unbraid_http::{ChoiceStrategy, Provider, Request};

use self::{
    conversation::Recordings, format::FormatArgs, provider::ProviderArgs, question::QuestionArgs,
    several::Several, target::Target, tools::RunToolArgs, turn::Turn,
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
  unbraid chat --provider anthropic -m claude-sonnet-4-5 \"Name a prime number.\"
  unbraid chat --to openai:gpt-5-mini --to anthropic:claude-sonnet-4-5 --to ollama:qwen3 \"Name a prime number.\"
  unbraid chat -m gpt-4o-mini --tools tools.json --run-tool now=./now.sh --yes \"What time is it?\"";

#[derive(Debug, clap::Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    question: QuestionArgs,
    /// The provider whose interface the server has: openai, responses, anthropic, gemini, ollama or cohere
    #[arg(long, value_name = "NAME", conflicts_with = "to")]
    provider: Option<Provider>,
    /// A provider and its model, such as anthropic:claude-sonnet-4-5; repeated, all of them answer the question
    #[arg(long, value_name = "PROVIDER:MODEL")]
    to: Vec<Target>,
    #[command(flatten)]
    endpoint: ProviderArgs,
    /// Send one request for each choice, for providers that do not support `n`; `auto` tries `n` first
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_value = "native",
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
    // The gateway has the same names.
    #[value(alias = "never")]
    Native,
    Always,
    Auto,
}

impl From<FanOut> for ChoiceStrategy {
    fn from(fan_out: FanOut) -> Self {
        match fan_out {
            FanOut::Native => Self::Native,
            FanOut::Always => Self::FanOut,
            FanOut::Auto => Self::Auto,
        }
    }
}

pub(super) fn run(args: &ChatArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    args.check_several()?;
    let target = args.to.first();
    let provider = match target {
        Some(target) => target.provider,
        None => args.provider.unwrap_or_default(),
    };
    let model = target.map(|target| target.model.as_str());
    let limit = args.endpoint.limit_name();
    let request = args.question.request(provider, model, limit)?;
    args.check_take(&request)?;
    let body = request.body();
    args.check_no_choices(provider, &body)?;
    let (requests, labels) = target::requests(&args.to, &request)?;
    let of_targets = requests.iter().map(|target| target.choices).sum();
    let expected = stream.config().expect_choices.unwrap_or(1);
    let requested = question::requested_choices(&body);
    let choices = requested.max(expected).max(of_targets);
    let runner = args.run_tool.runner(&body, choices)?;
    if args.to.len() < 2 {
        // Refused before the file of a recording is opened. A provider without `n` gets a request for each answer.
        let mut single = request.clone();
        if !provider.has_n() {
            single.remove("n");
        }
        let sent = single.body_for(provider);
        sent.map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let fan_out = args.fan_out(provider, requested)?;
    let recordings = args.record.as_deref().map(Recordings::open).transpose()?;
    let usage = args.format.usage();
    let client = |provider| {
        let client = args.endpoint.client(provider, stream.builder(usage));
        client.map_err(|error| Failure::Usage(error.to_string()))
    };
    let several = (args.to.len() > 1)
        .then(|| {
            let requests = requests.into_iter();
            let requests = requests.map(|target| Ok((client(target.provider)?, target)));
            let requests = requests.collect::<Result<_, Failure>>()?;
            let builder = args.endpoint.with_timeouts(stream.builder(usage));
            Ok::<_, Failure>(Several::new(builder, requests))
        })
        .transpose()?;
    let client = client(provider)?;
    let request = request.choice_strategy(fan_out.into());
    block_on(async {
        let turn = Turn {
            client: &client,
            several: several.as_ref(),
            provider,
            labels: &labels,
            stream,
            format: args.format,
            fan_out,
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
    /// Refuses what one provider can be asked for, but not several.
    fn check_several(&self) -> Result<(), Failure> {
        if self.to.is_empty() {
            return Ok(());
        }
        let refused = |why: &str| Err(Failure::Usage(why.to_owned()));
        if self.question.model().is_some() {
            return refused("-m and --to name a model each: leave out -m");
        }
        if self.to.len() < 2 {
            return Ok(());
        }
        if let Some(option) = self.endpoint.of_one_provider() {
            return Err(Failure::Usage(format!(
                "{option} is of one provider: with several --to, set the variable of each"
            )));
        }
        if self.record.is_some() {
            return refused("--record writes one body, and each --to has its own");
        }
        if !matches!(self.fan_out, FanOut::Native) {
            return refused("--fan-out is for one provider: with several --to it is not needed");
        }
        Ok(())
    }

    /// When to send one request for each choice. A provider without `n` needs that for several choices, and its answers have no
    /// single body to record.
    fn fan_out(&self, provider: Provider, requested: u32) -> Result<FanOut, Failure> {
        match self.fan_out {
            FanOut::Native if requested > 1 && !provider.has_n() => match self.record {
                None => Ok(FanOut::Always),
                Some(_) => Err(Failure::Usage(format!(
                    "--record writes one body, and {provider} needs a request for each of the {requested} answers"
                ))),
            },
            fan_out => Ok(fan_out),
        }
    }

    /// Refuses a request for 0 answers where `n` is not sent, so that no server refuses it.
    fn check_no_choices(&self, provider: Provider, body: &Value) -> Result<(), Failure> {
        let is_sent =
            self.to.len() < 2 && provider.has_n() && matches!(self.fan_out, FanOut::Native);
        if is_sent || question::requested_choices(body) > 0 {
            return Ok(());
        }
        let why = "the request asks for 0 answers: set its n, or -n, to 1 or more";
        Err(Failure::Usage(why.to_owned()))
    }

    fn check_take(&self, request: &Request) -> Result<(), Failure> {
        let n = request.get("n").map_or(Some(1), Value::as_u64);
        let n = n.map(|n| n.saturating_mul(self.to.len().max(1) as u64));
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
