//! The statistics as a table.

use std::{
    io::{self, Write},
    time::Duration,
};

use unbraid_core::{ChoiceEnd, StreamError};

use super::{Row, Stats, measure::ChoiceStats};
use crate::{
    lines::style,
    printable::{printable, printable_line},
    usage::CAN_COUNT,
};

/// A column: its heading, and its cell for each row. A column without any cell is not printed.
struct Column {
    heading: &'static str,
    cells: Vec<String>,
}

/// Writes one line for each choice, one for the stream, and one for each warning.
pub(super) fn write(stats: &Stats<'_>, out: &mut impl Write) -> io::Result<()> {
    let rows = stats.rows();
    let columns: Vec<Column> = columns(&rows)
        .into_iter()
        .filter(|column| column.cells.iter().any(|cell| !cell.is_empty()))
        .collect();
    if !rows.is_empty() {
        write_line(&columns, |column| column.heading, out)?;
    }
    for (number, row) in rows.iter().enumerate() {
        let style = style(row.outcome.choice);
        write!(out, "{style}")?;
        let cell = |column: &Column| column.cells.get(number).cloned().unwrap_or_default();
        write_cells(&columns, cell, out)?;
        writeln!(out, "{style:#}")?;
    }
    write_stream(stats, out)?;
    for warning in stats.demux.warnings() {
        writeln!(out, "warning: {}", printable_line(&warning.to_string()))?;
    }
    let dropped = stats.demux.warnings_dropped();
    if dropped > 0 {
        writeln!(out, "warning: {dropped} further warnings")?;
    }
    out.flush()
}

fn columns(rows: &[Row<'_>]) -> Vec<Column> {
    let column = |heading, cell: &dyn Fn(&Row<'_>) -> String| Column {
        heading,
        cells: rows.iter().map(cell).collect(),
    };
    let measured = |heading, cell: &dyn Fn(&ChoiceStats) -> String| {
        column(heading, &|row| row.measured.map_or_else(String::new, cell))
    };
    let pause = |heading, percentile: fn(&super::measure::Pauses) -> Duration| {
        measured(heading, &|choice| {
            time(choice.pauses().as_ref().map(percentile))
        })
    };
    let arguments = |row: &Row<'_>| {
        let calls = row.outcome.message.tool_calls.iter();
        calls.map(|call| call.arguments.len() as u64).sum()
    };
    vec![
        column("choice", &|row| row.outcome.choice.to_string()),
        column("end", &end),
        measured("deltas", &|choice| choice.deltas.to_string()),
        column("tokens", &tokens),
        measured("text", &|choice| size(choice.content_bytes)),
        measured("reasoning", &|choice| size(choice.reasoning_bytes)),
        measured("refusal", &|choice| size(choice.refusal_bytes)),
        column("calls", &|row| {
            count(row.outcome.message.tool_calls.len() as u64)
        }),
        column("arguments", &|row| size(arguments(row))),
        measured("first delta", &|choice| time(choice.first_delta)),
        pause("gap p50", |pauses| pauses.p50),
        pause("gap p90", |pauses| pauses.p90),
        pause("gap p99", |pauses| pauses.p99),
        pause("gap max", |pauses| pauses.max),
    ]
}

fn write_line(
    columns: &[Column],
    cell: impl Fn(&Column) -> &'static str,
    out: &mut impl Write,
) -> io::Result<()> {
    write_cells(columns, |column| cell(column).to_owned(), out)?;
    writeln!(out)
}

/// Writes the cells of a line. The first two columns are text, and the others are numbers.
fn write_cells(
    columns: &[Column],
    cell: impl Fn(&Column) -> String,
    out: &mut impl Write,
) -> io::Result<()> {
    for (position, column) in columns.iter().enumerate() {
        let lengths = column.cells.iter().map(|cell| cell.chars().count());
        let width = lengths.max().unwrap_or(0).max(column.heading.len());
        let cell = cell(column);
        match position {
            0 => write!(out, "{cell:<width$}")?,
            1 => write!(out, "  {cell:<width$}")?,
            _ => write!(out, "  {cell:>width$}")?,
        }
    }
    Ok(())
}

/// Writes how the stream closed, its size, and how far it came.
fn write_stream(stats: &Stats<'_>, out: &mut impl Write) -> io::Result<()> {
    let (measure, usage) = (stats.measure, &stats.usage);
    let closed = match stats.demux.closed() {
        Some(Err(error)) => StreamError::as_str(error),
        Some(Ok(())) | None => "closed",
    };
    write!(out, "stream {closed}  {} bytes", measure.bytes)?;
    if let Some(event) = measure.last_event {
        write!(out, "  last event {event}")?;
    }
    if let Some(duration) = measure.duration {
        write!(out, "  {}", time(Some(duration)))?;
    }
    let sums = [
        (usage.prompt_tokens, usage.estimated.prompt, "prompt"),
        (
            usage.completion_tokens,
            usage.estimated.completion,
            "completion",
        ),
    ];
    for (tokens, is_estimated, name) in sums {
        if let Some(tokens) = tokens {
            let mark = if is_estimated { "~" } else { "" };
            write!(out, "  {mark}{tokens} {name} tokens")?;
        }
    }
    writeln!(out)?;
    if !CAN_COUNT {
        writeln!(
            out,
            "tokens: as reported, because this build does not count them"
        )?;
    }
    match measure.times() {
        Some("live") => writeln!(out, "times: from the start of this command"),
        Some(_) => writeln!(out, "times: from the request, as recorded"),
        None => writeln!(out, "times: this recording has none"),
    }
}

/// How a choice ended. One that did not finish shows where its last delta ended.
fn end(row: &Row<'_>) -> String {
    let last = row.measured.and_then(|measured| measured.last);
    match (&row.outcome.end, last) {
        (ChoiceEnd::Finished(reason), _) => format!("finished ({})", printable(reason.as_str())),
        (end, Some((event, byte))) => {
            format!("{} after event {event}, byte {byte}", end.as_str())
        }
        (end, None) => end.as_str().to_owned(),
    }
}

/// The tokens of a choice. A `~` marks those that were counted here.
fn tokens(row: &Row<'_>) -> String {
    row.tokens.map_or_else(String::new, |(tokens, estimated)| {
        let mark = if estimated { "~" } else { "" };
        format!("{mark}{tokens}")
    })
}

/// A number, or nothing for 0.
fn count(number: u64) -> String {
    match number {
        0 => String::new(),
        number => number.to_string(),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!("{bytes} B"),
    }
}

fn time(time: Option<Duration>) -> String {
    time.map_or_else(String::new, |time| {
        let seconds = time.as_secs_f64();
        match seconds < 1.0 {
            true => format!("{:.1} ms", seconds * 1e3),
            false => format!("{seconds:.2} s"),
        }
    })
}
