//! Whether a request is sent again: only if no answer can have begun, and only if the operator asked for it.

use std::{error::Error, time::Duration};

use axum::http::StatusCode;
use unbraid_http::internal::retry_headers;

use super::Answer;
use crate::api_error::ApiError;

/// The pause before the second attempt. It doubles before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause: a server that is down for longer does not return because of one more attempt.
const MAX_PAUSE: Duration = Duration::from_secs(8);

/// Why an attempt has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The upstream has not processed the request: there was no connection, or the upstream guarantees it.
    NotProcessed,
    /// The connection was lost after the request was sent. The upstream may be at work, and bills it.
    Lost,
    TimedOut,
    /// The upstream has answered with something else than a response, or switched to a protocol for which nobody has asked.
    Invalid,
}

impl NoAnswer {
    pub(super) fn of(error: reqwest::Error) -> Self {
        if is_invalid(&error) {
            Self::Invalid
        } else if unbraid_http::internal::permits_retry(error) {
            Self::NotProcessed
        } else {
            Self::Lost
        }
    }
}

impl From<NoAnswer> for ApiError {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::NotProcessed | NoAnswer::Lost => Self::UPSTREAM_UNREACHABLE,
            NoAnswer::TimedOut => Self::UPSTREAM_TIMEOUT,
            NoAnswer::Invalid => Self::UPSTREAM_INVALID,
        }
    }
}

/// Whether the upstream has answered, and its head is none of HTTP, or is too large.
fn is_invalid(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_parse)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

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
    pub(super) fn next(&mut self, result: &Result<Answer, NoAnswer>) -> Option<Duration> {
        let (retries, asked) = match result {
            Ok(answer) => {
                let (is_forbidden, asked) = retry_headers(answer.response.headers());
                (is_temporary(answer.status) && !is_forbidden, asked)
            }
            Err(no_answer) => (*no_answer == NoAnswer::NotProcessed, None),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_upstream_is_tried_as_often_as_configured_and_one_that_may_work_never_again() {
        let mut retries = Retries::new(2);
        let unreachable = Err(NoAnswer::NotProcessed);
        assert_eq!(retries.next(&unreachable), Some(FIRST_PAUSE));
        assert_eq!(retries.next(&unreachable), Some(FIRST_PAUSE * 2));
        assert_eq!(retries.next(&unreachable), None);
        for no_answer in [NoAnswer::Lost, NoAnswer::TimedOut, NoAnswer::Invalid] {
            assert_eq!(Retries::new(9).next(&Err(no_answer)), None);
        }
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
