//! Who may do what: keys, signed links, the `Host` and `Origin` of a gateway without keys, and CORS.

pub(crate) mod cors;
pub(crate) mod hosts;
pub(crate) mod keys;
pub(crate) mod links;

use axum::http::{HeaderMap, Uri, header::AUTHORIZATION};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use self::{
    cors::Cors,
    hosts::{AllowedHosts, is_own_origin, origins},
    keys::{KeyRing, Principal},
    links::LinkSigner,
};
use crate::api_error::ApiError;

/// Everything that decides about access.
#[derive(Debug)]
pub(crate) struct Auth {
    pub(crate) keys: Option<KeyRing>,
    pub(crate) hosts: AllowedHosts,
    pub(crate) cors: Cors,
    pub(crate) links: LinkSigner,
}

impl Auth {
    /// Checks `Host` and `Origin` of a request to a gateway without keys, before anything of it is read.
    ///
    /// With keys there is nothing that another site's page could use: the browser holds no credentials of the gateway.
    pub(crate) fn check_site(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        if self.keys.is_some() {
            return Ok(());
        }
        if !self.hosts.allow(uri, headers) {
            return Err(ApiError::HOST_NOT_ALLOWED);
        }
        let allowed =
            |origin| is_own_origin(origin, uri, headers) || self.cors.listed(origin).is_some();
        if !origins(headers).all(allowed) {
            return Err(ApiError::ORIGIN_NOT_ALLOWED);
        }
        Ok(())
    }

    /// Returns the principal of a request, by its bearer key. Without an auth file everything belongs to one principal.
    pub(crate) fn principal(&self, headers: &HeaderMap) -> Result<Principal, ApiError> {
        let Some(keys) = &self.keys else {
            return Ok(Principal::new(""));
        };
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(ApiError::INVALID_API_KEY);
        };
        bearer(value.as_bytes())
            .and_then(|key| keys.find(key))
            .ok_or(ApiError::INVALID_API_KEY)
    }
}

/// The token of `Bearer <token>`. The scheme's name is not case-sensitive.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

pub(crate) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Compares two texts in a time that depends only on their lengths.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    use subtle::ConstantTimeEq;

    a.ct_eq(b).into()
}
