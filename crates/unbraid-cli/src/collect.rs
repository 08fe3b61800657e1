//! `unbraid collect`: the whole answer as one JSON object.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};
use unbraid::tokens::Encoding;
use unbraid_core::{
    Call, Demux, End, Options, Prompt, StreamError, Transcript, UsageSource, Warning,
};

use crate::{
    exit::{self, Failure, Status},
    input::Source,
    read::{self, Deaf},
};

pub(crate) fn run(
    source: &Source,
    request: Option<&Path>,
    options: Options,
) -> Result<Status, Failure> {
    let prompt = request.map_or_else(|| Ok(Prompt::default()), prompt)?;
    let mut input = exit::open(source)?;
    let reading = read::read(&mut *input, options, &mut Deaf).map_err(Failure::Output)?;
    let written = write(&response(&reading.demux, &prompt), &mut io::stdout().lock());
    let status = exit::tell(source, &reading.outcome());
    exit::written(written, status)
}

/// The non-streaming response, with one key more: how it came to be.
pub(crate) fn response(demux: &Demux, prompt: &Prompt) -> Value {
    let mut response = demux.aggregate();
    if let Value::Object(fields) = &mut response {
        fields.insert("unbraid".into(), account(demux, prompt));
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

/// The request that a file holds.
fn prompt(path: &Path) -> Result<Prompt, Failure> {
    let failure = |error| Failure::File {
        path: path.into(),
        error,
    };
    let bytes = fs::read(path).map_err(failure)?;
    let request = serde_json::from_slice(&bytes).map_err(|error| failure(error.into()))?;
    Ok(Prompt::of(&request))
}

fn account(demux: &Demux, prompt: &Prompt) -> Value {
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let error = demux.closed().and_then(|closed| closed.as_ref().err());
    let warnings: Vec<Value> = demux.warnings().iter().map(Warning::to_json).collect();
    json!({
        "end": end(demux),
        "error": error.map(StreamError::to_json),
        "warnings": warnings,
        "choices": choices.into_iter().map(choice).collect::<Vec<Value>>(),
        "usage": usage(demux, prompt),
    })
}

/// The tokens, what was not reported counted. The response's own `usage` holds what was reported.
fn usage(demux: &Demux, prompt: &Prompt) -> Value {
    let encoding = Encoding::of_answer(demux.metadata(), prompt);
    let usage = demux.estimated_usage(prompt, &encoding);
    let estimated = &usage.estimated;
    let sums = [
        ("prompt_tokens", estimated.prompt),
        ("completion_tokens", estimated.completion),
        ("total_tokens", estimated.total),
    ];
    let sums = sums.into_iter().filter(|(_, estimated)| *estimated);
    let choices = usage.per_choice.iter().map(|(index, tokens)| {
        let estimated = estimated.choices.contains(index);
        json!({ "index": index.0, "completion_tokens": tokens, "estimated": estimated })
    });
    let counted = matches!(usage.source, UsageSource::Estimated | UsageSource::Mixed);
    json!({
        "source": usage.source.as_str(),
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "estimated": sums.map(|(name, _)| name).collect::<Vec<&str>>(),
        "choices": choices.collect::<Vec<Value>>(),
        "encoding": counted.then(|| encoding.name()),
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
