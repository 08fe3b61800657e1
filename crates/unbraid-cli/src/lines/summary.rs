//! The summary of a stream that is over: how each choice ended, its tokens and its times.

use std::{
    io::{self, Write},
    time::Duration,
};

use unbraid::{ChoiceEnd, ChoiceIndex, StreamError, Timing, Usage, Warning};

use super::color::style;
use crate::{
    outcome::StreamOutcome,
    printable::{printable, printable_line},
};

/// How a completion ended, with its usage and warnings.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(super) closed: Result<(), StreamError>,
    pub(super) usage: Usage,
    pub(super) warnings: Vec<Warning>,
    /// In order of appearance.
    pub(super) choices: Vec<ChoiceSummary>,
}

/// How one choice ended.
#[derive(Debug)]
pub(super) struct ChoiceSummary {
    pub(super) index: ChoiceIndex,
    pub(super) end: ChoiceEnd,
    pub(super) call_count: usize,
    pub(super) timing: Timing,
}

impl Summary {
    /// Converts the summary of a stream from one source. Such a stream opens a choice only for data.
    pub(crate) fn outcome<'o>(&'o self, head: &'o [u8]) -> StreamOutcome<'o> {
        let ends = self.choices.iter();
        StreamOutcome {
            closed: Some(&self.closed),
            ends: ends.map(|choice| (choice.index, &choice.end)).collect(),
            has_data: !self.choices.is_empty(),
            head,
        }
    }

    /// Prints one line for each choice, one for the stream, and one for each warning.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let mut choices: Vec<&ChoiceSummary> = self.choices.iter().collect();
        choices.sort_by_key(|choice| choice.index);
        let rows: Vec<[String; 5]> = choices.iter().map(|choice| self.row(choice)).collect();
        if !rows.is_empty() {
            writeln!(out)?;
        }
        for (choice, row) in choices.iter().zip(&rows) {
            let style = style(choice.index);
            write!(out, "{style}[{}]{style:#}", choice.index)?;
            for (column, cell) in row.iter().enumerate() {
                let width = rows.iter().filter_map(|row| row.get(column));
                let width = width.map(|cell| cell.chars().count()).max().unwrap_or(0);
                match column {
                    0 => write!(out, " {cell:<width$}")?,
                    _ => write!(out, "  {cell:>width$}")?,
                }
            }
            writeln!(out)?;
        }
        self.print_stream(out)
    }

    fn row(&self, choice: &ChoiceSummary) -> [String; 5] {
        let usage = &self.usage;
        let is_own = |(index, _): &&(ChoiceIndex, u64)| *index == choice.index;
        let tokens = usage.per_choice.iter().find(is_own).map(|(index, tokens)| {
            let mark = mark(usage.estimated.choices.contains(index));
            format!("{mark}{}", count(*tokens, "token"))
        });
        let end = match &choice.end {
            ChoiceEnd::Finished(reason) => format!("finished ({})", printable(reason.as_str())),
            end => end.as_str().to_owned(),
        };
        [
            end,
            count(choice.call_count as u64, "call"),
            tokens.unwrap_or_else(|| "- tokens".into()),
            format!("first delta {}", seconds(choice.timing.first_delta)),
            seconds(choice.timing.end),
        ]
    }

    fn print_stream(&self, out: &mut impl Write) -> io::Result<()> {
        let closed = match &self.closed {
            Ok(()) => "closed",
            Err(error) => error.as_str(),
        };
        write!(out, "stream {closed}")?;
        let (usage, estimated) = (&self.usage, &self.usage.estimated);
        let tokens = [
            (usage.prompt_tokens, estimated.prompt, "prompt"),
            (usage.completion_tokens, estimated.completion, "completion"),
            (usage.total_tokens, estimated.total, "total"),
        ];
        for (number, estimated, name) in tokens {
            if let Some(number) = number {
                write!(out, "  {}{number} {name}", mark(estimated))?;
                if let Some(counted) = usage.counted.filter(|_| name == "completion") {
                    // The server reported fewer tokens than arrived (U15).
                    write!(out, " (~{counted})")?;
                }
            }
        }
        if tokens.iter().any(|(number, ..)| number.is_some()) {
            write!(out, " tokens")?;
        }
        writeln!(out)?;
        for warning in &self.warnings {
            writeln!(out, "warning: {}", printable_line(&warning.to_string()))?;
        }
        Ok(())
    }
}

/// The mark before a figure that was counted here instead of reported by the server.
fn mark(estimated: bool) -> &'static str {
    if estimated { "~" } else { "" }
}

fn count(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".into(), |time| format!("{:.2} s", time.as_secs_f64()))
}
