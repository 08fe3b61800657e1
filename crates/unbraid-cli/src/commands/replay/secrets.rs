//! What a recording must not contain: the keys of the client, and every header that is not known to be harmless.

use std::env;

use hyper::{
    HeaderMap,
    header::{HeaderName, ORIGIN},
};
use serde_json::{Map, Value};

use super::{endpoint::Api, request::ClientRequest};

/// The headers that are recorded. A list of what is harmless, because nobody knows all names of headers with keys.
const RECORDED_HEADERS: [&str; 12] = [
    "accept",
    "cache-control",
    "content-type",
    "date",
    "openai-beta",
    "openai-processing-ms",
    "openai-version",
    "request-id",
    "retry-after",
    "server",
    "user-agent",
    "x-request-id",
];

/// Parts of the names of headers and query parameters with keys.
const SECRET_NAMES: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// The shortest text that counts as a key, in bytes. Keys have 20 and more; servers without keys get words like `none`.
const MIN_SECRET_BYTES: usize = 8;

/// The headers to be recorded.
pub(super) fn recorded_headers(headers: &HeaderMap) -> Map<String, Value> {
    let harmless = headers.iter().filter(|(name, _)| is_recorded(name));
    let text = harmless.filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
    text.map(|(name, value)| (name.as_str().to_owned(), value.into()))
        .collect()
}

/// Whether a header is recorded.
pub(super) fn is_recorded(name: &HeaderName) -> bool {
    let name = name.as_str();
    RECORDED_HEADERS.contains(&name) || name.starts_with("x-ratelimit-")
}

/// Whether the key of the environment is added to a request with these headers and this query: the interface is one of OpenAI,
/// whose key it is, and the request has no key of its own. Requests of web pages get none, because any page in a browser can
/// send requests to the loopback interface.
pub(super) fn needs_key(api: Api, headers: &HeaderMap, query: Option<&str>) -> bool {
    let is_openai = matches!(api, Api::OpenAi | Api::Responses);
    let has_key = headers.keys().any(|name| is_secret(name.as_str()))
        || parameters(query).any(|(name, _)| is_secret(&name.to_ascii_lowercase()));
    is_openai && !has_key && !headers.contains_key(ORIGIN)
}

pub(super) fn key_from_env() -> Option<String> {
    env::var("OPENAI_API_KEY")
        .ok()
        .filter(|key| !key.is_empty())
}

/// Whether a header or a parameter with this name, in lower case, contains a key.
fn is_secret(name: &str) -> bool {
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// The names and values of a query.
fn parameters(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.unwrap_or_default().split('&');
    pairs.filter_map(|pair| pair.split_once('='))
}

/// The keys that a request contains.
#[derive(Default)]
pub(super) struct Keys(Vec<String>);

impl Keys {
    /// Collects the keys of a request: those in its headers, in its query, and in the environment.
    pub(super) fn of_request(request: &ClientRequest) -> Self {
        let mut keys = Self::default();
        for (name, value) in &request.headers {
            if let Ok(value) = value.to_str()
                && is_secret(name.as_str())
            {
                keys.add(value);
                // `Bearer KEY`, and `name=KEY; name=KEY`.
                value
                    .split([' ', ';', ',', '='])
                    .for_each(|part| keys.add(part));
            }
        }
        for (name, value) in parameters(request.query.as_deref()) {
            if name != "api-version" {
                keys.add(value);
            }
        }
        if let Some(key) = key_from_env() {
            keys.add(&key);
        }
        keys
    }

    fn add(&mut self, key: &str) {
        let key = key.trim().trim_matches('"');
        if key.len() >= MIN_SECRET_BYTES {
            self.0.push(key.to_owned());
        }
    }

    /// Whether these bytes contain one of the keys.
    pub(super) fn are_in(&self, bytes: &[u8]) -> bool {
        let is_in = |key: &String| bytes.windows(key.len()).any(|part| part == key.as_bytes());
        self.0.iter().any(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::super::endpoint::{Api, Endpoint};
    use bytes::Bytes;
    use hyper::HeaderMap;
    use serde_json::json;

    use super::{ClientRequest, Keys, needs_key, recorded_headers};

    fn request(headers: &[(&'static str, &'static str)], query: Option<&str>) -> ClientRequest {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        ClientRequest {
            path: "/v1/chat/completions".into(),
            endpoint: Endpoint::of_path("/v1/chat/completions").unwrap(),
            query: query.map(str::to_owned),
            headers: map,
            bytes: Bytes::new(),
            body: json!({}),
        }
    }

    #[test]
    fn only_harmless_headers_are_recorded() {
        let request = request(
            &[
                ("authorization", "Bearer sk-12345678"),
                ("x-api-key", "sk-12345678"),
                ("cookie", "session=12345678"),
                ("x-custom", "sk-12345678"),
                ("content-type", "application/json"),
                ("x-ratelimit-remaining-tokens", "7"),
            ],
            None,
        );
        let expected =
            json!({ "content-type": "application/json", "x-ratelimit-remaining-tokens": "7" });
        assert_eq!(json!(recorded_headers(&request.headers)), expected);
    }

    #[test]
    fn a_request_gets_a_key_only_if_it_has_none_and_comes_from_no_page() {
        let check = |headers: &[_], expected| {
            let headers = request(headers, None).headers;
            assert_eq!(needs_key(Api::OpenAi, &headers, None), expected);
        };
        check(&[("content-type", "application/json")], true);
        check(&[("authorization", "Bearer none")], false);
        check(&[("x-api-key", "a key of another provider")], false);
        check(&[("origin", "https://example.com")], false);
    }

    #[test]
    fn keys_are_found_wherever_they_were_sent() {
        let check = |headers: &[_], query, text: &str| {
            let keys = Keys::of_request(&request(headers, query));
            assert!(keys.are_in(format!("it is {text}.").as_bytes()), "{text}");
            assert!(!keys.are_in(b"it is nothing"), "{text}");
            assert!(!keys.are_in(b""));
        };
        check(
            &[("authorization", "Bearer sk-12345678")],
            None,
            "sk-12345678",
        );
        check(&[("api-key", "0123456789abcdef")], None, "0123456789abcdef");
        check(&[("cookie", "a=1; s=87654321")], None, "87654321");
        check(
            &[],
            Some("api-version=2024-10-21&key=AIza-12345"),
            "AIza-12345",
        );
        let placeholder = Keys::of_request(&request(&[("authorization", "Bearer none")], None));
        assert!(!placeholder.are_in(b"none"));
    }
}
