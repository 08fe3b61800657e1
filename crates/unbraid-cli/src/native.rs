//! An answer as its provider would have sent it without streaming.
//!
//! The texts of one kind that follow each other are one block, because the stream's own bounds of blocks are not kept.

mod anthropic;
mod bedrock;
mod blocks;
mod cohere;
mod gemini;
mod json;
mod ollama;

use std::{error::Error, fmt};

use unbraid_core::{
    ChoiceEnd, ChoiceIndex, Demux, Dialect, FinishReason, Transcript,
    internal::{aggregate_of, choice_json},
};

/// Why an answer has no form of its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NativeError {
    /// The dialect's own form needs what the stream's choices do not keep.
    Dialect(Dialect),
    /// The dialect's own form has one choice only.
    SeveralChoices { dialect: Dialect, choices: usize },
    /// The arguments of a call are not JSON, for example because they were cut.
    Arguments { choice: ChoiceIndex, call: usize },
    /// The blocks are those of a model's own format, which `invoke` of Bedrock passes on.
    Invoked,
}

impl fmt::Display for NativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dialect(dialect) => write!(
                f,
                "no native form of the dialect {dialect}: the ids and the order of its items are not kept"
            ),
            Self::SeveralChoices { dialect, choices } => write!(
                f,
                "no native form of {choices} choices: a response of the dialect {dialect} has one"
            ),
            Self::Arguments { choice, call } => write!(
                f,
                "no native form: the arguments of call {call} of choice {choice} are not JSON"
            ),
            Self::Invoked => f.write_str(
                "no native form: the blocks are in the format of a model, which Converse does not have",
            ),
        }
    }
}

impl Error for NativeError {}

/// The response of the stream's provider as JSON text; `None` if the stream has no choice.
pub(crate) fn response(demux: &Demux) -> Result<Option<String>, NativeError> {
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|choice| choice.index());
    let (Some(dialect), [first, others @ ..]) = (demux.metadata().dialect(), &*choices) else {
        return Ok(None);
    };
    let answer = Answer {
        demux,
        choice: first,
    };
    match dialect {
        Dialect::Chat | Dialect::Text => return Ok(Some(chat(demux, &choices))),
        Dialect::Gemini => return gemini::response(demux, &choices).map(Some),
        Dialect::Responses => return Err(NativeError::Dialect(dialect)),
        _ if !others.is_empty() => {
            return Err(NativeError::SeveralChoices {
                dialect,
                choices: choices.len(),
            });
        }
        _ => {}
    }
    let response = match dialect {
        Dialect::Anthropic => anthropic::response(answer)?,
        Dialect::Ollama => ollama::response(answer)?,
        Dialect::Cohere => cohere::response(answer),
        Dialect::Bedrock => bedrock::response(answer)?,
        _ => return Err(NativeError::Dialect(dialect)),
    };
    Ok(Some(response))
}

/// A response in the format of chat or text completions. A choice that failed has its error, as providers have that report it
/// beside a finish reason (X4).
fn chat(demux: &Demux, choices: &[&Transcript]) -> String {
    let choices = choices.iter().map(|choice| {
        let mut json = choice_json(choice);
        if let Some(error) = server_error(choice) {
            json.truncate(json.len() - 1);
            json.extend([",\"error\":", &error, "}"]);
        }
        json
    });
    aggregate_of(demux.metadata(), &demux.usage(), choices.collect(), &[])
}

/// The error that the server reported for a choice, as JSON.
fn server_error(choice: &Transcript) -> Option<String> {
    match choice.end()? {
        ChoiceEnd::ServerError(error) => Some(error.body_json()),
        _ => None,
    }
}

/// The only choice of a stream.
#[derive(Clone, Copy)]
struct Answer<'d> {
    demux: &'d Demux,
    choice: &'d Transcript,
}

impl Answer<'_> {
    /// The finish reason as JSON.
    fn reason(&self) -> String {
        reason(self.choice)
    }

    /// The role, which hardly any server leaves out.
    fn role(&self) -> &str {
        self.choice.role().map_or("assistant", |role| role)
    }

    /// The usage, as reported.
    fn usage(&self) -> Option<String> {
        self.demux.usage().raw_json()
    }
}

/// The finish reason of a choice as JSON.
fn reason(choice: &Transcript) -> String {
    let reason = choice.finish_reason().map(FinishReason::as_str);
    serde_json::Value::from(reason).to_string()
}
