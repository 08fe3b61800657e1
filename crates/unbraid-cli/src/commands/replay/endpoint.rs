//! The endpoints of the providers: which recordings answer there, when a response is streamed, and how an error is written.

use hyper::StatusCode;
use serde_json::{Value, json};
use unbraid_core::Dialect;

/// One path of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The end of the path, after any prefix.
    pub(super) suffix: &'static str,
    pub(super) api: Api,
    streams: Streams,
}

/// The interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
    Cohere,
    Bedrock,
}

/// Which requests are answered with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    /// Those with `"stream": true`.
    IfRequested,
    /// All but those with `"stream": false`.
    UnlessRefused,
    Always,
    Never,
}

const ENDPOINTS: [Endpoint; 13] = [
    endpoint("/chat/completions", Api::OpenAi, Streams::IfRequested),
    endpoint("/completions", Api::OpenAi, Streams::IfRequested),
    endpoint("/responses", Api::Responses, Streams::IfRequested),
    endpoint("/messages", Api::Anthropic, Streams::IfRequested),
    endpoint(":streamGenerateContent", Api::Gemini, Streams::Always),
    endpoint(":generateContent", Api::Gemini, Streams::Never),
    endpoint("/api/chat", Api::Ollama, Streams::UnlessRefused),
    endpoint("/api/generate", Api::Ollama, Streams::UnlessRefused),
    endpoint("/v2/chat", Api::Cohere, Streams::IfRequested),
    endpoint("/converse-stream", Api::Bedrock, Streams::Always),
    endpoint("/converse", Api::Bedrock, Streams::Never),
    endpoint(
        "/invoke-with-response-stream",
        Api::Bedrock,
        Streams::Always,
    ),
    endpoint("/invoke", Api::Bedrock, Streams::Never),
];

const fn endpoint(suffix: &'static str, api: Api, streams: Streams) -> Endpoint {
    Endpoint {
        suffix,
        api,
        streams,
    }
}

impl Endpoint {
    /// The endpoint of a path.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        ENDPOINTS
            .into_iter()
            .find(|endpoint| path.ends_with(endpoint.suffix))
    }

    /// What a path adds to the base URL of its provider.
    pub(super) fn below_base(self, path: &str) -> &str {
        let from = match self.api {
            // These paths contain the model.
            Api::Gemini => path.rfind("/models/"),
            Api::Bedrock => path.rfind("/model/"),
            _ => None,
        };
        let from = from.unwrap_or_else(|| path.len().saturating_sub(self.suffix.len()));
        path.get(from..).unwrap_or(path)
    }

    /// The model that a path names.
    pub(super) fn model(self, path: &str) -> Option<&str> {
        let marker = match self.api {
            Api::Gemini => "/models/",
            Api::Bedrock => "/model/",
            _ => return None,
        };
        let (_, model) = self.below_base(path).split_once(marker)?;
        model.strip_suffix(self.suffix)
    }

    /// Whether this request is answered with a stream.
    pub(super) fn wants_stream(self, body: &Value) -> bool {
        match self.streams {
            Streams::IfRequested => body.get("stream") == Some(&Value::Bool(true)),
            Streams::UnlessRefused => body.get("stream") != Some(&Value::Bool(false)),
            Streams::Always => true,
            Streams::Never => false,
        }
    }
}

impl Api {
    /// Whether a recording can answer here. One of no dialect, such as an error, can answer anywhere.
    pub(super) fn has_dialect(self, dialect: Option<Dialect>) -> bool {
        let Some(dialect) = dialect else { return true };
        match self {
            Self::OpenAi => matches!(dialect, Dialect::Chat | Dialect::Text),
            Self::Responses => dialect == Dialect::Responses,
            Self::Anthropic => dialect == Dialect::Anthropic,
            Self::Gemini => dialect == Dialect::Gemini,
            Self::Ollama => dialect == Dialect::Ollama,
            Self::Cohere => dialect == Dialect::Cohere,
            Self::Bedrock => dialect == Dialect::Bedrock,
        }
    }

    /// An error as this provider writes it.
    pub(super) fn error(self, status: StatusCode, message: &str) -> Value {
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        match self {
            Self::OpenAi | Self::Responses => {
                let kind = match status.as_u16() {
                    429 => kind,
                    500.. => "server_error",
                    _ => "invalid_request_error",
                };
                json!({ "error": { "message": message, "type": kind, "code": status.as_u16() } })
            }
            Self::Anthropic => {
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            Self::Gemini => {
                let name = match status.as_u16() {
                    400 => "INVALID_ARGUMENT",
                    401 => "UNAUTHENTICATED",
                    403 => "PERMISSION_DENIED",
                    404 => "NOT_FOUND",
                    429 => "RESOURCE_EXHAUSTED",
                    503 => "UNAVAILABLE",
                    504 => "DEADLINE_EXCEEDED",
                    500.. => "INTERNAL",
                    _ => "FAILED_PRECONDITION",
                };
                let code = status.as_u16();
                json!({ "error": { "code": code, "message": message, "status": name } })
            }
            Self::Ollama => json!({ "error": message }),
            Self::Cohere | Self::Bedrock => json!({ "message": message }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_endpoint_behind_any_prefix() {
        let api = |path: &str| Endpoint::of_path(path).map(|endpoint| endpoint.api);
        assert_eq!(api("/v1/chat/completions"), Some(Api::OpenAi));
        assert_eq!(api("/openai/v1/responses"), Some(Api::Responses));
        assert_eq!(api("/v1/messages"), Some(Api::Anthropic));
        assert_eq!(api("/v1beta/models/m:generateContent"), Some(Api::Gemini));
        assert_eq!(api("/api/chat"), Some(Api::Ollama));
        assert_eq!(api("/v2/chat"), Some(Api::Cohere));
        assert_eq!(api("/model/m/converse-stream"), Some(Api::Bedrock));
        assert_eq!(api("/v1/models"), None);
    }

    #[test]
    fn a_model_can_be_in_the_path() {
        let check = |path: &str, model: Option<&str>, below: &str| {
            let endpoint = Endpoint::of_path(path).unwrap();
            assert_eq!(endpoint.model(path), model, "{path}");
            assert_eq!(endpoint.below_base(path), below, "{path}");
        };
        let gemini = "/v1beta/models/gemini-x:streamGenerateContent";
        check(
            gemini,
            Some("gemini-x"),
            "/models/gemini-x:streamGenerateContent",
        );
        check("/model/m.x/invoke", Some("m.x"), "/model/m.x/invoke");
        check("/x/v1/messages", None, "/messages");
        check("/api/chat", None, "/api/chat");
    }

    #[test]
    fn only_ollama_streams_by_itself() {
        let wants = |path: &str, body: Value| Endpoint::of_path(path).unwrap().wants_stream(&body);
        assert!(wants("/api/chat", json!({})));
        assert!(!wants("/api/chat", json!({ "stream": false })));
        assert!(!wants("/v1/messages", json!({})));
        assert!(wants("/v1/messages", json!({ "stream": true })));
        assert!(!wants(
            "/models/m:generateContent",
            json!({ "stream": true })
        ));
        assert!(wants("/models/m:streamGenerateContent", json!({})));
    }
}
