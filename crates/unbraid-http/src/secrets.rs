//! What no error may repeat: keys, header values, credentials of addresses. Servers repeat them in their messages.

mod layer;

use std::{collections::BTreeSet, fmt, ops::Range};

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Url;
use unbraid::Redact;

use self::layer::Layer;

/// Texts that are replaced in everything a server says.
#[derive(Clone, Default)]
pub(crate) struct Secrets(BTreeSet<Vec<u8>>);

/// Bytes of a text that is worth hiding; keys of providers have 32 and more. Shorter ones are mostly words that servers without
/// keys are given, such as `none`, and to replace these would garble the message.
const SHORTEST_SECRET: usize = 8;

/// How often a text may be escaped: a gateway quotes the JSON of a server that quotes the JSON of another one.
const MAX_ESCAPES: usize = 3;

const REPLACEMENT: &str = "[key]";

impl Secrets {
    /// A key as it is written in a file or a variable.
    pub(crate) fn add(&mut self, secret: &str) {
        let secret = secret.trim().as_bytes();
        if secret.len() >= SHORTEST_SECRET {
            self.0.insert(secret.to_owned());
        }
    }

    /// The value of a header, and what of it a server may repeat alone: the token behind a scheme, a cookie's value.
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
        if let Some(credentials) = basic(value) {
            self.add_credentials(&credentials);
        }
    }

    /// What an address holds: the values of its query, a user and a password.
    pub(crate) fn add_url(&mut self, url: &Url) {
        // Azure's version is public, and what its errors are about.
        let values = url.query_pairs().filter(|(name, _)| name != "api-version");
        values.for_each(|(_, value)| self.add(&value));
        let decoded = |text: &str| {
            let decoded = Layer::new(text).percent_decoded();
            decoded.map_or_else(|| text.to_owned(), |layer| layer.text())
        };
        // The pairs above are those of a form, where `+` is a space. A server may repeat it as it stands.
        for pair in url.query().unwrap_or_default().split('&') {
            if let Some((name, value)) = pair.split_once('=')
                && name != "api-version"
            {
                self.add(value);
                self.add(&decoded(value));
            }
        }
        let (user, password) = (url.username(), url.password().unwrap_or_default());
        if !user.is_empty() || !password.is_empty() {
            self.add_credentials(&format!("{}:{}", decoded(user), decoded(password)));
        }
    }

    /// `user:password`, which is sent in base64.
    fn add_credentials(&mut self, credentials: &str) {
        self.add(credentials);
        self.add(&BASE64_STANDARD.encode(credentials));
        if let Some((user, password)) = credentials.split_once(':') {
            self.add(user);
            self.add(password);
        }
    }

    /// The same for the errors within a stream. Without a secret it is none, so that nothing is cut for it.
    pub(crate) fn redaction(&self) -> Redact {
        if self.0.is_empty() {
            return Redact::default();
        }
        let secrets = self.clone();
        Redact::new(move |text| secrets.redact(text))
    }

    /// The text without any of them, however they are escaped in it.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut found = Vec::new();
        if !self.0.is_empty() {
            self.find(&Layer::new(text), MAX_ESCAPES, &mut found);
        }
        if found.is_empty() {
            return text.to_owned();
        }
        found.sort_by_key(|range| range.start);
        let mut redacted = String::new();
        let mut from = 0;
        for range in found {
            if range.start >= from {
                redacted.push_str(text.get(from..range.start).unwrap_or_default());
                redacted.push_str(REPLACEMENT);
            }
            from = from.max(range.end);
        }
        redacted.push_str(text.get(from..).unwrap_or_default());
        redacted
    }

    /// Finds them in a text, and in what it reads once its escapes are resolved. The ranges are those of the first text.
    fn find(&self, layer: &Layer, escapes: usize, found: &mut Vec<Range<usize>>) {
        for secret in &self.0 {
            layer.find(secret, found);
            layer.find_cut_at_end(secret, SHORTEST_SECRET, found);
        }
        if escapes > 0 {
            for decoded in layer.decoded() {
                self.find(&decoded, escapes - 1, found);
            }
        }
    }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// The credentials of a header of the scheme `Basic`.
fn basic(value: &str) -> Option<String> {
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
