//! Cross-origin requests of the listed origins.

use axum::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        VARY,
    },
};

const METHODS: &str = "GET, POST, DELETE";
const EXPOSED: &str = "x-stream-id, link, location, retry-after, x-request-id, idempotent-replayed";
const HEADERS: [&str; 5] = [
    "authorization",
    "content-type",
    "last-event-id",
    "prefer",
    "idempotency-key",
];
const HEADER_PREFIXES: [&str; 2] = ["x-stream-", "x-stainless-"];

/// The origins whose pages may read answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cors {
    origins: Vec<HeaderValue>,
}

impl Cors {
    pub(crate) fn new(origins: Vec<HeaderValue>) -> Self {
        Self { origins }
    }

    /// The listed origin that is equal to this one.
    pub(crate) fn listed(&self, origin: &str) -> Option<&HeaderValue> {
        self.origins
            .iter()
            .find(|listed| listed.as_bytes() == origin.as_bytes())
    }

    /// Adds what every answer has. The origin is our own copy, not the client's.
    pub(crate) fn add_headers(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        // A cache must not give one origin the answer for another, so this holds for origins that are not listed, too.
        headers.append(VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(
                ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static(EXPOSED),
            );
        }
    }
}

/// Adds what a preflight asks for.
pub(crate) fn add_preflight_headers(request: &HeaderMap, response: &mut HeaderMap) {
    response.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(METHODS),
    );
    response.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let requested = request
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        // A name that parses contains no separator, so the client cannot add anything else to the answer.
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .filter(|name| is_allowed(name.as_str()));
    let names: Vec<String> = requested.map(|name| name.as_str().to_owned()).collect();
    if let Ok(value) = HeaderValue::try_from(names.join(", "))
        && !names.is_empty()
    {
        response.insert(ACCESS_CONTROL_ALLOW_HEADERS, value);
    }
}

fn is_allowed(name: &str) -> bool {
    HEADERS.contains(&name)
        || HEADER_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preflight_allows_the_requested_headers_that_are_listed() {
        let mut request = HeaderMap::new();
        request.insert(
            ACCESS_CONTROL_REQUEST_HEADERS,
            HeaderValue::from_static(
                "Last-Event-ID, x-stainless-os,cookie, x-stream-fan-out, a b, x-other",
            ),
        );
        let mut response = HeaderMap::new();
        add_preflight_headers(&request, &mut response);
        assert_eq!(
            response[ACCESS_CONTROL_ALLOW_HEADERS],
            "last-event-id, x-stainless-os, x-stream-fan-out"
        );
        assert_eq!(response[ACCESS_CONTROL_MAX_AGE], "600");
    }

    #[test]
    fn an_origin_is_compared_whole() {
        let cors = Cors::new(vec![HeaderValue::from_static("https://app.example")]);
        assert!(cors.listed("https://app.example").is_some());
        for origin in ["https://app.example.evil", "https://app", "null", ""] {
            assert!(cors.listed(origin).is_none(), "{origin}");
        }
    }
}
