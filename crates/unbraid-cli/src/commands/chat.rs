//! `unbraid chat`: sends a request to a provider, and shows the answers as they stream.

mod answer;
mod error;
mod provider;
mod question;
mod recording;

use std::{io, path::PathBuf};

use clap::{ValueEnum, ValueHint, builder::PathBufValueParser};
use serde_json::Value;
use tokio::task::JoinHandle;
use unbraid::Completions;
use unbraid_core::{ChoiceOutcome, Config, Message, Prompt, tool_names};
use unbraid_http::{ChoiceStrategy, HttpError, Request};

use self::{answer::Answer, provider::ProviderArgs, question::QuestionArgs, recording::RecordFile};
use crate::{
    args::{DisplayArgs, StreamArgs},
    event_lines,
    exit::{Failure, Status, status_after_output},
    interrupt::CancelOnInterrupt,
    json, live,
    outcome::StreamOutcome,
    output::print_error,
    report::{self, Report, request_error},
    runtime::block_on,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid chat -m gpt-4o-mini -n 4 \"Name a prime number.\"
  unbraid chat --base-url http://localhost:8000/v1 -m llama --take 1 -n 8 < question.txt
  unbraid chat -m gpt-4o-mini -n 2 --record answer.sse --json \"Hello?\" | jq .unbraid.usage
  unbraid chat --request request.json --events";

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
    /// Print the whole answer as one JSON object, like `collect`
    #[arg(long, conflicts_with_all = ["events", "plain", "stay"])]
    json: bool,
    /// Print each event as one line of JSON, like `events`
    #[arg(long, conflicts_with_all = ["plain", "stay"])]
    events: bool,
    #[command(flatten)]
    display: DisplayArgs,
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
    // Opened before the request is sent: an answer that cannot be recorded should not cost tokens.
    let record = args.record.as_deref().map(RecordFile::open).transpose()?;
    let body = request.body();
    let expected = Expected::new(&body, stream);
    let client = args.provider.client(stream.builder());
    let client = client.map_err(|error| Failure::Usage(error.to_string()))?;
    let request = request.choice_strategy(args.fan_out.into());
    block_on(async {
        let answer = match args.fan_out {
            FanOut::Auto if question::requested_choices(&body) > 1 => {
                Answer::send(&client, &request).await
            }
            FanOut::Always => Answer::send(&client, &request).await,
            // A single request gives access to its bytes, for the recording and for hints in error messages.
            FanOut::Auto | FanOut::Never => {
                Answer::send_recorded(&client, &request, expected.config, record).await
            }
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return args.print_failed_request(&error),
        };
        let _guard = CancelOnInterrupt::new(&answer.completions).await;
        let take = args.take.map(|k| Take::new(&answer.completions, k));
        let written = match args.show(&answer.completions, &body).await {
            Err(error) if !args.json => return Err(Failure::Output(error)),
            // The JSON is written at the end, so a broken pipe no longer matters.
            written => written,
        };
        let status = final_status(&answer, expected.choices, take).await;
        answer.finish_recording().await?;
        status_after_output(written, status)
    })
}

/// How many choices the request asks for, and the configuration for reading them.
struct Expected {
    choices: u32,
    config: Config,
}

impl Expected {
    /// A request for one choice does not set `expect_choices`, because the value 1 folds all indices into one. Only the
    /// option `--expect-choices 1` says that the server counts something else in `index` (E12).
    fn new(body: &Value, stream: &StreamArgs) -> Self {
        let config = stream.config();
        let requested = question::requested_choices(body);
        let by_option = config.expect_choices;
        let several = (requested > 1).then_some(requested);
        Self {
            choices: by_option.unwrap_or(requested),
            config: config
                .with_expect_choices(by_option.or(several))
                .with_tools(tool_names(body)),
        }
    }
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

    /// Prints the error of a request that brought no answer. The JSON formats also print the error for the program that reads them.
    fn print_failed_request(&self, error: &HttpError) -> Result<Status, Failure> {
        let mut out = io::stdout().lock();
        let written = match (self.json, self.events) {
            (true, _) => json::write_value(&Report::failed_request(error), &mut out),
            (_, true) => event_lines::print_value(&request_error::event(error), &mut out),
            (false, false) => Ok(()),
        };
        status_after_output(written, Status::NoStream)?;
        Err(Failure::Request(error::describe(error)))
    }

    async fn show(&self, completions: &Completions, body: &Value) -> io::Result<()> {
        if self.json {
            let report = Report::from_completions(completions, &Prompt::from_request(body)).await;
            return json::write_text(&report.into_json_text(), &mut io::stdout().lock());
        }
        if self.events {
            return event_lines::print(completions, io::stdout().lock()).await;
        }
        let title = question::title(body);
        live::show(completions, self.display, &title, true).await?;
        Ok(())
    }
}

/// The task that cancels the remaining choices once `k` have finished, while the answer is shown.
struct Take {
    k: usize,
    finished: JoinHandle<usize>,
}

impl Take {
    fn new(completions: &Completions, k: u32) -> Self {
        let (completions, k) = (completions.clone(), k as usize);
        Self {
            k,
            finished: tokio::spawn(async move { completions.first_finished(k).await.len() }),
        }
    }
}

/// Whether the answer brought data for a choice. In a fan-out, the metadata come from one request and do not prove that any
/// choice has data.
fn has_data(choice: &ChoiceOutcome) -> bool {
    let message = &choice.message;
    let mut empty = Message::default();
    empty.role.clone_from(&message.role);
    let has_role = message.role.is_some() && !choice.role_inferred;
    has_role || *message != empty || !choice.finish_reasons.is_empty() || choice.discarded
}

/// Waits until the stream is over, prints what went wrong, and returns the status.
async fn final_status(answer: &Answer, expected: u32, take: Option<Take>) -> Status {
    let closed = answer.completions.closed().await;
    let choices = report::outcomes(&answer.completions).await;
    let ends = choices.iter().map(|choice| (choice.choice, &choice.end));
    let outcome = StreamOutcome {
        closed: Some(&closed),
        ends: ends.collect(),
        has_data: answer.completions.metadata().kind.is_some() || choices.iter().any(has_data),
        head: &answer.head.bytes(),
    };
    let status = || match error::print_diagnostics(&outcome) {
        Status::Finished if choices.len() < expected as usize => {
            let received = choices.len();
            print_error(format_args!(
                "unbraid: answer: E30: expected {expected}, got {received}"
            ));
            Status::Unfinished
        }
        status => status,
    };
    let Some(Take { k, finished }) = take else {
        return status();
    };
    // If the task panicked, which the hook has reported, no choice counts as finished.
    let finished = finished.await.unwrap_or(0);
    if finished >= k {
        return Status::Finished; // the other choices were cancelled on purpose
    }
    match status() {
        Status::Finished => {
            print_error(format_args!(
                "unbraid: answer: {finished} of {k} choices finished"
            ));
            Status::Unfinished
        }
        status => status,
    }
}
