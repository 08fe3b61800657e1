//! `unbraid collect`: prints the whole answer as one JSON object.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::ValueHint;
use unbraid_core::Prompt;

use crate::{
    args::{self, StreamArgs},
    exit::{Failure, Status, status_after_output},
    input::{Input, NullListener, read_all},
    json,
    report::Report,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid collect answer.sse | jq -r '.choices[].message.content'
  unbraid collect answer.sse | jq '.unbraid.choices[] | select(.end != \"finished\")'
  unbraid collect --request request.json answer.sse | jq .unbraid.usage
  curl -sN .. | unbraid collect --expect-choices 1";

#[derive(Debug, clap::Args)]
pub(super) struct CollectArgs {
    /// The request, as a JSON file; the tokens of its prompt are counted if the server does not report them
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
    request: Option<PathBuf>,
    /// The recorded stream, or `-` for the standard input
    #[arg(default_value = "-", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

pub(super) fn run(args: &CollectArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let request = args.request.as_deref();
    let prompt = request.map_or_else(|| Ok(Prompt::default()), read_prompt)?;
    let config = stream
        .config()
        .with_choices_per_prompt(prompt.choices_per_prompt());
    let input = args.file.open()?;
    let result = read_all(&args.file, input, config, &mut NullListener).map_err(Failure::Output)?;
    let response = Report::from_demux(&result.demux, &prompt).into_json_text();
    let written = json::write_text(&response, &mut io::stdout().lock());
    let status = result.outcome().print_diagnostics(&args.file);
    status_after_output(written, status)
}

/// Reads the prompt of the request in a file.
fn read_prompt(path: &Path) -> Result<Prompt, Failure> {
    let failure = |error| Failure::File {
        path: path.into(),
        error,
    };
    let bytes = fs::read(path).map_err(failure)?;
    let request = serde_json::from_slice(&bytes).map_err(|error| failure(error.into()))?;
    Ok(Prompt::from_request(&request))
}
