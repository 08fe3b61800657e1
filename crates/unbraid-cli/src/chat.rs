//! `unbraid chat`: asks a provider, and shows the answers as they stream.

mod answer;
pub(crate) mod cause;
mod provider;
mod question;
mod told;

use std::{io, path::PathBuf};

use clap::{ValueEnum, ValueHint, builder::PathBufValueParser};
use serde_json::Value;
use tokio::task::JoinHandle;
use unbraid::Completions;
use unbraid_core::{ChoiceOutcome, Config, Message, Prompt, tool_names};
use unbraid_http::{ChoiceStrategy, HttpError, Request};

pub(crate) use told::told;

use self::{
    answer::{Answer, Record},
    provider::Provider,
    question::Question,
};
use crate::{
    account::{self, Account},
    args::Reading,
    collect, events,
    exit::{self, Failure, Outcome, Status},
    live::{self, Display},
    watch::{Interrupt, block_on},
};

/// What is asked of whom, and what is made of the answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    provider: Provider,
    /// Send a request for each choice, for providers that do not know `n`; `auto` asks by `n` first
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
    /// The first K choices that finish win, and the others are cancelled
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    take: Option<u32>,
    /// Write the body of the answer to a file as it comes, byte for byte
    #[arg(
        long,
        value_name = "FILE",
        value_parser = PathBufValueParser::new(),
        value_hint = ValueHint::FilePath,
        conflicts_with = "fan_out"
    )]
    record: Option<PathBuf>,
    /// Print the whole answer as one JSON object, as `collect` does
    #[arg(long, conflicts_with_all = ["events", "plain", "stay"])]
    json: bool,
    /// Print one JSON object a line for every event, as `events` does
    #[arg(long, conflicts_with_all = ["plain", "stay"])]
    events: bool,
    #[command(flatten)]
    display: Display,
}

/// When several choices are asked for by a request each.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FanOut {
    Never,
    Always,
    Auto,
}

impl From<FanOut> for ChoiceStrategy {
    fn from(when: FanOut) -> Self {
        match when {
            FanOut::Never => Self::Native,
            FanOut::Always => Self::FanOut,
            FanOut::Auto => Self::Auto,
        }
    }
}

pub(crate) fn run(chat: &Chat, reading: &Reading) -> Result<Status, Failure> {
    let request = chat.question.request()?;
    chat.check_take(&request)?;
    let record = chat.record.as_deref().map(Record::open).transpose()?;
    let body = request.body();
    let asked = Asked::new(&body, reading);
    let client = chat.provider.client(reading.builder());
    let client = client.map_err(|error| Failure::Usage(error.to_string()))?;
    let request = request.choice_strategy(chat.fan_out.into());
    block_on(async {
        let answer = match chat.fan_out {
            FanOut::Auto if question::requested(&body) > 1 => Answer::of(&client, &request).await,
            FanOut::Always => Answer::of(&client, &request).await,
            FanOut::Auto | FanOut::Never => {
                Answer::recorded(&client, &request, asked.options, record).await
            }
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return chat.refused(error),
        };
        let _interrupt = Interrupt::cancels(&answer.completions).await;
        let taken = chat.take.map(|k| take(&answer.completions, k));
        let shown = chat.show(&answer.completions, &body).await;
        let written = match shown {
            Err(error) if !chat.json => return Err(Failure::Output(error)),
            written => written, // at the end: a reader that went away changes nothing
        };
        let status = conclude(&answer, asked.choices, taken).await;
        answer.written().await?;
        exit::written(written, status)
    })
}

/// How many choices are expected, and how the answer is read for that.
struct Asked {
    choices: u32,
    options: Config,
}

impl Asked {
    /// One choice is expected where nothing asks for more, but the indices are not folded for that: only `--expect-choices 1`
    /// says that a server counts something else in `index` (E12).
    fn new(body: &Value, reading: &Reading) -> Self {
        let options = reading.options();
        let requested = question::requested(body);
        let expected = options.expect_choices;
        let several = (requested > 1).then_some(requested);
        Self {
            choices: expected.unwrap_or(requested),
            options: options
                .with_expect_choices(expected.or(several))
                .with_tools(tool_names(body)),
        }
    }
}

impl Chat {
    fn check_take(&self, request: &Request) -> Result<(), Failure> {
        let n = request.get("n").map_or(Some(1), Value::as_u64);
        match (self.take, n) {
            (Some(k), Some(n)) if u64::from(k) > n && request.get("prompt").is_none() => {
                Err(Failure::Usage(format!(
                    "--take {k} of {n} choices cannot be: ask for more with -n"
                )))
            }
            _ => Ok(()),
        }
    }

    /// No answer came. What is read by programs says so, too.
    fn refused(&self, error: HttpError) -> Result<Status, Failure> {
        let mut out = io::stdout().lock();
        let written = match (self.json, self.events) {
            (true, _) => collect::write(&cause::no_answer(&error), &mut out),
            (_, true) => events::write(&cause::no_answer_event(&error), &mut out),
            (false, false) => Ok(()),
        };
        exit::written(written, Status::NoStream)?;
        Err(Failure::Http(error))
    }

    async fn show(&self, completions: &Completions, body: &Value) -> io::Result<()> {
        if self.json {
            let account = Account::of_completions(completions, &Prompt::from_request(body)).await;
            return collect::write_text(&account.into_json_text(), &mut io::stdout().lock());
        }
        if self.events {
            return events::print(completions, io::stdout().lock()).await;
        }
        let title = question::title(body);
        live::show(completions, self.display, &title, true).await?;
        Ok(())
    }
}

/// The choices that win while the answer is shown.
struct Taken {
    k: usize,
    winners: JoinHandle<usize>,
}

fn take(completions: &Completions, k: u32) -> Taken {
    let (completions, k) = (completions.clone(), k as usize);
    Taken {
        k,
        winners: tokio::spawn(async move { completions.first_finished(k).await.len() }),
    }
}

/// Whether anything came of a choice. The metadata of a fan-out are those of one request, which may have brought no choice.
fn has_come(choice: &ChoiceOutcome) -> bool {
    let message = &choice.message;
    let mut nothing = Message::default();
    nothing.role.clone_from(&message.role);
    let has_role = message.role.is_some() && !choice.role_inferred;
    has_role || *message != nothing || !choice.finish_reasons.is_empty() || choice.discarded
}

/// Says what went wrong, once the stream is over.
async fn conclude(answer: &Answer, expected: u32, taken: Option<Taken>) -> Status {
    let closed = answer.completions.closed().await;
    let choices = account::ended(&answer.completions).await;
    let ends = choices.iter().map(|choice| (choice.choice, &choice.end));
    let outcome = Outcome {
        closed: Some(&closed),
        ends: ends.collect(),
        came: answer.completions.metadata().kind.is_some() || choices.iter().any(has_come),
        head: &answer.head.bytes(),
    };
    let report = || match told::tell(&outcome) {
        Status::Finished if choices.len() < expected as usize => {
            let got = choices.len();
            exit::complain(format_args!(
                "unbraid: answer: E30: expected {expected}, got {got}"
            ));
            Status::Unfinished
        }
        status => status,
    };
    let Some(Taken { k, winners }) = taken else {
        return report();
    };
    // A panic in it was told; then nobody has won.
    let winners = winners.await.unwrap_or(0);
    if winners >= k {
        return Status::Finished; // the others were to be cancelled
    }
    match report() {
        Status::Finished => {
            exit::complain(format_args!(
                "unbraid: answer: {winners} of {k} choices finished"
            ));
            Status::Unfinished
        }
        status => status,
    }
}
