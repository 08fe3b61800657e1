//! The host and port of a URL, for messages that must not repeat the rest of it.

use reqwest::Url;

/// Returns `host:port`, without the user, the path and the query, any of which may hold a key.
pub(crate) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
