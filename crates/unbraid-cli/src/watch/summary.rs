//! What is said of a stream when it is over.

use std::{
    io::{self, Write},
    time::Duration,
};

use unbraid::{ChoiceEnd, ChoiceIndex, StreamError, Timing, Usage, Warning};

use super::show::style;
use crate::{
    exit::Outcome,
    printable::{printable, printable_line},
};

/// A completion that was shown to its end.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(super) closed: Result<(), StreamError>,
    pub(super) usage: Usage,
    pub(super) warnings: Vec<Warning>,
    /// In order of appearance.
    pub(super) choices: Vec<Ended>,
}

/// A choice that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) index: ChoiceIndex,
    pub(super) end: ChoiceEnd,
    pub(super) calls: usize,
    pub(super) timing: Timing,
}

impl Shown {
    /// How a stream of one source ended: each of its choices has come.
    pub(crate) fn outcome<'o>(&'o self, head: &'o [u8]) -> Outcome<'o> {
        let ends = self.choices.iter();
        Outcome {
            closed: Some(&self.closed),
            ends: ends.map(|choice| (choice.index, &choice.end)).collect(),
            came: !self.choices.is_empty(),
            head,
        }
    }

    /// One line a choice, one for the stream, one a warning.
    pub(super) fn summarize(&self, out: &mut impl Write) -> io::Result<()> {
        let mut choices: Vec<&Ended> = self.choices.iter().collect();
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
        self.stream(out)
    }

    fn row(&self, choice: &Ended) -> [String; 5] {
        let usage = &self.usage;
        let own = |(index, _): &&(ChoiceIndex, u64)| *index == choice.index;
        let tokens = usage.per_choice.iter().find(own).map(|(index, tokens)| {
            let mark = mark(usage.estimated.choices.contains(index));
            format!("{mark}{}", count(*tokens, "token"))
        });
        let end = match &choice.end {
            ChoiceEnd::Finished(reason) => format!("finished ({})", printable(reason.as_str())),
            end => end.as_str().to_owned(),
        };
        [
            end,
            count(choice.calls as u64, "call"),
            tokens.unwrap_or_else(|| "- tokens".into()),
            format!("first delta {}", seconds(choice.timing.first_delta)),
            seconds(choice.timing.end),
        ]
    }

    fn stream(&self, out: &mut impl Write) -> io::Result<()> {
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
        for (number, estimated, what) in tokens {
            if let Some(number) = number {
                write!(out, "  {}{number} {what}", mark(estimated))?;
                if let Some(counted) = usage.counted.filter(|_| what == "completion") {
                    write!(out, " (~{counted})")?; // U15
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

/// What stands before a figure that was counted here, not reported.
fn mark(estimated: bool) -> &'static str {
    if estimated { "~" } else { "" }
}

fn count(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".into(), |time| format!("{:.2} s", time.as_secs_f64()))
}
