//! Where requests go: the two addresses below a base URL, and the header that carries the key.

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

/// The key, and the header it goes into. It is shown nowhere.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

impl Endpoint {
    /// The addresses below a base URL such as `https://api.openai.com/v1`; its query is kept.
    pub(crate) fn new(base: &str) -> Result<Self, BuildError> {
        let base = parse(base)?;
        Ok(Self {
            chat: below(&base, &["chat", "completions"])?,
            text: below(&base, &["completions"])?,
        })
    }

    /// The addresses of one deployment of a resource at Azure.
    pub(crate) fn azure(base: &str, deployment: &str, version: &str) -> Result<Self, BuildError> {
        let mut base = below(&parse(base)?, &["openai", "deployments", deployment])?;
        base.query_pairs_mut().append_pair("api-version", version);
        Self::new(base.as_str())
    }

    pub(crate) fn add_to(&self, secrets: &mut Secrets) {
        secrets.add_url(&self.chat);
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
        // `localhost:8000` is a URL of the scheme `localhost`.
        _ => Err(BuildError::Url {
            why: "it does not begin with http:// or https://".to_owned(),
        }),
    }
}

fn below(base: &Url, path: &[&str]) -> Result<Url, BuildError> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| BuildError::Url {
            why: "nothing can stand below it".to_owned(),
        })?
        .pop_if_empty()
        .extend(path);
    Ok(url)
}

impl ApiKey {
    /// A key as it stands in a file or a variable, perhaps with a line end; `None` if it is empty.
    pub(crate) fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// As a bearer token, or bare where the header is one of its own.
    pub(crate) fn header(
        &self,
        own: Option<&HeaderName>,
    ) -> Result<(HeaderName, HeaderValue), BuildError> {
        let text = match own {
            Some(_) => self.0.clone(),
            None => format!("Bearer {}", self.0),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| BuildError::Key)?;
        value.set_sensitive(true);
        Ok((own.cloned().unwrap_or(AUTHORIZATION), value))
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

/// The query of an address may hold a key, too.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.chat.host_str().unwrap_or_default())
    }
}
