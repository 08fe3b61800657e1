//! Which headers pass the gateway, in each direction.

use std::collections::HashSet;

use axum::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST,
        PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
        UPGRADE,
    },
};

/// Standard headers that the gateway obeys where it keeps a stream.
const OBEYED: [&str; 3] = ["prefer", "idempotency-key", "last-event-id"];

/// Headers that concern one connection only (RFC 9110, 7.6.1).
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [
        CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ]
    .contains(name)
        || matches!(
            name.as_str(),
            "keep-alive" | "proxy-connection" | "http2-settings"
        )
}

/// The names in `Connection` are hop-by-hop, too.
fn listed_in_connection(headers: &HeaderMap) -> HashSet<HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect()
}

fn copy(headers: &HeaderMap, is_dropped: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let listed = listed_in_connection(headers);
    let mut copied = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !is_hop_by_hop(name) && !listed.contains(name) && !is_dropped(name) {
            copied.append(name.clone(), detached(value));
        }
    }
    copied
}

/// The value in memory of its own. The values of a head are parts of the buffer that it was read into, and a single one of
/// them would keep all of that for as long as a generation runs.
pub(super) fn detached(value: &HeaderValue) -> HeaderValue {
    let copied = HeaderValue::from_bytes(value.as_bytes());
    copied.map_or_else(
        |_| value.clone(),
        |mut copied| {
            copied.set_sensitive(value.is_sensitive());
            copied
        },
    )
}

/// The headers of a client's request that the upstream gets. What the gateway obeys itself, the upstream must not obey, too.
pub(crate) fn for_upstream(headers: &HeaderMap) -> HeaderMap {
    let mut passed = passed_through(headers);
    for name in OBEYED {
        passed.remove(name);
    }
    passed
}

/// The headers of a request that is passed through.
pub(crate) fn passed_through(headers: &HeaderMap) -> HeaderMap {
    copy(headers, |name| {
        // `Expect` asks the gateway for its consent, which it has given by reading the body.
        [
            HOST,
            AUTHORIZATION,
            COOKIE,
            CONTENT_LENGTH,
            ACCEPT_ENCODING,
            EXPECT,
        ]
        .contains(name)
            || name.as_str().starts_with("x-stream-")
    })
}

/// The headers of an upstream's response that the client gets.
///
/// Cookies, links and what concerns origins belong to the upstream's site, not to the gateway's, and so does what another gateway
/// says of its own streams.
pub(crate) fn for_client(headers: &HeaderMap) -> HeaderMap {
    copy(headers, |name| {
        [CONTENT_LENGTH, SET_COOKIE].contains(name)
            || name.as_str().starts_with("access-control-")
            || name.as_str().starts_with("x-stream-")
            || matches!(
                name.as_str(),
                "alt-svc"
                    | "strict-transport-security"
                    | "idempotent-replayed"
                    | "link"
                    | "preference-applied"
            )
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_header_that_is_sent_on_does_not_keep_the_buffer_it_was_read_into() {
        let buffer = Bytes::from(vec![b'v'; 8192]);
        let mut value = HeaderValue::from_maybe_shared(buffer.slice(..10)).unwrap();
        value.set_sensitive(true);
        let mut client = HeaderMap::new();
        client.insert("x-stainless-os", value);
        let copied = for_upstream(&client);
        assert_eq!(copied, client);
        assert!(copied["x-stainless-os"].is_sensitive());
        drop(client);
        assert!(buffer.is_unique());
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn all_headers_are_forwarded_except_those_of_the_connection_and_of_the_gateway() {
        let client = headers(&[
            ("host", "localhost"),
            ("authorization", "Bearer k"),
            ("cookie", "a=b"),
            ("content-length", "3"),
            ("accept-encoding", "br"),
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("x-stream-fan-out", "always"),
            ("prefer", "respond-async"),
            ("idempotency-key", "k"),
            ("last-event-id", "1"),
            ("accept", "application/json"),
            ("content-type", "application/json"),
            ("openai-organization", "o"),
            ("x-stainless-os", "Linux"),
        ]);
        let forwarded = for_upstream(&client);
        let mut names: Vec<_> = forwarded.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "accept",
                "content-type",
                "openai-organization",
                "x-stainless-os"
            ]
        );
    }

    #[test]
    fn a_response_keeps_the_headers_of_the_provider_and_loses_those_of_its_site() {
        let upstream = headers(&[
            ("content-length", "3"),
            ("set-cookie", "a=b"),
            ("access-control-allow-origin", "*"),
            ("x-stream-id", "forged"),
            ("link", "</v1/streams/forged>; rel=\"monitor\""),
            ("preference-applied", "respond-async"),
            ("keep-alive", "timeout=5"),
            ("x-request-id", "r"),
            ("retry-after", "3"),
            ("x-ratelimit-remaining-requests", "1"),
            ("openai-processing-ms", "2"),
        ]);
        let kept = for_client(&upstream);
        let mut names: Vec<_> = kept.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "openai-processing-ms",
                "retry-after",
                "x-ratelimit-remaining-requests",
                "x-request-id"
            ]
        );
    }
}
