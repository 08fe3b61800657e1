//! Who may do what with which stream.

use std::convert::Infallible;

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use unbraid_log::{Meta, StreamId};

use crate::{
    api_error::ApiError,
    auth::{
        keys::Principal,
        links::{LinkError, Scope},
    },
    gateway::Gateway,
    views::Found,
};

/// The id in a path, unchecked. A segment that is not UTF-8 is taken as it is written: it names no stream, like every
/// other invalid id, and that is answered only once the request is authenticated.
pub(super) struct IdPath(pub(super) String);

/// The id and the index in a path, unchecked.
pub(super) struct ChoicePath(pub(super) String, pub(super) String);

/// The segments after `/v1/streams/`, as they are written.
fn raw_segments(parts: &Parts) -> impl Iterator<Item = String> + '_ {
    let path = parts.uri.path();
    let path = path.strip_prefix("/v1/streams/").unwrap_or_default();
    path.split('/').map(str::to_owned)
}

impl<S: Send + Sync> FromRequestParts<S> for IdPath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        Ok(match path {
            Ok(Path(id)) => Self(id),
            Err(_) => Self(raw_segments(parts).next().unwrap_or_default()),
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ChoicePath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        Ok(match path {
            Ok(Path((id, index))) => Self(id, index),
            Err(_) => {
                let mut segments = raw_segments(parts);
                let id = segments.next().unwrap_or_default();
                Self(id, segments.nth(1).unwrap_or_default())
            }
        })
    }
}

/// What a request does with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Cancel,
    /// Something that no link permits.
    Own,
}

/// A checked permission.
#[derive(Debug, Clone)]
enum Access {
    Principal(Principal),
    /// A link to this stream, which permits it whatever its owner.
    Link,
}

impl Access {
    /// Whether the permission concerns this stream.
    fn covers(&self, meta: &Meta) -> bool {
        match self {
            Self::Principal(principal) => {
                meta.owner.as_deref().unwrap_or_default() == principal.name()
            }
            Self::Link => true,
        }
    }
}

/// The principal of a request: the one that the application has inserted, or that of the key.
pub(super) fn principal(gateway: &Gateway, parts: &Parts) -> Result<Principal, ApiError> {
    match parts.extensions.get::<Principal>() {
        Some(principal) => Ok(principal.clone()),
        None => gateway.inner.auth.principal(&parts.headers),
    }
}

/// Finds the stream that a request concerns, if the request may do this with it. An unknown stream and one of another owner
/// give the same error.
pub(super) async fn find(
    gateway: &Gateway,
    parts: &Parts,
    id: &str,
    action: Action,
) -> Result<(StreamId, Found), ApiError> {
    let (id, access) = check(gateway, parts, id, action)?;
    let views = &gateway.inner.views;
    let found = views.find(&id, |meta| access.covers(meta)).await?;
    Ok((id, found))
}

/// Checks a request before its stream is looked up. A link takes the place of a key.
fn check(
    gateway: &Gateway,
    parts: &Parts,
    id: &str,
    action: Action,
) -> Result<(StreamId, Access), ApiError> {
    let query = parts.uri.query().unwrap_or_default();
    let access = match parameter(query, "sig") {
        Some(sig) => {
            check_link(gateway, query, id, sig, action)?;
            Access::Link
        }
        None => Access::Principal(principal(gateway, parts)?),
    };
    let id = id.parse().map_err(|_| ApiError::STREAM_NOT_FOUND)?;
    Ok((id, access))
}

fn check_link(
    gateway: &Gateway,
    query: &str,
    id: &str,
    sig: &str,
    action: Action,
) -> Result<(), ApiError> {
    let (scope, expires) = (parameter(query, "scope"), parameter(query, "exp"));
    let scope = gateway.inner.auth.links.check(id, scope, expires, sig);
    match (scope, action) {
        (Ok(Scope::Read | Scope::Cancel), Action::Read) | (Ok(Scope::Cancel), Action::Cancel) => {
            Ok(())
        }
        (Err(LinkError::Expired), _) => Err(ApiError::LINK_EXPIRED),
        (Ok(_) | Err(LinkError::Invalid), _) => Err(ApiError::LINK_INVALID),
    }
}

/// A query parameter of a link. None of its values contains a character that is escaped.
fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}
