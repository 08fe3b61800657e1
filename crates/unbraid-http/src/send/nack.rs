//! A connection of HTTP/2 may refuse a request and guarantee that the server has not seen it.

use std::error::Error as StdError;

use h2::Reason;

/// Whether the peer guarantees that it has not processed the request (RFC 9113, sections 6.8 and 8.7).
///
/// reqwest sends again what was refused so, but only bodies of one piece; those of a fan-out are of several.
pub(super) fn is_refusal(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let shuts_down = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
            let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
            return error.is_remote() && (shuts_down || refused);
        }
        cause = error.source();
    }
    false
}
