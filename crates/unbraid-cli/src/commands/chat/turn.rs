//! One turn: sends a request, shows the answer, and reports how it ended.

use std::io::{self, IsTerminal};

use serde_json::Value;
use tokio::signal;
use unbraid::{Choice, Completions};
use unbraid_core::{ChoiceEnd, ChoiceOutcome, Config, StreamError, tool_names};
use unbraid_http::{Client, HttpError, Provider, Request};

use super::{
    FanOut,
    answer::Answer,
    context::Context,
    format::{Format, FormatArgs, Question},
    question,
    recording::RecordFile,
    several::Several,
    status,
    take::Take,
    tools::{self, Runner},
};
use crate::{
    args::StreamArgs,
    exit::{Failure, Status, status_after_output},
    interrupt::CancelOnInterrupt,
    labels::Labels,
    output::print_error,
    printable::printable_text,
    report,
    text::{left_out, print_left_out},
};

/// What every turn of a conversation has in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'t> {
    pub(super) client: &'t Client,
    /// With several providers, what is sent in place of the request.
    pub(super) several: Option<&'t Several>,
    /// The provider of the client.
    pub(super) provider: Provider,
    pub(super) labels: &'t Labels,
    pub(super) stream: &'t StreamArgs,
    pub(super) format: FormatArgs,
    pub(super) fan_out: FanOut,
    /// How many choices are kept; the others are cancelled as soon as these have finished.
    pub(super) take: Option<u32>,
    /// What runs the calls of the answers.
    pub(super) runner: Option<&'t Runner>,
}

/// An answer that was shown.
#[derive(Debug)]
pub(super) struct TurnResult {
    pub(super) status: Status,
    /// What the next turn needs; `None` if this answer is the last.
    pub(super) open: Option<OpenCalls>,
}

/// A choice that is over, and has calls to run.
#[derive(Debug)]
pub(super) struct OpenCalls {
    pub(super) choice: Choice,
    pub(super) outcome: ChoiceOutcome,
}

impl Turn<'_> {
    /// Sends the request of the turn with this number, from 1, and shows its answer until it is over. The body is recorded, if
    /// there is a file for it and the request is a single one.
    ///
    /// A broken pipe ends the turn, and dropping its future closes the connection.
    pub(super) async fn run(
        self,
        request: &Request,
        record: Option<RecordFile>,
        number: u32,
    ) -> Result<TurnResult, Failure> {
        let body = request.body();
        let several = self.several.map(Several::choices);
        let expected = Expected::new(&body, several, self.stream);
        let format = self.format.format(expected.choices);
        let format = self.runner.map_or(format, |_| format.for_turns());
        let sent = self.send(request, &body, expected.config, record);
        let answer = tokio::select! {
            biased;
            // The handler of an earlier turn keeps Ctrl-C from ending the process.
            _ = signal::ctrl_c(), if number > 1 => {
                return Ok(TurnResult { status: interrupted(), open: None });
            }
            sent = sent => {
                sent.map_err(|error| format.print_failed_request(self.provider, &error))?
            }
        };
        let completions = &answer.completions;
        let _guard = CancelOnInterrupt::new(completions).await;
        let mut take = self.take.map(|k| Take::new(completions, k));
        let question = Question {
            request: &body,
            expected: expected.choices,
            labels: self.labels,
        };
        let waits = self.runner.is_some() && format.is_for_last_turn();
        let mut written = Ok(());
        if !waits {
            let printed = format.print(completions, question, take.as_mut());
            written = check_output(format, printed.await)?;
        }
        let closed = completions.closed().await;
        let choices = report::outcomes(completions).await;
        let open = self.open_calls(completions, &closed, &choices).await;
        let is_last = open.is_none() || self.runner.is_some_and(|r| number >= r.max_turns);
        if waits && is_last {
            let printed = format.print(completions, question, take.as_mut());
            written = check_output(format, printed.await)?;
        } else if waits {
            print_aside(&choices);
        }
        if matches!(format, Format::Text) && is_last {
            print_all_left_out(&choices);
        }
        let mut status = status::print_diagnostics(
            &answer,
            &closed,
            &choices,
            self.context(expected.choices),
            take,
        )
        .await;
        answer.finish_recording().await?;
        if self.runner.is_some() && status == Status::Finished {
            status = check_cut(&choices);
        }
        let status = status_after_output(written, status)?;
        let open = open.filter(|_| status == Status::Finished);
        Ok(TurnResult { status, open })
    }

    fn context(&self, expected: u32) -> Context<'_> {
        Context {
            provider: self.provider,
            labels: self.labels,
            expected,
        }
    }

    /// The choice whose calls are to be run, if there is one.
    async fn open_calls(
        self,
        completions: &Completions,
        closed: &Result<(), StreamError>,
        choices: &[ChoiceOutcome],
    ) -> Option<OpenCalls> {
        let outcome = self.runner?.runnable(closed, choices)?;
        Some(OpenCalls {
            choice: completions.choice(outcome.choice).await?,
            outcome: outcome.clone(),
        })
    }

    async fn send(
        self,
        request: &Request,
        body: &Value,
        config: Config,
        record: Option<RecordFile>,
    ) -> Result<Answer, HttpError> {
        if let Some(several) = self.several {
            return Ok(Answer::of_several(several.start(body)));
        }
        match self.fan_out {
            FanOut::Auto if question::requested_choices(body) > 1 => {
                Answer::send(self.client, request).await
            }
            FanOut::Always => Answer::send(self.client, request).await,
            // A single request gives access to its bytes, for the recording and for hints in error messages.
            FanOut::Auto | FanOut::Native => {
                Answer::send_recorded(self.client, request, config, record).await
            }
        }
    }
}

