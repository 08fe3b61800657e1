//! An HTTP/2 connection may refuse a request and guarantee that the server has not processed it.

use std::error::Error as StdError;

use h2::Reason;

/// Whether the peer guarantees that it has not processed the request (RFC 9113, sections 6.8 and 8.7).
///
/// reqwest retries such requests by itself, but only if their body is in one piece. Those of a fan-out have several.
pub(super) fn is_unprocessed(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let goes_away = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
            let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
            return error.is_remote() && (goes_away || refused);
        }
        cause = error.source();
    }
    false
}
