//! `unbraid collect`: prints the whole answer as one JSON object.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::ValueHint;
use unbraid_core::{Demux, Prompt, Transcript};

use crate::{
    args::{self, StreamArgs, UsageArgs, UsageMode},
    exit::{Failure, Status, status_after_output},
    input::{Input, NullListener, read_all},
    json, native,
    report::Report,
    text::{TextPrinter, left_out, print_left_out},
    usage::CAN_COUNT,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  unbraid collect --text answer.sse
  unbraid collect answer.sse | jq -r '.choices[].message.tool_calls[]?.function.name'
  unbraid collect answer.sse | jq '.unbraid.choices[] | select(.end != \"finished\")'
  unbraid collect --usage estimate answer.sse | jq .unbraid.usage
  unbraid collect --request request.json answer.sse | jq .unbraid.usage
  unbraid collect --native answer.sse | jq .stop_reason
  curl -sN .. | unbraid collect --expect-choices 1";

/// What counts tokens, in the message of a build that cannot.
const REQUEST: &str = "--request without `--usage reported`";

#[derive(Debug, clap::Args)]
pub(super) struct CollectArgs {
    /// Print the text and nothing else, with a header line before each choice if there are several
    #[arg(long, conflicts_with_all = ["request", "usage"])]
    text: bool,
    /// Print the response as the provider itself would have sent it without streaming
    #[arg(long, conflicts_with_all = ["text", "request", "usage"])]
    native: bool,
    /// The request, as a JSON file; what the server did not report is counted, the tokens of its prompt too
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
    request: Option<PathBuf>,
    #[command(flatten)]
    usage: UsageArgs,
    /// The recorded stream, or `-` for the standard input
    #[arg(default_value = "-", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    file: Input,
}

pub(super) fn run(args: &CollectArgs, stream: &StreamArgs) -> Result<Status, Failure> {
    let request = args.request.as_deref();
    if request.is_some() && !args.usage.is_explicit() && !CAN_COUNT {
        return Err(Failure::missing(REQUEST, "tokens"));
    }
    let prompt = request.map_or_else(|| Ok(Prompt::default()), read_prompt)?;
    let usage = args.usage.mode(match request {
        None => UsageMode::Reported,
        Some(_) => UsageMode::Estimate,
    });
    let config = stream
        .config()
        .with_choices_per_prompt(prompt.choices_per_prompt());
    let input = args.file.open()?;
    let result = read_all(&args.file, input, config, &mut NullListener).map_err(Failure::Output)?;
    let written = if args.text {
        print_texts(&result.demux, &args.file)
    } else if args.native {
        print_native(&result.demux, &args.file)?
    } else {
        let report = Report::from_demux(&result.demux, &prompt, usage);
        json::write_text(&mut io::stdout().lock(), |out| report.write(out))
    };
    let status = result.outcome().print_diagnostics(&args.file);
    status_after_output(written, status)
}

/// Prints the text of each choice, and what the texts lack on the standard error.
fn print_texts(demux: &Demux, source: &Input) -> io::Result<()> {
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let out = io::stdout();
    let is_terminal = out.is_terminal();
    let mut printer = TextPrinter::new(out, is_terminal, choices.len() > 1);
    let mut lines = Vec::new();
    for choice in &choices {
        printer.begin(choice.index())?;
        let mut printed = 0;
        for delta in choice.content() {
            printed += delta.len();
            printer.push(delta)?;
        }
        // What arrived after the end of the choice belongs to the answer, too (F6). The deltas lack it.
        let message = choice.message();
        let late = message.content.get(printed..);
        printer.push(late.unwrap_or_default())?;
        printer.end()?;
        // Not the message, which is as long as the answer.
        lines.push((choice.index(), left_out(&message)));
    }
    for (index, lines) in lines {
        print_left_out(source, index, &lines);
    }
    Ok(())
}

/// Prints the provider's own response, or nothing for a stream without a choice.
fn print_native(demux: &Demux, source: &Input) -> Result<io::Result<()>, Failure> {
    let response = native::response(demux).map_err(|error| Failure::Native {
        name: source.to_string(),
        error: error.into(),
    })?;
    Ok(response.map_or(Ok(()), |response| {
        json::write_text(&mut io::stdout().lock(), |out| out.write_str(&response))
    }))
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
