//! `unbraid stats`: the times, tokens, calls and sizes of each choice.

mod clock;
mod json;
mod measure;
mod table;

use std::io;

use clap::ValueHint;
use unbraid_core::{ChoiceOutcome, Demux, Prompt, Transcript, Usage};

use self::{
    clock::Clock,
    measure::{ChoiceStats, Measure},
};
use crate::{
    args::{self, StreamArgs},
    exchange::Exchange,
    exit::{Failure, Status, status_after_output},
    input::{Input, read_blocking, read_live},
    output::stdout,
    usage,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid stats answer.sse
  curl -sN .. | unbraid stats
  unbraid stats --json answer.sse | jq '.choices[] | {index, tokens, first_delta_ms}'
  unbraid stats --json answer.sse | jq '[.choices[].deltas] | add'";

#[derive(Debug, clap::Args)]
pub(super) struct StatsArgs {
    /// Print one JSON object in place of the table
    #[arg(long)]
    json: bool,
    /// The recorded stream, or `-` for the standard input
    #[arg(default_value = "-", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

/// Everything that is known about a stream that is over.
struct Stats<'s> {
    demux: &'s Demux,
    usage: Usage,
    measure: &'s Measure,
}

pub(super) fn run(args: &StatsArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let mut input = args.file.open()?;
    let (prompt, clock) = match args.file.path().map(Exchange::read).transpose()?.flatten() {
        Some(exchange) => {
            let prompt = Prompt::from_request(&exchange.request.body);
            (prompt, Clock::recorded(exchange.response.times()))
        }
        None if args.file.is_live() => (Prompt::default(), Clock::live()),
        None => (Prompt::default(), Clock::None),
    };
    let mut measure = Measure::new(clock);
    let config = stream
        .config()
        .with_choices_per_prompt(prompt.choices_per_prompt());
    let result = match args.file {
        Input::File(_) => read_blocking(&mut *input, config, &mut measure),
        Input::Stdin => read_live(input, config, &mut measure),
    };
    let result = result.map_err(Failure::Output)?;
    let stats = Stats {
        demux: &result.demux,
        usage: usage::estimated(&result.demux, &prompt),
        measure: &measure,
    };
    let written = match args.json {
        true => crate::json::write_value(&json::to_json(&stats), &mut io::stdout().lock()),
        false => table::write(&stats, &mut stdout()),
    };
    let status = result.outcome().print_diagnostics(&args.file);
    status_after_output(written, status)
}

/// One choice, with its measurements.
struct Row<'s> {
    outcome: ChoiceOutcome,
    /// Missing for a choice that ended before it had an event.
    measured: Option<&'s ChoiceStats>,
    /// Its tokens if they are known, and whether they are estimated.
    tokens: Option<(u64, bool)>,
}

impl Stats<'_> {
    /// The choices in the order of their indices.
    fn rows(&self) -> Vec<Row<'_>> {
        let outcomes = self.demux.choices().filter_map(Transcript::outcome);
        let mut rows: Vec<Row<'_>> = outcomes.map(|outcome| self.row(outcome)).collect();
        rows.sort_by_key(|row| row.outcome.choice);
        rows
    }

    fn row(&self, outcome: ChoiceOutcome) -> Row<'_> {
        let mut tokens = self.usage.per_choice.iter();
        let tokens = tokens.find(|(index, _)| *index == outcome.choice);
        Row {
            measured: self.measure.choice(outcome.choice),
            tokens: tokens.map(|(index, tokens)| {
                let is_estimated = self.usage.estimated.choices.contains(index);
                (*tokens, is_estimated)
            }),
            outcome,
        }
    }
}
