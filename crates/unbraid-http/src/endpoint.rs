//! The destination of requests: the addresses below a base URL, and the header that carries the key.

use std::fmt;

use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};

use crate::{error::BuildError, provider::Provider, request::Kind, secrets::Secrets};

/// The address of a provider.
#[derive(Clone)]
pub(crate) struct Endpoint {
    provider: Provider,
    /// The base URL. Its query is kept.
    base: Url,
}

/// The key. `Debug` does not print it.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

impl Endpoint {
    /// The addresses below a base URL such as `https://api.openai.com/v1`.
    pub(crate) fn new(provider: Provider, base: &str) -> Result<Self, BuildError> {
        let base = parse(base)?;
        Ok(Self { provider, base })
    }

    /// The addresses of one deployment of an Azure resource.
    pub(crate) fn azure(base: &str, deployment: &str, version: &str) -> Result<Self, BuildError> {
        let mut base = append(&parse(base)?, ["openai", "deployments", deployment]);
        base.query_pairs_mut().append_pair("api-version", version);
        let provider = Provider::OpenAi;
        Ok(Self { provider, base })
    }

    pub(crate) fn provider(&self) -> Provider {
        self.provider
    }

    pub(crate) fn add_to(&self, secrets: &mut Secrets) {
        secrets.add_url(&self.base);
    }

    pub(crate) fn needs_tls(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// The address that a request is sent to. Gemini's contains the model.
    pub(crate) fn url(&self, kind: Kind, model: &str) -> Url {
        match (self.provider, kind) {
            (Provider::OpenAi, Kind::Chat) => append(&self.base, ["chat", "completions"]),
            (Provider::OpenAi, Kind::Text) => append(&self.base, ["completions"]),
            (Provider::Responses, _) => append(&self.base, ["responses"]),
            (Provider::Anthropic, _) => append(&self.below("v1"), ["messages"]),
            (Provider::Gemini, _) => self.gemini(model),
            (Provider::Ollama, Kind::Chat) => append(&self.below("api"), ["chat"]),
            (Provider::Ollama, Kind::Text) => append(&self.below("api"), ["generate"]),
            (Provider::Cohere, _) => append(&self.below("v2"), ["chat"]),
        }
    }

    /// The base URL with this last segment, which it may have already: SDKs disagree on whether a base URL includes it.
    fn below(&self, segment: &str) -> Url {
        if segments(&self.base).last() == Some(segment) {
            return self.base.clone();
        }
        append(&self.base, [segment])
    }

    fn gemini(&self, model: &str) -> Url {
        // Vertex AI has its version in front of the project.
        let base = if segments(&self.base).any(is_version) {
            self.base.clone()
        } else {
            append(&self.base, ["v1beta"])
        };
        let collection = (!model.contains('/')).then_some("models");
        let method = format!("{model}:streamGenerateContent");
        let mut url = append(&base, collection.into_iter().chain(method.split('/')));
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }
}

fn parse(base: &str) -> Result<Url, BuildError> {
    let error = |why: String| BuildError::Url { why };
    match Url::parse(base.trim()) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Err(parse) if base.contains("://") => Err(error(parse.to_string())),
        // `localhost:8000` parses as a URL with the scheme `localhost`; `127.0.0.1:8000` does not parse.
        _ => Err(error("it does not begin with http:// or https://".into())),
    }
}

fn append<'p>(base: &Url, path: impl IntoIterator<Item = &'p str>) -> Url {
    let mut url = base.clone();
    // Every address that begins with http:// can have a path.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

/// The segments of the path that are not empty.
fn segments(url: &Url) -> impl DoubleEndedIterator<Item = &str> {
    let path = url.path().split('/');
    path.filter(|segment| !segment.is_empty())
}

/// Whether a segment is a version: `v1`, `v1beta`, `v1alpha`, `v1beta1`.
fn is_version(segment: &str) -> bool {
    let Some(version) = segment.strip_prefix('v') else {
        return false;
    };
    let is_digit = |c: char| c.is_ascii_digit();
    let stage = version
        .trim_start_matches(is_digit)
        .trim_end_matches(is_digit);
    version.starts_with(is_digit) && matches!(stage, "" | "alpha" | "beta")
}

impl ApiKey {
    /// Trims a key, because files and variables often end with a line end. Returns `None` if it is empty then.
    pub(crate) fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// The header that carries the key: a bearer token, or the bare key in the given header.
    pub(crate) fn header(
        &self,
        key_header: Option<&HeaderName>,
    ) -> Result<(HeaderName, HeaderValue), BuildError> {
        let text = match key_header {
            Some(_) => self.0.clone(),
            None => format!("Bearer {}", self.0),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| BuildError::Key)?;
        value.set_sensitive(true);
        Ok((key_header.cloned().unwrap_or(AUTHORIZATION), value))
    }

    pub(crate) fn add_to(&self, secrets: &mut Secrets) {
        secrets.add(&self.0);
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Prints the host only: the path and the query of an address may contain a key.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.base.host_str().unwrap_or_default())
    }
}
