//! `unbraid events`: prints each event as one line of JSON, as it happens.

use std::io;

use clap::ValueHint;

use crate::{
    args::{self, StreamArgs},
    event_lines::EventPrinter,
    exit::{Failure, Status},
    input::{Input, read_blocking, read_live},
};

pub(super) const EXAMPLES: &str = "\
Examples:
  curl -sN .. | unbraid events | jq -c .
  curl -sN .. | unbraid events | jq --unbuffered -rj 'select(.choice == 0 and .type == \"content.delta\").delta'
  unbraid events answer.sse | jq 'select(.type == \"tool_call.done\")'";

#[derive(Debug, clap::Args)]
pub(super) struct EventsArgs {
    /// The recorded stream, or `-` for the standard input
    #[arg(default_value = "-", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

pub(super) fn run(args: &EventsArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let mut input = args.file.open()?;
    let mut printer = EventPrinter::new(io::stdout().lock());
    let result = match args.file {
        Input::File(_) => read_blocking(&mut *input, stream.config(), &mut printer),
        Input::Stdin => read_live(input, stream.config(), &mut printer),
    };
    let result = result.map_err(Failure::Output)?;
    let outcome = result.outcome();
    if outcome.closed.is_some() {
        printer.finish().map_err(Failure::Output)?;
    }
    Ok(outcome.print_diagnostics(&args.file))
}