/// Reports Ctrl-C between two answers.
pub(super) fn interrupted() -> Status {
    let gap = if io::stderr().is_terminal() { "\n" } else { "" }; // after `^C`
    print_error(format_args!(
        "{gap}unbraid: cancelled before the last answer"
    ));
    Status::Unfinished
}

/// The result of the output, or the failure if it ends the turn: the rest of the answer could not be printed either.
fn check_output(format: Format, written: io::Result<()>) -> Result<io::Result<()>, Failure> {
    match written {
        Err(error) if !format.is_printed_at_the_end() => Err(Failure::Output(error)),
        written => Ok(written),
    }
}

/// Prints the text of an answer that is not the last beside the output, which has only the last one.
fn print_aside(choices: &[ChoiceOutcome]) {
    for choice in choices {
        let text = choice.message.content.trim();
        if !text.is_empty() {
            print_error(format_args!("{}", printable_text(text)));
        }
    }
}

/// The status of an answer that finished: its calls are not run if it was cut.
fn check_cut(choices: &[ChoiceOutcome]) -> Status {
    match choices.first() {
        Some(choice) if tools::has_cut_calls(choice) => {
            let choice = choice.choice;
            print_error(format_args!(
                "unbraid: answer: choice {choice} was cut, so its calls are not run"
            ));
            Status::Unfinished
        }
        _ => Status::Finished,
    }
}

/// Prints what the texts of an answer lack, in the order of the choices. Nobody asked for the text of a cancelled choice.
fn print_all_left_out(choices: &[ChoiceOutcome]) {
    let is_cancelled = |choice: &&ChoiceOutcome| matches!(choice.end, ChoiceEnd::Cancelled);
    let shown = choices.iter().filter(|choice| !is_cancelled(choice));
    let mut choices: Vec<&ChoiceOutcome> = shown.collect();
    choices.sort_by_key(|choice| choice.choice);
    for choice in choices {
        print_left_out(&"answer", choice.choice, &left_out(&choice.message));
    }
}

/// How many choices the request asks for, and the configuration for reading them.
struct Expected {
    choices: u32,
    config: Config,
}

impl Expected {
    /// A request for one choice does not set `expect_choices`, because the value 1 folds all indices into one. Only the
    /// option `--expect-choices 1` says that the server counts something else in `index` (E12).
    fn new(body: &Value, several: Option<u32>, stream: &StreamArgs) -> Self {
        let config = stream.config();
        let requested = several.unwrap_or_else(|| question::requested_choices(body));
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
