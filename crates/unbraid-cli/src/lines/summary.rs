//! The summary of a stream that is over: how each choice ended, its tokens and its times.

use std::{
    collections::{HashMap, hash_map::Entry},
    io::{self, Write},
    time::Duration,
};

use unbraid::{ChoiceEnd, ChoiceIndex, StreamError, Timing, Usage, Warning};
use unicode_width::UnicodeWidthStr;

use super::color::{end_style, style};
use crate::{
    outcome::{Notice, StreamOutcome},
    printable::{printable, printable_line},
};

/// How a completion ended, with its usage and warnings.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(super) closed: Result<(), StreamError>,
    pub(super) usage: Usage,
    pub(super) warnings: Vec<Warning>,
    /// How many further warnings were not kept.
    pub(super) warnings_dropped: u64,
    /// In order of appearance.
    pub(super) choices: Vec<ChoiceSummary>,
}

/// How one choice ended.
#[derive(Debug)]
pub(super) struct ChoiceSummary {
    pub(super) index: ChoiceIndex,
    /// What it is called beside its index.
    pub(super) label: Option<String>,
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

    /// Prints an empty line, one line for each choice, one for the stream, and one for each warning.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        if !self.choices.is_empty() {
            writeln!(out)?;
        }
        self.print_choices(out, end_in_words)?;
        self.print_stream(out)
    }

    /// Prints the same without the empty line, and each end as the picture above shows it.
    pub(super) fn print_marked(&self, out: &mut impl Write) -> io::Result<()> {
        self.print_choices(out, end_with_mark)?;
        self.print_stream(out)
    }

    /// Prints one line for each choice, in columns. A column in which no choice has anything is left out.
    fn print_choices(&self, out: &mut impl Write, end: fn(&ChoiceEnd) -> String) -> io::Result<()> {
        let mut choices: Vec<&ChoiceSummary> = self.choices.iter().collect();
        choices.sort_by_key(|choice| choice.index);
        let row = |choice: &&ChoiceSummary| self.row(choice, end(&choice.end));
        let rows: Vec<[String; 5]> = choices.iter().map(row).collect();
        let labels = choices.iter().filter_map(|choice| choice.label.as_deref());
        let label_width = labels.map(UnicodeWidthStr::width).max().unwrap_or(0);
        for (choice, row) in choices.iter().zip(&rows) {
            let style = style(choice.index);
            let mut line = format!("{style}[{}]{style:#}", choice.index);
            if label_width > 0 {
                let label = choice.label.as_deref().unwrap_or_default();
                let gap = " ".repeat(label_width - label.width());
                line.extend([" ", label, &gap, " "]);
            }
            for (column, cell) in row.iter().enumerate() {
                let width = rows.iter().filter_map(|row| row.get(column));
                let width = width.map(|cell| cell.width()).max().unwrap_or(0);
                let gap = " ".repeat(width - cell.width());
                match column {
                    0 => {
                        let style = end_style(&choice.end);
                        line.extend([
                            " ",
                            &style.render().to_string(),
                            cell,
                            &style.render_reset().to_string(),
                            &gap,
                        ]);
                    }
                    _ if width == 0 => {}
                    _ => line.extend(["  ", &gap, cell]),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn row(&self, choice: &ChoiceSummary, end: String) -> [String; 5] {
        let usage = &self.usage;
        let is_own = |(index, _): &&(ChoiceIndex, u64)| *index == choice.index;
        let tokens = usage.per_choice.iter().find(is_own).map(|(index, tokens)| {
            let mark = mark(usage.estimated.choices.contains(index));
            format!("{mark}{}", count(*tokens, "token"))
        });
        let calls = choice.call_count as u64;
        let time = |label: &str, time: Option<Duration>| {
            time.map_or_else(String::new, |time| {
                format!("{label} {:.2} s", time.as_secs_f64())
            })
        };
        [
            end,
            if calls == 0 {
                String::new()
            } else {
                count(calls, "call")
            },
            tokens.unwrap_or_default(),
            time("first delta", choice.timing.first_delta),
            time("end", choice.timing.end),
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
        match tokens.iter().rev().find_map(|(number, ..)| *number) {
            Some(1) => write!(out, " token")?,
            Some(_) => write!(out, " tokens")?,
            None => {}
        }
        writeln!(out)?;
        self.print_warnings(out)
    }

    /// Prints a line for each warning. A server often deviates in each of its events, so only the first of equal warnings is
    /// printed.
    fn print_warnings(&self, out: &mut impl Write) -> io::Result<()> {
        for (warning, repetitions) in distinct(&self.warnings) {
            write!(out, "warning: {}", printable_line(&warning.to_string()))?;
            match repetitions {
                0 => writeln!(out)?,
                more => writeln!(out, ", and {more} more like it")?,
            }
        }
        match self.warnings_dropped {
            0 => Ok(()),
            dropped => writeln!(out, "warning: {}", count(dropped, "further warning")),
        }
    }
}

/// The warnings that differ in more than their event, each with the number of those that repeat it.
fn distinct(warnings: &[Warning]) -> Vec<(&Warning, usize)> {
    let mut distinct: Vec<(&Warning, usize)> = Vec::new();
    let mut known = HashMap::new();
    for warning in warnings {
        match known.entry((warning.code, warning.choice, &*warning.message)) {
            Entry::Vacant(place) => {
                place.insert(distinct.len());
                distinct.push((warning, 0));
            }
            Entry::Occupied(place) => {
                if let Some((_, repetitions)) = distinct.get_mut(*place.get()) {
                    *repetitions += 1;
                }
            }
        }
    }
    distinct
}

/// The mark before a figure that was counted here instead of reported by the server.
fn mark(estimated: bool) -> &'static str {
    if estimated { "~" } else { "" }
}

fn count(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

/// The end by its name, with the finish reason if there is one.
fn end_in_words(end: &ChoiceEnd) -> String {
    match end {
        ChoiceEnd::Finished(reason) => format!("finished ({})", printable(reason.as_str())),
        end => end.as_str().to_owned(),
    }
}

/// The end as a picture shows it: a tick and the reason, or a cross and the name.
fn end_with_mark(end: &ChoiceEnd) -> String {
    format!("{} {}", Notice::mark(end), printable(Notice::name(end)))
}
