//! The gateway's own request headers.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use unbraid_log::Seq;

use crate::{
    api_error::ApiError, config::FanOut, header_list, limits::MAX_IDEMPOTENCY_KEY,
    routes::read::LAST_EVENT_ID, view::ViewRequest,
};

/// How a request is to be answered, as far as its headers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestOptions {
    pub(super) durability: Option<Durability>,
    pub(super) responds_async: bool,
    pub(super) idempotency_key: Option<String>,
    pub(super) fan_out: Option<FanOut>,
    pub(super) orphan_after: Option<Duration>,
    pub(super) after: Option<Seq>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Nothing is kept.
    Live,
    Replay,
}

impl RequestOptions {
    pub(super) fn parse(headers: &HeaderMap) -> Result<Self, ApiError> {
        let durability = match text(headers, "x-stream-durability")? {
            None => None,
            Some("live") => Some(Durability::Live),
            Some("replay") => Some(Durability::Replay),
            Some(_) => return Err(ApiError::INVALID_HEADER),
        };
        let fan_out = text(headers, "x-stream-fan-out")?
            .map(str::parse)
            .transpose();
        let orphan_after = match text(headers, "x-stream-orphan-after")? {
            None => None,
            Some(seconds) => Some(parse_seconds(seconds).ok_or(ApiError::INVALID_HEADER)?),
        };
        let after = headers.get(LAST_EVENT_ID).map(|value| value.as_bytes());
        Ok(Self {
            durability,
            responds_async: prefers_async(headers),
            idempotency_key: idempotency_key(headers)?,
            fan_out: fan_out.map_err(|_| ApiError::INVALID_HEADER)?,
            orphan_after,
            after: after.map(ViewRequest::parse_cursor).transpose()?,
        })
    }

    pub(super) fn is_live(&self) -> bool {
        self.durability == Some(Durability::Live)
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ApiError> {
    let value = single(headers, name).map_err(|_| ApiError::INVALID_HEADER)?;
    value
        .map(HeaderValue::to_str)
        .transpose()
        .map(|value| value.map(str::trim))
        .map_err(|_| ApiError::INVALID_HEADER)
}

/// The value of a header that may be repeated, as long as it says the same.
fn single<'h>(
    headers: &'h HeaderMap,
    name: &str,
) -> Result<Option<&'h HeaderValue>, Contradicting> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.any(|value| Some(value) != first) {
        return Err(Contradicting);
    }
    Ok(first)
}

/// A header with several different values. To follow one of them would be a guess.
struct Contradicting;

/// `Prefer: respond-async`, among other preferences (RFC 7240).
fn prefers_async(headers: &HeaderMap) -> bool {
    headers
        .get_all("prefer")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| header_list::split(value, ','))
        .filter_map(|preference| header_list::split(preference, ';').next())
        .any(|preference| preference.trim().eq_ignore_ascii_case("respond-async"))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let value = single(headers, "idempotency-key").map_err(|_| ApiError::BAD_IDEMPOTENCY_KEY)?;
    let Some(value) = value else {
        return Ok(None);
    };
    let is_visible = value.as_bytes().iter().all(u8::is_ascii_graphic);
    match value.to_str() {
        Ok(key) if is_visible && (1..=MAX_IDEMPOTENCY_KEY).contains(&key.len()) => {
            Ok(Some(key.to_owned()))
        }
        Ok(_) | Err(_) => Err(ApiError::BAD_IDEMPOTENCY_KEY),
    }
}

fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn parse(lines: &[(&'static str, &'static str)]) -> Result<RequestOptions, ApiError> {
        let headers = lines.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        RequestOptions::parse(&headers.collect())
    }

    #[test]
    fn the_headers_select_how_a_request_is_answered() {
        let options = parse(&[
            ("prefer", "wait=5, Respond-Async; x=y"),
            ("idempotency-key", "order-1"),
            ("x-stream-fan-out", "always"),
            ("x-stream-orphan-after", "1.5"),
            ("x-stream-durability", "replay"),
        ])
        .unwrap();
        assert!(options.responds_async && !options.is_live());
        assert_eq!(options.idempotency_key.as_deref(), Some("order-1"));
        assert_eq!(options.fan_out, Some(FanOut::Always));
        assert_eq!(options.orphan_after, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn preferences_are_not_read_inside_quotes() {
        let prefers = |value| parse(&[("prefer", value)]).unwrap().responds_async;
        assert!(!prefers(r#"x="a, respond-async", y"#));
        assert!(!prefers(r#"x="respond-async""#));
        assert!(prefers(r#"x="a,b;c", respond-async"#));
        assert!(prefers(r#"respond-async; x="a,b""#));
    }

    #[test]
    fn values_that_do_not_exist_are_refused() {
        for (name, value) in [
            ("x-stream-durability", "maybe"),
            ("x-stream-fan-out", "sometimes"),
            ("x-stream-orphan-after", "never"),
            ("x-stream-orphan-after", "-1"),
        ] {
            assert_eq!(
                parse(&[(name, value)]).unwrap_err(),
                ApiError::INVALID_HEADER
            );
        }
        for key in ["", "two words", "tab\there"] {
            let error = parse(&[("idempotency-key", key)]).unwrap_err();
            assert_eq!(error, ApiError::BAD_IDEMPOTENCY_KEY, "{key:?}");
        }
    }
    #[test]
    fn headers_that_contradict_each_other_are_refused() {
        let check = |name, values: [&'static str; 2], expected| {
            let parsed = parse(&values.map(|value| (name, value)));
            assert_eq!(parsed.err(), expected, "{name} {values:?}");
        };
        let refused = Some(ApiError::BAD_IDEMPOTENCY_KEY);
        check("idempotency-key", ["one", "two"], refused);
        check("idempotency-key", ["one", ""], refused);
        check("idempotency-key", ["one", "one"], None);
        let refused = Some(ApiError::INVALID_HEADER);
        check("x-stream-durability", ["replay", "live"], refused);
        check("x-stream-fan-out", ["always", "native"], refused);
        check("x-stream-orphan-after", ["1", "2"], refused);
        check("x-stream-orphan-after", ["1", "1"], None);
        check("prefer", ["wait=5", "respond-async"], None);
    }
}
