//! `unbraid collect`: the whole answer as one JSON object.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::Value;
use unbraid_core::{Config, Prompt};

use crate::{
    account::Account,
    exit::{self, Failure, Status},
    input::Source,
    json_text, pretty,
    read::{self, Deaf},
};

pub(crate) fn run(
    source: &Source,
    request: Option<&Path>,
    options: Config,
) -> Result<Status, Failure> {
    let prompt = request.map_or_else(|| Ok(Prompt::default()), prompt)?;
    let options = options.with_choices_per_prompt(prompt.choices_per_prompt());
    let input = exit::open(source)?;
    let reading = read::read_all(source, input, options, &mut Deaf).map_err(Failure::Output)?;
    let response = Account::of_demux(&reading.demux, &prompt).into_json_text();
    let written = write_text(&response, &mut io::stdout().lock());
    let status = exit::tell(source, &reading.outcome());
    exit::written(written, status)
}

/// Writes JSON for people and programs alike: indented, with a newline at its end. A terminal may print it.
pub(crate) fn write(value: &Value, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(json_text::Harmless(&mut out), value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Writes JSON text as [`write`] writes a value; its numbers and strings stay as they are.
pub(crate) fn write_text(json: &str, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    pretty::write_indented(json, &mut json_text::Harmless(&mut out))?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The request that a file holds.
fn prompt(path: &Path) -> Result<Prompt, Failure> {
    let failure = |error| Failure::File {
        path: path.into(),
        error,
    };
    let bytes = fs::read(path).map_err(failure)?;
    let request = serde_json::from_slice(&bytes).map_err(|error| failure(error.into()))?;
    Ok(Prompt::from_request(&request))
}
