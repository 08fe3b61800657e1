//! The tokenizer of a completion, chosen once its response is known.

use std::{fmt, sync::Arc};

use unbraid_core::{Metadata, Prompt, Tokenizer};

type Select = dyn Fn(&Metadata, &Prompt) -> Arc<dyn Tokenizer> + Send + Sync;

/// Chooses the tokenizer that counts what the server did not report. A request may name a deployment instead of a model, so
/// the choice is made from the response.
#[derive(Clone)]
pub(crate) struct TokenizerSelector(Arc<Select>);

impl TokenizerSelector {
    pub(crate) fn fixed(tokenizer: impl Tokenizer + 'static) -> Self {
        let tokenizer: Arc<dyn Tokenizer> = Arc::new(tokenizer);
        Self(Arc::new(move |_, _| Arc::clone(&tokenizer)))
    }

    pub(crate) fn by_response<T: Tokenizer + 'static>(
        select: impl Fn(&Metadata, &Prompt) -> T + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |metadata, prompt| {
            Arc::new(select(metadata, prompt))
        }))
    }

    /// Runs foreign code: not under a lock.
    pub(crate) fn select(&self, metadata: &Metadata, prompt: &Prompt) -> Arc<dyn Tokenizer> {
        (self.0)(metadata, prompt)
    }
}

impl fmt::Debug for TokenizerSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenizerSelector(..)")
    }
}
