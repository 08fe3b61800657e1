use unbraid::StreamError;

use super::{BuildError, Error, HttpError};
use crate::Request;

#[test]
fn every_error_converts_into_the_error_of_a_program() {
    fn of_request() -> Result<(), Error> {
        Request::from_value("private".into())?;
        Ok(())
    }
    fn of_unbraid() -> Result<(), Error> {
        Err(unbraid::Error::from(StreamError::Cancelled))?
    }
    fn of_stream() -> Result<(), Error> {
        Err(StreamError::Cancelled)?
    }
    fn of_build() -> Result<(), Error> {
        Err(BuildError::Key)?
    }
    fn of_http() -> Result<(), Error> {
        Err(HttpError::NoRuntime)?
    }
    for (error, expected) in [
        (of_request(), "a request is a JSON object, not a string"),
        (of_unbraid(), "cancelled"),
        (of_stream(), "cancelled"),
        (
            of_build(),
            "the key holds characters that a header cannot carry",
        ),
        (of_http(), "no tokio runtime runs on this thread"),
    ] {
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
}

#[test]
fn the_error_of_a_request_is_returned_by_http() {
    let kind = |error: Error| error.http().map(HttpError::as_str);
    assert_eq!(kind(BuildError::Key.into()), Some("build"));
    assert_eq!(kind(HttpError::NoTimeDriver.into()), Some("no_time_driver"));
    assert_eq!(kind(StreamError::Cancelled.into()), None);
}
