//! The providers and models that a question is sent to.

use std::{fmt, str::FromStr};

use serde_json::Value;
use unbraid_core::limits::MAX_CHOICES;
use unbraid_http::{Provider, Request, internal::seed_of};

use super::question;
use crate::{
    exit::Failure,
    labels::{Label, Labels},
};

/// The most choices of one completion.
const MAX: u32 = MAX_CHOICES as u32;

/// A provider and one of its models, as `--to` names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) provider: Provider,
    pub(super) model: String,
}

impl FromStr for Target {
    type Err = String;

    /// Reads `PROVIDER:MODEL`. The model may contain further colons, as those of Ollama do.
    fn from_str(text: &str) -> Result<Self, String> {
        let (provider, model) = text
            .split_once(':')
            .ok_or("expected PROVIDER:MODEL, for example anthropic:claude-sonnet-4-5")?;
        if model.trim().is_empty() {
            return Err("the model is missing".to_owned());
        }
        let provider = provider.parse().map_err(|error| format!("{error}"))?;
        Ok(Self {
            provider,
            model: model.trim().to_owned(),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider, self.model)
    }
}

/// A request to one of several providers, and the choices that answer it.
#[derive(Debug, Clone)]
pub(super) struct TargetRequest {
    pub(super) provider: Provider,
    pub(super) request: Request,
    pub(super) choices: u32,
}

/// The requests to several providers in the order of their choices, and the labels of these.
///
/// Each provider gives as many answers as the request asks for. One without `n` gets a request for each of them.
pub(super) fn requests(
    targets: &[Target],
    request: &Request,
) -> Result<(Vec<TargetRequest>, Labels), Failure> {
    let n = question::requested_choices(&request.body());
    let all = n.saturating_mul(u32::try_from(targets.len()).unwrap_or(u32::MAX));
    if targets.len() > 1 && all > MAX {
        return Err(Failure::Usage(format!(
            "{all} answers are too many: at most {MAX} are read"
        )));
    }
    let n = n.min(MAX);
    let (mut requests, mut labels) = (Vec::new(), Vec::new());
    for target in targets {
        let provider = target.provider;
        let mut own = request.clone();
        own.set("model", target.model.as_str());
        let label = || Label {
            provider: provider.as_str(),
            model: target.model.clone(),
        };
        labels.extend((0..n).map(|_| label()));
        if provider.has_n() || n == 1 {
            requests.push(TargetRequest {
                provider,
                request: own,
                choices: n,
            });
            continue;
        }
        own.remove("n");
        let seed = own.get("seed").and_then(Value::as_number).cloned();
        for nth in 0..n {
            let mut single = own.clone();
            if let Some(seed) = &seed {
                single.set("seed", seed_of(seed, nth));
            }
            requests.push(TargetRequest {
                provider,
                request: single,
                choices: 1,
            });
        }
    }
    // A request that a provider cannot receive is refused before any of them is sent.
    for target in &requests {
        let body = target.request.body_for(target.provider);
        body.map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok((requests, Labels::new(labels)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(text: &str) -> Result<Target, String> {
        text.parse()
    }

    #[test]
    fn a_model_may_contain_colons() {
        let ollama = target("ollama:qwen3:8b").unwrap();
        assert_eq!(
            (ollama.provider, &*ollama.model),
            (Provider::Ollama, "qwen3:8b")
        );
        assert_eq!(ollama.to_string(), "ollama:qwen3:8b");
        for wrong in ["gpt-4o", "claude:x", "openai:", ":m", ""] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_provider_without_n_gets_a_request_for_each_answer() {
        let targets = ["openai:a", "anthropic:b"].map(|text| target(text).unwrap());
        let request = Request::chat("").user("Hello?").n(2);
        let (requests, labels) = requests(&targets, &request).unwrap();
        let choices: Vec<u32> = requests.iter().map(|request| request.choices).collect();
        assert_eq!(choices, [2, 1, 1]);
        let label = |index| labels.text(unbraid_core::ChoiceIndex(index));
        assert_eq!(label(1).as_deref(), Some("openai:a"));
        assert_eq!(label(3).as_deref(), Some("anthropic:b"));
        assert_eq!(label(4), None);
        let seeded = request.seed(7);
        let targets = ["ollama:a"].map(|text| target(text).unwrap());
        let (requests, _) = super::requests(&targets, &seeded).unwrap();
        let seeds = requests.iter().map(|one| one.request.get("seed").cloned());
        assert_eq!(seeds.collect::<Vec<_>>(), [Some(json!(7)), Some(json!(8))]);
    }

    #[test]
    fn more_answers_than_are_read_are_refused() {
        let targets = ["openai:a", "anthropic:b"].map(|text| target(text).unwrap());
        let request = Request::chat("").user("Hello?");
        let many = request.field("n", u32::MAX);
        assert!(requests(&targets, &many).is_err());
        let (one, _) = requests(&targets[1..], &many).unwrap();
        assert_eq!(one.len(), 128);
    }

    #[test]
    fn a_request_that_a_provider_cannot_receive_is_refused() {
        let targets = ["openai:a", "anthropic:b"].map(|text| target(text).unwrap());
        let request = Request::chat("").user("Hello?").seed(7);
        let error = requests(&targets, &request).unwrap_err().to_string();
        assert!(
            error.contains("seed") && error.contains("anthropic"),
            "{error}"
        );
    }
}
