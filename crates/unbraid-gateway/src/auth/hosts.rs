//! Which `Host` and `Origin` a gateway without an auth file accepts: a page of another site must not reach it through the
//! browser of the person in front of it.

use std::net::IpAddr;

use axum::http::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
    uri::Authority,
};

/// The names under which a gateway may be addressed.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedHosts {
    pub(crate) names: Vec<String>,
    /// Whether any IP address is accepted: the gateway listens on other addresses than loopback, without authentication,
    /// because its operator said so. DNS rebinding needs a name.
    pub(crate) any_address: bool,
}

impl AllowedHosts {
    /// Whether every `Host` of the request, and the authority of its target, is allowed. There must be one.
    pub(crate) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let hosts = headers.get_all(HOST).iter().map(|host| host.to_str().ok());
        let mut all = hosts
            .chain(uri.authority().map(|authority| Some(authority.as_str())))
            .peekable();
        all.peek().is_some() && all.all(|host| host.is_some_and(|host| self.allows_host(host)))
    }

    fn allows_host(&self, host: &str) -> bool {
        let Some(name) = host_without_port(host) else {
            return false;
        };
        let name = name.to_ascii_lowercase();
        matches!(name.as_str(), "localhost" | "127.0.0.1" | "[::1]")
            || self.names.contains(&name)
            || (self.any_address && is_address(&name))
    }
}

/// The host of `host[:port]`; `None` if the port is not a number, or something else follows. The port may be empty (RFC 3986,
/// 3.2.3).
fn host_without_port(host: &str) -> Option<&str> {
    let authority: Authority = host.parse().ok()?;
    if host.contains('@') {
        return None;
    }
    let name = host.get(..authority.host().len())?;
    let rest = host.strip_prefix(name)?;
    let port_is_valid = rest.is_empty()
        || rest
            .strip_prefix(':')
            .is_some_and(|port| port.is_empty() || port.parse::<u16>().is_ok());
    port_is_valid.then_some(name)
}

fn is_address(name: &str) -> bool {
    let name = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name.parse::<IpAddr>().is_ok()
}

/// Whether the `Origin` of a request is that of the gateway's own pages, at the host that the request names.
pub(crate) fn is_own_origin(origin: &str, uri: &Uri, headers: &HeaderMap) -> bool {
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| uri.authority().map(Authority::as_str));
    // An origin never contains the default port of its scheme, or an empty one, but a `Host` that a proxy has written may.
    let parts = [("http://", ":80"), ("https://", ":443")];
    let parts = parts.into_iter().find_map(|(scheme, port)| {
        let authority = origin.strip_prefix(scheme)?;
        Some((authority, port))
    });
    let (Some((authority, port)), Some(host)) = (parts, host) else {
        return false;
    };
    let without_port = host.strip_suffix(port).or_else(|| host.strip_suffix(':'));
    let without_port = without_port.unwrap_or(host);
    authority.eq_ignore_ascii_case(host) || authority.eq_ignore_ascii_case(without_port)
}

/// The `Origin` headers of a request. One that is not text is an origin that nothing allows.
pub(crate) fn origins(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(ORIGIN)
        .iter()
        .map(|origin| origin.to_str().unwrap_or("null"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, expected: bool) {
        let allowed = AllowedHosts {
            names: vec!["gateway.lan".into()],
            any_address: false,
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        assert_eq!(
            allowed.allow(&Uri::from_static("/"), &headers),
            expected,
            "{host}"
        );
    }

    #[test]
    fn only_loopback_names_and_listed_hosts_are_allowed() {
        for host in [
            "localhost",
            "localhost:8080",
            "LOCALHOST:1",
            "localhost:",
            "[::1]:",
            "127.0.0.1:65535",
            "[::1]",
            "[::1]:80",
            "gateway.lan:9",
        ] {
            check(host, true);
        }
        for host in [
            "",
            "localhost.evil.com",
            "localhost.",
            "evil.com",
            "localhost:80@evil.com",
            "user@localhost",
            "localhost:http",
            "localhost::",
            "localhost:80:",
            ":",
            "localhost:99999",
            "127.0.0.1.nip.io",
            "0.0.0.0",
            "::1",
            "[::2]",
            "127.1",
            "gateway.lan.evil",
        ] {
            check(host, false);
        }
    }

    #[test]
    fn every_named_host_must_be_allowed_and_there_must_be_one() {
        let allowed = AllowedHosts::default();
        let mut headers = HeaderMap::new();
        assert!(!allowed.allow(&Uri::from_static("/"), &headers));
        assert!(allowed.allow(&Uri::from_static("http://localhost/"), &headers));
        headers.append(HOST, "localhost".parse().unwrap());
        assert!(!allowed.allow(&Uri::from_static("http://evil.com/"), &headers));
        headers.append(HOST, "evil.com".parse().unwrap());
        assert!(!allowed.allow(&Uri::from_static("/"), &headers));
    }

    #[test]
    fn an_address_is_allowed_only_where_the_operator_listens_everywhere() {
        let allowed = AllowedHosts {
            names: Vec::new(),
            any_address: true,
        };
        assert!(allowed.allows_host("10.0.0.7:8080") && allowed.allows_host("[fe80::1]:80"));
        assert!(!allowed.allows_host("evil.com"));
    }

    #[test]
    fn the_own_origin_is_the_requested_host() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:8080".parse().unwrap());
        let uri = Uri::from_static("/");
        assert!(is_own_origin("http://localhost:8080", &uri, &headers));
        for origin in [
            "http://localhost",
            "null",
            "http://localhost:8080.evil",
            "ftp://localhost:8080",
        ] {
            assert!(!is_own_origin(origin, &uri, &headers), "{origin}");
        }
        let own = |origin, host: &str| {
            let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
            is_own_origin(origin, &uri, &headers)
        };
        assert!(own("http://localhost", "localhost:80") && own("http://[::1]", "[::1]:80"));
        assert!(own("https://gateway.lan", "gateway.lan:443"));
        assert!(own("http://localhost", "localhost:") && own("http://[::1]", "[::1]:"));
        for (origin, host) in [
            ("http://localhost", "localhost:443"),
            ("https://localhost", "localhost:80"),
            ("http://localhost:80", "localhost"),
        ] {
            assert!(!own(origin, host), "{origin} {host}");
        }
    }
}
