//! The texts that no error may repeat: keys, header values, credentials in addresses. Servers repeat them in their messages.

mod decoded_text;
mod path;

use std::{collections::BTreeSet, fmt, ops::Range};

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Url;
use unbraid::Redact;

use self::{decoded_text::DecodedText, path::may_be_key};

/// The texts that are replaced in everything that a server reports.
#[derive(Clone, Default)]
pub(crate) struct Secrets(BTreeSet<Vec<u8>>);

/// The shortest text that is replaced, in bytes. Keys of providers have 32 and more. Shorter values are usually placeholders for
/// servers without keys, such as `none`, and replacing them would garble the message.
const MIN_SECRET_BYTES: usize = 8;

/// How deep escapes may be nested: a gateway quotes the JSON of a server that quotes the JSON of another one.
const MAX_NESTING: usize = 3;

const REPLACEMENT: &str = "[key]";

impl Secrets {
    /// Adds a key. White space around it is removed, because files often end with a line end.
    pub(crate) fn add(&mut self, secret: &str) {
        let secret = secret.trim().as_bytes();
        if secret.len() >= MIN_SECRET_BYTES {
            self.0.insert(secret.to_owned());
        }
    }

    /// Adds the value of a header, and the parts that a server may repeat alone: the token after a scheme, a cookie's value.
    pub(crate) fn add_header(&mut self, value: &str) {
        self.add(value);
        for part in value.split([';', ',']) {
            self.add(part);
            self.add(unquoted(part));
            if let Some((_, value)) = part.split_once('=') {
                self.add(unquoted(value));
            }
            for token in part.split_whitespace().skip(1) {
                self.add(token);
            }
        }
        if let Some(credentials) = basic_credentials(value) {
            self.add_credentials(&credentials);
        }
    }

    /// Adds the query values, the user and the password of an address that a caller has set, and what may be a key in its path.
    pub(crate) fn add_url(&mut self, url: &Url) {
        self.add_url_without_path(url);
        for segment in url.path().split('/') {
            let decoded = percent_decoded(segment);
            if may_be_key(&decoded) {
                self.add(segment);
                self.add(&decoded);
            }
        }
    }

    /// The same without the path. That of a request contains the name of a model, which must not be replaced.
    pub(crate) fn add_url_without_path(&mut self, url: &Url) {
        // Azure's version is public, and its errors mention it.
        let values = url.query_pairs().filter(|(name, _)| name != "api-version");
        values.for_each(|(_, value)| self.add(&value));
        // The pairs above are decoded as those of a form, where `+` is a space. A server may repeat the raw text.
        for pair in url.query().unwrap_or_default().split('&') {
            if let Some((name, value)) = pair.split_once('=')
                && name != "api-version"
            {
                self.add(value);
                self.add(&percent_decoded(value));
            }
        }
        let (user, password) = (url.username(), url.password().unwrap_or_default());
        if !user.is_empty() || !password.is_empty() {
            let (user, password) = (percent_decoded(user), percent_decoded(password));
            self.add_credentials(&format!("{user}:{password}"));
        }
    }

    /// Adds `user:password`, which is sent in base64.
    fn add_credentials(&mut self, credentials: &str) {
        self.add(credentials);
        self.add(&BASE64_STANDARD.encode(credentials));
        if let Some((user, password)) = credentials.split_once(':') {
            self.add(user);
            self.add(password);
        }
    }

    /// Returns the replacement for errors within a stream. Without a secret it is empty, so that no error is truncated for it.
    pub(crate) fn redaction(&self) -> Redact {
        if self.0.is_empty() {
            return Redact::default();
        }
        let secrets = self.clone();
        Redact::new(move |text| secrets.redact(text))
    }

    /// Replaces every secret in the text, however it is escaped there.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut found = Vec::new();
        if !self.0.is_empty() {
            self.find(&DecodedText::new(text), MAX_NESTING, &mut found);
        }
        if found.is_empty() {
            return text.to_owned();
        }
        found.sort_by_key(|range| range.start);
        let mut redacted = String::new();
        let mut end = 0;
        for range in found {
            // Ranges overlap if two secrets do.
            if range.start >= end {
                redacted.push_str(text.get(end..range.start).unwrap_or_default());
                redacted.push_str(REPLACEMENT);
            }
            end = end.max(range.end);
        }
        redacted.push_str(text.get(end..).unwrap_or_default());
        redacted
    }

    /// Finds the secrets in a text, and in the texts that result from decoding its escapes. The ranges are those in the
    /// original text.
    fn find(&self, text: &DecodedText, nesting: usize, found: &mut Vec<Range<usize>>) {
        for secret in &self.0 {
            text.find(secret, found);
            text.find_truncated(secret, MIN_SECRET_BYTES, found);
        }
        if nesting > 0 {
            for decoded in text.decoded() {
                self.find(&decoded, nesting - 1, found);
            }
        }
    }
}

fn percent_decoded(text: &str) -> String {
    let decoded = DecodedText::new(text).percent_decoded();
    decoded.map_or_else(|| text.to_owned(), |decoded| decoded.text())
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// The decoded credentials of a header of the scheme `Basic`.
fn basic_credentials(value: &str) -> Option<String> {
    let (scheme, credentials) = value.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let bytes = BASE64_STANDARD.decode(credentials.trim()).ok()?;
    String::from_utf8(bytes).ok()
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests;
