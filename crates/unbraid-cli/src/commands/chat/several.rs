//! One question to several providers, whose answers are the choices of one completion.

use serde_json::Value;
use unbraid::{Completions, CompletionsBuilder};
use unbraid_http::Client;

use super::target::TargetRequest;

/// The clients and requests of the providers, in the order of their choices.
#[derive(Debug)]
pub(super) struct Several {
    builder: CompletionsBuilder,
    requests: Vec<(Client, TargetRequest)>,
}

impl Several {
    /// `builder` has the timeouts of every stream.
    pub(super) fn new(builder: CompletionsBuilder, requests: Vec<(Client, TargetRequest)>) -> Self {
        Self { builder, requests }
    }

    /// How many choices all of them may have.
    pub(super) fn choices(&self) -> u32 {
        self.requests.iter().map(|(_, target)| target.choices).sum()
    }

    /// Sends all requests, and waits for none: a request that fails is the end of its own choices.
    pub(super) fn start(&self, body: &Value) -> Completions {
        let builder = self.builder.clone().request(body);
        let (completions, source_set) = builder.source_set();
        let mut first = 0;
        for (client, target) in &self.requests {
            let source = client.source(target.request.clone());
            let end = first + target.choices;
            if source_set.add(source, first..end).is_none() {
                break;
            }
            first = end;
        }
        completions
    }
}
