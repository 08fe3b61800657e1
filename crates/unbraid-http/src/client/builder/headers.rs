//! The headers of every request.

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::ClientBuilder;
use crate::{body::ACCEPTED_ENCODINGS, error::BuildError};

impl ClientBuilder {
    pub(super) fn all_headers(&self) -> Result<HeaderMap, BuildError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(self.provider.accept()));
        headers.insert(
            ACCEPT_ENCODING,
            HeaderValue::from_static(ACCEPTED_ENCODINGS),
        );
        if let Some((name, value)) = self.provider.version_header() {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        if let Some(key) = &self.key {
            let key_header = self.key_header.as_deref().map(header_name).transpose()?;
            let (name, value) = key.header(key_header.as_ref())?;
            headers.insert(name, value);
        }
        for (name, value) in &self.headers {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| BuildError::Header { name: name.clone() })?;
            value.set_sensitive(true);
            headers.insert(header_name(name)?, value);
        }
        Ok(headers)
    }
}

fn header_name(name: &str) -> Result<HeaderName, BuildError> {
    HeaderName::try_from(name).map_err(|_| BuildError::Header {
        name: name.to_owned(),
    })
}
