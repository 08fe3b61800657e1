//! One turn: sends a request, shows the answer, and reports how it ended.

use serde_json::Value;
use unbraid_core::{ChoiceEnd, ChoiceOutcome, Config, tool_names};
use unbraid_http::{Client, HttpError, Request};

use super::{
    FanOut,
    answer::Answer,
    format::{Format, FormatArgs},
    question,
    recording::RecordFile,
    status,
    take::Take,
};
use crate::{
    args::StreamArgs,
    exit::{Failure, Status, status_after_output},
    interrupt::CancelOnInterrupt,
    report,
    text::print_left_out,
};

/// What every turn of a conversation has in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'t> {
    pub(super) client: &'t Client,
    pub(super) stream: &'t StreamArgs,
    pub(super) format: FormatArgs,
    pub(super) fan_out: FanOut,
    /// How many choices are kept; the others are cancelled as soon as these have finished.
    pub(super) take: Option<u32>,
}

/// An answer that was shown.
#[derive(Debug)]
pub(super) struct TurnResult {
    pub(super) status: Status,
}

impl Turn<'_> {
    /// Sends a request, and shows its answer until it is over. The body is recorded, if there is a file for it and the request
    /// is a single one.
    ///
    /// A broken pipe ends the turn, and dropping its future closes the connection.
    pub(super) async fn run(
        self,
        request: &Request,
        record: Option<RecordFile>,
    ) -> Result<TurnResult, Failure> {
        let body = request.body();
        let expected = Expected::new(&body, self.stream);
        let format = self.format.format(expected.choices);
        let answer = match self.send(request, &body, expected.config, record).await {
            Ok(answer) => answer,
            Err(error) => return Err(format.print_failed_request(&error)),
        };
        let completions = &answer.completions;
        let _guard = CancelOnInterrupt::new(completions).await;
        let mut take = self.take.map(|k| Take::new(completions, k));
        let printed = format.print(completions, &body, expected.choices, take.as_mut());
        let written = printed.await;
        if !format.is_printed_at_the_end()
            && let Err(error) = written
        {
            return Err(Failure::Output(error));
        }
        let closed = completions.closed().await;
        let choices = report::outcomes(completions).await;
        if matches!(format, Format::Text) {
            print_all_left_out(&choices);
        }
        let status =
            status::print_diagnostics(&answer, &closed, &choices, expected.choices, take).await;
        answer.finish_recording().await?;
        let status = status_after_output(written, status)?;
        Ok(TurnResult { status })
    }

    async fn send(
        self,
        request: &Request,
        body: &Value,
        config: Config,
        record: Option<RecordFile>,
    ) -> Result<Answer, HttpError> {
        match self.fan_out {
            FanOut::Auto if question::requested_choices(body) > 1 => {
                Answer::send(self.client, request).await
            }
            FanOut::Always => Answer::send(self.client, request).await,
            // A single request gives access to its bytes, for the recording and for hints in error messages.
            FanOut::Auto | FanOut::Never => {
                Answer::send_recorded(self.client, request, config, record).await
            }
        }
    }
}

/// Prints what the texts of an answer lack, in the order of the choices. Nobody asked for the text of a cancelled choice.
fn print_all_left_out(choices: &[ChoiceOutcome]) {
    let is_cancelled = |choice: &&ChoiceOutcome| matches!(choice.end, ChoiceEnd::Cancelled);
    let shown = choices.iter().filter(|choice| !is_cancelled(choice));
    let mut choices: Vec<&ChoiceOutcome> = shown.collect();
    choices.sort_by_key(|choice| choice.choice);
    for choice in choices {
        print_left_out(&"answer", choice.choice, &choice.message);
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
