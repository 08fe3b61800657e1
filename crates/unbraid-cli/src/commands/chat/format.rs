//! How an answer is printed.

use std::io::{self, IsTerminal};

use serde_json::Value;
use unbraid::Completions;
use unbraid_core::Prompt;
use unbraid_http::{HttpError, Provider};

use super::{error, question, take::Take};
use crate::{
    args::{DisplayArgs, UsageArgs, UsageMode},
    event_lines,
    exit::{Failure, Status, status_after_output},
    json,
    labels::Labels,
    live::{self, Shown},
    report::{Report, request_error},
    text,
};

/// Selects the output format.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct FormatArgs {
    /// Print the text and nothing else, with a header line before each choice if there are several; this is the default
    /// if one choice is requested and the output is not a terminal
    #[arg(long, conflicts_with_all = ["json", "events", "plain", "stay"])]
    text: bool,
    /// Print the whole answer as one JSON object, like `collect`
    #[arg(long, conflicts_with_all = ["events", "plain", "stay"])]
    json: bool,
    /// Print each event as one line of JSON, like `events`
    #[arg(long, conflicts_with_all = ["plain", "stay"])]
    events: bool,
    #[command(flatten)]
    usage: UsageArgs,
    #[command(flatten)]
    display: DisplayArgs,
}

/// What an answer is printed with.
#[derive(Clone, Copy)]
pub(super) struct Question<'q> {
    pub(super) request: &'q Value,
    /// How many choices were requested.
    pub(super) expected: u32,
    pub(super) labels: &'q Labels,
}

/// An output format.
#[derive(Debug, Clone, Copy)]
pub(super) enum Format {
    Text,
    Json(UsageMode),
    Events,
    Live(DisplayArgs),
}

impl FormatArgs {
    /// Counts unless the option says otherwise: an answer is read once, and counting costs less than the wait for it.
    pub(super) fn usage(self) -> UsageMode {
        self.usage.mode(UsageMode::Estimate)
    }

    /// The format for an answer that should have so many choices.
    pub(super) fn format(&self, expected: u32) -> Format {
        let is_piped = || !io::stdout().is_terminal();
        if self.json {
            Format::Json(self.usage())
        } else if self.events {
            Format::Events
        } else if self.text || (expected == 1 && !self.display.is_explicit() && is_piped()) {
            Format::Text
        } else {
            Format::Live(self.display)
        }
    }
}

impl Format {
    /// Prints an answer until it is over. The error is the output's.
    pub(super) async fn print(
        self,
        completions: &Completions,
        question: Question<'_>,
        take: Option<&mut Take>,
    ) -> io::Result<()> {
        let labels = question.labels;
        match self {
            Self::Text => print_text(completions, question, take).await,
            Self::Json(usage) => {
                let prompt = Prompt::from_request(question.request);
                let report = Report::from_completions(completions, &prompt, usage, labels).await;
                json::write_text(&mut io::stdout().lock(), |out| report.write(out))
            }
            Self::Events => event_lines::print(completions, io::stdout().lock()).await,
            Self::Live(display) => {
                let title = question::title(question.request);
                let shown = Shown {
                    title: &title,
                    labels: labels.clone(),
                    ..Shown::default()
                };
                live::show(completions, display, shown, true).await?;
                Ok(())
            }
        }
    }

    /// The format for one of several turns. Its calls and their results are lines, so the answers are lines as well: a view
    /// would read the keys that answer a question.
    pub(super) fn for_turns(self) -> Self {
        match self {
            Self::Live(display) => Self::Live(display.as_lines()),
            format => format,
        }
    }

    /// Whether only the last of several answers is printed, for a program that reads one text or one document.
    pub(super) fn is_for_last_turn(self) -> bool {
        match self {
            Self::Json(_) => true,
            Self::Text => !io::stdout().is_terminal(),
            Self::Events | Self::Live(_) => false,
        }
    }

    /// Whether an error of the output comes when the whole answer has been read.
    pub(super) fn is_printed_at_the_end(self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Prints the error of a request that brought no answer. The JSON formats also print it for the program that reads
    /// them.
    pub(super) fn print_failed_request(self, provider: Provider, error: &HttpError) -> Failure {
        let mut out = io::stdout().lock();
        let written = match self {
            Self::Json(_) => json::write_value(&Report::failed_request(error), &mut out),
            Self::Events => event_lines::print_value(&request_error::event(error), &mut out),
            Self::Text | Self::Live(_) => Ok(()),
        };
        match status_after_output(written, Status::NoStream) {
            Ok(_) => Failure::Request(error::describe(provider, error)),
            Err(failure) => failure,
        }
    }
}

/// Prints the texts as they stream. If only the first of them are kept, these are known when they have finished, and only they
/// are printed. If too few finish, everything that arrived is printed.
async fn print_text(
    completions: &Completions,
    question: Question<'_>,
    take: Option<&mut Take>,
) -> io::Result<()> {
    let (expected, labels) = (question.expected, question.labels);
    let out = io::stdout();
    let is_terminal = out.is_terminal();
    if let Some(take) = take.filter(|_| expected > 1) {
        let k = take.k;
        let finished = take.finished().await;
        if finished.len() >= k {
            let printer = text::TextPrinter::new(out, is_terminal, k > 1);
            let mut printer = printer.with_labels(labels.clone());
            for choice in finished {
                printer.begin(choice.choice)?;
                printer.push(&choice.message.content)?;
                printer.end()?;
            }
            return Ok(());
        }
    }
    let printer = text::TextPrinter::new(out, is_terminal, expected > 1);
    let printer = printer.with_labels(labels.clone());
    text::print_live(completions, expected, printer).await
}
