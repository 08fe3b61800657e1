//! Prints a completion as lines, each with the index of its choice.
//!
//! One task per choice cuts its events into lines, and a single writer prints them as they become complete.

mod calls;
mod color;
mod cut;
mod summary;

use std::io::{self, IsTerminal, Write};

use tokio::{
    sync::mpsc::{self, Sender},
    task::JoinSet,
};
use unbraid::{Choice, ChoiceError, ChoiceIndex, ChoiceOutcome, Completions, Event};

pub(crate) use self::color::style;
pub(crate) use self::summary::Summary;
use self::{
    calls::CallLines,
    cut::{Line, LineCutter, LineKind},
    summary::ChoiceSummary,
};
use crate::{labels::Labels, printable::printable_line};

/// How many lines wait for the writer. The events of further lines stay in the completion, which keeps them in any case.
const QUEUED_LINES: usize = 64;

/// Prints the lines of all choices as they stream, then the summary. The error is the writer's.
pub(crate) async fn print_live(
    completions: &Completions,
    labels: &Labels,
    out: &mut impl Write,
) -> io::Result<Summary> {
    let mut choices = completions.choices();
    let mut seen = Vec::new();
    let mut tasks = JoinSet::new();
    let (sender, mut lines) = mpsc::channel(QUEUED_LINES);
    let mut sender = Some(sender);
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            next = choices.next(), if sender.is_some() => match (next, &sender) {
                (Some(Ok(choice)), Some(sender)) => {
                    tasks.spawn(send_lines(choice.clone(), sender.clone()));
                    seen.push(choice);
                }
                // There are no more choices; the summary reports an error. Dropping this sender closes the channel as soon
                // as the last task has dropped its own.
                _ => sender = None,
            },
            received = lines.recv_many(&mut batch, QUEUED_LINES) => {
                if received == 0 {
                    break;
                }
                for (choice, line) in batch.drain(..) {
                    print(out, choice, &line)?;
                }
                out.flush()?;
            }
        }
    }
    let summary = summarize(completions, &seen, labels).await;
    summary.print(out)?;
    out.flush()?;
    Ok(summary)
}

/// Prints only the summary of a completion that is over, with a mark for each end, below a picture of its choices.
pub(crate) async fn print_marked_summary(
    completions: &Completions,
    labels: &Labels,
    out: &mut impl Write,
) -> io::Result<Summary> {
    let mut choices = completions.choices();
    let mut seen = Vec::new();
    while let Some(Ok(choice)) = choices.next().await {
        seen.push(choice);
    }
    let summary = summarize(completions, &seen, labels).await;
    summary.print_marked(out)?;
    out.flush()?;
    Ok(summary)
}

async fn summarize(completions: &Completions, choices: &[Choice], labels: &Labels) -> Summary {
    Summary {
        closed: completions.closed().await,
        usage: completions.usage().await,
        warnings: completions.warnings(),
        warnings_dropped: completions.warnings_dropped(),
        choices: choice_summaries(choices, labels).await,
    }
}

/// Sends the lines of one choice to the writer, until the choice ends or the writer has failed.
async fn send_lines(choice: Choice, sender: Sender<(ChoiceIndex, Line)>) {
    let mut lines = ChoiceLines::new();
    let mut events = choice.events();
    // An error comes only after the `End` event, and the summary reports it.
    while let Some(Ok(event)) = events.next().await {
        for line in lines.push(&choice, &event.event) {
            if sender.send((choice.index(), line)).await.is_err() {
                return;
            }
        }
    }
}

/// Cuts the events of one choice into lines.
#[derive(Debug)]
struct ChoiceLines {
    text: LineCutter,
    calls: CallLines,
}

impl ChoiceLines {
    /// Long lines are cut only on a terminal, where somebody watches them grow.
    fn new() -> Self {
        let wraps = io::stdout().is_terminal();
        Self {
            text: LineCutter::wrapping(wraps),
            calls: CallLines::wrapping(wraps),
        }
    }

    /// Adds an event, and returns the lines that it completes.
    fn push(&mut self, choice: &Choice, event: &Event) -> Vec<Line> {
        match event {
            Event::Content(text) => self.push_text(LineKind::Content, text),
            Event::Reasoning(text) => self.push_text(LineKind::Reasoning, text),
            Event::Refusal(text) => self.push_text(LineKind::Refusal, text),
            Event::ToolCallStart { name, kind, .. } => {
                let mut lines = Vec::from_iter(self.text.finish());
                lines.extend(self.calls.start(name, *kind));
                lines
            }
            Event::ToolCallArguments { call_index, text } => self.calls.push(*call_index, text),
            Event::End(_) => {
                let text = self.text.finish();
                self.calls.finish(&choice.snapshot().tool_calls, text)
            }
            _ => Vec::new(),
        }
    }

    fn push_text(&mut self, kind: LineKind, text: &str) -> Vec<Line> {
        let mut lines = self.calls.finish_current();
        lines.extend(self.text.push(kind, text));
        lines
    }
}

async fn choice_summaries(choices: &[Choice], labels: &Labels) -> Vec<ChoiceSummary> {
    let mut summaries = Vec::new();
    for choice in choices {
        let summary = |outcome: &ChoiceOutcome| ChoiceSummary {
            index: outcome.choice,
            label: labels.text(outcome.choice),
            end: outcome.end.clone(),
            call_count: outcome.message.tool_calls.len(),
            timing: choice.timing(),
        };
        let finished = choice.finished().await;
        summaries.push(match &finished {
            Ok(outcome) => summary(outcome),
            Err(error) => summary(ChoiceError::partial(error)),
        });
    }
    summaries
}

fn print(out: &mut impl Write, choice: ChoiceIndex, line: &Line) -> io::Result<()> {
    let text = printable_line(&line.text);
    let mark = match line.kind {
        LineKind::Content => "",
        LineKind::Reasoning => "~ ",
        LineKind::Refusal => "! ",
        LineKind::ToolCall => "> ",
    };
    let style = match line.kind {
        LineKind::Content => style(choice),
        LineKind::Reasoning => style(choice).dimmed(),
        LineKind::Refusal | LineKind::ToolCall => style(choice).bold(),
    };
    writeln!(out, "{style}[{choice}] {mark}{text}{style:#}")
}
