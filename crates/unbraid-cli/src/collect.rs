//! `unbraid collect`: the whole answer as one JSON object.

use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};
use unbraid_core::{Call, Demux, End, Options, StreamError, Transcript, Warning};

use crate::{
    exit::{self, Failure, Status},
    input::Source,
    read::{self, Deaf},
};

pub(crate) fn run(source: &Source, options: Options) -> Result<Status, Failure> {
    let mut input = exit::open(source)?;
    let reading = read::read(&mut *input, options, &mut Deaf).map_err(Failure::Output)?;
    let written = write(&response(&reading.demux), &mut io::stdout().lock());
    let status = exit::tell(source, &reading.outcome());
    exit::written(written, status)
}

/// The non-streaming response, with one key more: how it came to be.
pub(crate) fn response(demux: &Demux) -> Value {
    let mut response = demux.aggregate();
    if let Value::Object(fields) = &mut response {
        fields.insert("unbraid".into(), account(demux));
    }
    response
}

/// Writes JSON for people and programs alike: indented, with a newline at its end.
pub(crate) fn write(value: &Value, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn account(demux: &Demux) -> Value {
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let error = demux.closed().and_then(|closed| closed.as_ref().err());
    let warnings: Vec<Value> = demux.warnings().iter().map(Warning::to_json).collect();
    json!({
        "end": end(demux),
        "error": error.map(StreamError::to_json),
        "warnings": warnings,
        "choices": choices.into_iter().map(choice).collect::<Vec<Value>>(),
    })
}

/// How the stream ended: by its own error, or else as the choice that fared worst.
fn end(demux: &Demux) -> &'static str {
    if let Some(Err(error)) = demux.closed() {
        return error.name();
    }
    let first = |wanted: fn(&End) -> bool| {
        let mut unfinished = exit::unfinished(demux).map(|(_, end)| end);
        unfinished.find(|end| wanted(end))
    };
    first(|end| matches!(end, End::Interrupted))
        .or_else(|| first(|end| matches!(end, End::DoneWithoutFinish)))
        .or_else(|| first(|_| true))
        .map_or("finished", End::name)
}

fn choice(choice: &Transcript) -> Value {
    let calls: Vec<Value> = choice.message().tool_calls.iter().map(status).collect();
    json!({
        "index": choice.index().0,
        "end": choice.end().map(End::name),
        "error": choice.end().map(End::error_json),
        "tool_calls": calls,
    })
}

fn status(call: &Call) -> Value {
    json!({ "status": call.status.map(|status| status.as_str()), "error": call.error_json() })
}
