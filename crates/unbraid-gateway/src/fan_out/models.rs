//! Remembers which models give one choice only, and recognizes the refusals that say so.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use axum::http::StatusCode;
use serde_json::Value;

use crate::limits::{MAX_KNOWN_MODELS, MAX_MODEL_NAME};

/// The models for which the provider refused or ignored `n`.
#[derive(Debug, Default)]
pub(crate) struct SingleChoiceModels(Mutex<BTreeSet<String>>);

impl SingleChoiceModels {
    pub(crate) fn contains(&self, model: &str) -> bool {
        let models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.contains(model)
    }

    pub(crate) fn insert(&self, model: &str) {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() < MAX_KNOWN_MODELS && model.len() <= MAX_MODEL_NAME {
            models.insert(model.to_owned());
        }
    }
}

/// Whether a provider refuses `n`. If this guess is wrong, each of the single requests is refused for the actual reason.
pub(super) fn refuses_n(status: StatusCode, body: &[u8]) -> bool {
    if !matches!(status.as_u16(), 400 | 404 | 422 | 501) {
        return false;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = body.get("error").unwrap_or(&body);
    let is_n = error.get("param").and_then(Value::as_str) == Some("n");
    // Providers use several names, and some send a list of problems.
    let messages = [error, &body]
        .into_iter()
        .flat_map(|object| ["message", "detail", "error"].map(|name| object.get(name)))
        .flatten();
    is_n || messages.into_iter().any(|message| match message {
        Value::String(text) => mentions_n(text),
        Value::Array(problems) => problems.iter().any(is_problem_of_n),
        _ => false,
    })
}

/// FastAPI: `{"loc":["body","n"],"msg":".."}`.
fn is_problem_of_n(problem: &Value) -> bool {
    let location = problem.get("loc").and_then(Value::as_array);
    let at_n = location.is_some_and(|path| path.last().and_then(Value::as_str) == Some("n"));
    at_n || problem
        .get("msg")
        .and_then(Value::as_str)
        .is_some_and(mentions_n)
}

/// Providers write ``Only `n=1` is supported``, `'n' : number must be at most 1`, `n_cmpl cannot be greater than ..`.
fn mentions_n(message: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = message.split(|c| !is_name(c));
    words.any(|word| matches!(word, "n" | "n_cmpl" | "num_choices" | "best_of"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: bool) {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(refuses_n(status, body.as_bytes()), expected, "{body}");
    }

    #[test]
    fn a_refusal_of_n_names_it() {
        check(400, r#"{"error":{"message":"no","param":"n"}}"#, true);
        check(
            400,
            r#"{"error":{"message":"Only `n=1` is supported"}}"#,
            true,
        );
        check(
            422,
            r#"{"detail":[{"loc":["body","n"],"msg":"Input should be 1"}]}"#,
            true,
        );
        check(
            400,
            r#"{"object":"error","message":"'n' : number must be at most 1"}"#,
            true,
        );
        check(400, r#"{"error":"best_of must be 1"}"#, true);
        check(
            400,
            r#"{"error":{"message":"The model `nn` does not exist"}}"#,
            false,
        );
        check(401, r#"{"error":{"message":"n","param":"n"}}"#, false);
        check(400, "<html>", false);
    }

    #[test]
    fn the_number_of_remembered_models_is_bounded() {
        let models = SingleChoiceModels::default();
        let long = "m".repeat(MAX_MODEL_NAME + 1);
        models.insert(&long);
        assert!(!models.contains(&long), "a client chooses the name");
        for index in 0..=MAX_KNOWN_MODELS {
            models.insert(&index.to_string());
        }
        assert!(models.contains("0") && !models.contains(&MAX_KNOWN_MODELS.to_string()));
    }
}
