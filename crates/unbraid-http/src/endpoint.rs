//! The destination of requests: the two addresses below a base URL, and the header that carries the key.

use std::fmt;

use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};

use crate::{error::BuildError, request::Kind, secrets::Secrets};

/// The address of each interface.
#[derive(Clone)]
pub(crate) struct Endpoint {
    chat: Url,
    text: Url,
}

/// The key. `Debug` does not print it.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

impl Endpoint {
    /// The addresses below a base URL such as `https://api.openai.com/v1`. Its query is kept.
    pub(crate) fn new(base: &str) -> Result<Self, BuildError> {
        let base = parse(base)?;
        Ok(Self {
            chat: append(&base, &["chat", "completions"])?,
            text: append(&base, &["completions"])?,
        })
    }

    /// The addresses of one deployment of an Azure resource.
    pub(crate) fn azure(base: &str, deployment: &str, version: &str) -> Result<Self, BuildError> {
        let mut base = append(&parse(base)?, &["openai", "deployments", deployment])?;
        base.query_pairs_mut().append_pair("api-version", version);
        Self::new(base.as_str())
    }

    pub(crate) fn add_to(&self, secrets: &mut Secrets) {
        secrets.add_url(&self.chat);
    }

    pub(crate) fn needs_tls(&self) -> bool {
        self.chat.scheme() == "https"
    }

    pub(crate) fn url(&self, kind: Kind) -> Url {
        match kind {
            Kind::Chat => self.chat.clone(),
            Kind::Text => self.text.clone(),
        }
    }
}

fn parse(base: &str) -> Result<Url, BuildError> {
    let url = Url::parse(base.trim()).map_err(|error| BuildError::Url {
        why: error.to_string(),
    })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        // `localhost:8000` parses as a URL with the scheme `localhost`.
        _ => Err(BuildError::Url {
            why: "it does not begin with http:// or https://".to_owned(),
        }),
    }
}

fn append(base: &Url, path: &[&str]) -> Result<Url, BuildError> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| BuildError::Url {
            why: "it cannot have a path".to_owned(),
        })?
        .pop_if_empty()
        .extend(path);
    Ok(url)
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
        write!(f, "Endpoint({})", self.chat.host_str().unwrap_or_default())
    }
}
