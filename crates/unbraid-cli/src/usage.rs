//! The usage of an answer, with the tokens that the server reported, or also with those that it did not.

use unbraid::CompletionsBuilder;
use unbraid_core::{ChoiceIndex, Demux, Metadata, Prompt, Transcript, Usage, estimate_with};

/// Whether this build can count tokens.
pub(crate) const CAN_COUNT: bool = cfg!(feature = "tokens");

/// The usage that the server reported, with the sums that follow from it. No text is counted.
pub(crate) fn reported(usage: Usage, mut choices: impl Iterator<Item = ChoiceIndex>) -> Usage {
    // The reported sum of a single choice is that choice's number.
    let only = match (choices.next(), choices.next()) {
        (Some(only), None) if usage.completion_tokens.is_some() && !usage.below_received => {
            Some((only, || 0))
        }
        _ => None,
    };
    estimate_with(&usage, || None, only)
}

/// The usage that the server of a stream reported, with the sums that follow from it.
pub(crate) fn reported_by(demux: &Demux) -> Usage {
    reported(demux.usage(), demux.choices().map(Transcript::index))
}

#[cfg(feature = "tokens")]
mod counted {
    use unbraid::tokens::Counter;

    use super::{CompletionsBuilder, Demux, Metadata, Prompt, Usage};

    /// Counts what the server does not report.
    pub(crate) fn with_counter(builder: CompletionsBuilder) -> CompletionsBuilder {
        builder.tokenizer_for(Counter::for_response)
    }

    /// The usage with counted figures where the server reported none.
    pub(crate) fn estimated(demux: &Demux, prompt: &Prompt) -> Usage {
        demux.estimated_usage(prompt, &Counter::for_response(demux.metadata(), prompt))
    }

    /// The name of the encoding in which the tokens of a response are counted.
    pub(crate) fn encoding(metadata: &Metadata, prompt: &Prompt) -> Option<&'static str> {
        let counter = Counter::for_response(metadata, prompt);
        Some(counter.encoding().name())
    }
}

/// Nothing is counted: only the figures of the server are known.
#[cfg(not(feature = "tokens"))]
mod counted {
    use super::{CompletionsBuilder, Demux, Metadata, Prompt, Usage, reported_by};

    pub(crate) fn with_counter(builder: CompletionsBuilder) -> CompletionsBuilder {
        builder
    }

    pub(crate) fn estimated(demux: &Demux, _prompt: &Prompt) -> Usage {
        reported_by(demux)
    }

    pub(crate) fn encoding(_metadata: &Metadata, _prompt: &Prompt) -> Option<&'static str> {
        None
    }
}

pub(crate) use self::counted::{encoding, estimated, with_counter};
