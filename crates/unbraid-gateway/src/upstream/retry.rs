//! Whether a request is sent again: only if no answer can have begun, and only if the operator asked for it.

use std::time::Duration;

use axum::http::{StatusCode, header::RETRY_AFTER};

use super::Answer;
use crate::api_error::ApiError;

/// The pause before the second attempt. It doubles before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause: a server that is down for longer does not return because of one more attempt.
const MAX_PAUSE: Duration = Duration::from_secs(8);

/// The attempts that are left.
#[derive(Debug)]
pub(super) struct Retries {
    left: u32,
    pause: Duration,
}

impl Retries {
    pub(super) fn new(retries: u32) -> Self {
        Self {
            left: retries,
            pause: FIRST_PAUSE,
        }
    }

    /// Returns the pause before the next attempt; `None` if this result is final.
    pub(super) fn next(&mut self, result: &Result<Answer, ApiError>) -> Option<Duration> {
        let (retries, asked) = match result {
            Ok(answer) => (is_temporary(answer.status), retry_after(answer)),
            Err(error) => (*error == ApiError::UPSTREAM_UNREACHABLE, None),
        };
        if !retries || self.left == 0 || asked.is_some_and(|pause| pause > MAX_PAUSE) {
            return None;
        }
        self.left -= 1;
        let pause = asked.unwrap_or(self.pause);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        Some(pause)
    }
}

fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}

fn retry_after(answer: &Answer) -> Option<Duration> {
    let text = answer.headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_upstream_is_tried_as_often_as_configured_and_a_timeout_never_again() {
        let mut retries = Retries::new(2);
        let unreachable = Err(ApiError::UPSTREAM_UNREACHABLE);
        assert_eq!(retries.next(&unreachable), Some(FIRST_PAUSE));
        assert_eq!(retries.next(&unreachable), Some(FIRST_PAUSE * 2));
        assert_eq!(retries.next(&unreachable), None);
        assert_eq!(Retries::new(9).next(&Err(ApiError::UPSTREAM_TIMEOUT)), None);
        assert_eq!(Retries::new(0).next(&unreachable), None);
    }

    #[test]
    fn a_refusal_of_the_request_itself_is_final() {
        for status in [400, 401, 403, 404, 413, 422] {
            assert!(
                !is_temporary(StatusCode::from_u16(status).unwrap()),
                "{status}"
            );
        }
        for status in [408, 409, 429, 500, 502, 503, 504] {
            assert!(
                is_temporary(StatusCode::from_u16(status).unwrap()),
                "{status}"
            );
        }
    }
}
