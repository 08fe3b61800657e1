//! The errors of this crate. No message contains the key or any payload.

mod build;
mod http;

use unbraid::{ChoiceError, JsonError, StreamError};

pub use self::{build::BuildError, http::HttpError};
use crate::request::RequestError;

/// Any error of a program that sends requests and reads their responses; `?` converts each of them into it.
///
/// # Examples
///
/// ```no_run
/// use unbraid_http::{Client, Error, Request};
///
/// #[derive(serde::Deserialize)]
/// struct City {
///     name: String,
/// }
///
/// async fn capital(country: &str) -> Result<City, Error> {
///     let client = Client::from_env()?; // BuildError
///     let request = Request::chat("gpt-4o-mini")
///         .user(format!("What is the capital of {country}? Answer as {{\"name\": ..}}."))
///         .fields(&serde_json::json!({ "response_format": { "type": "json_object" } }))?; // RequestError
///     let completions = client.send(&request).await?; // HttpError
///     let choice = completions.first().await?; // StreamError
///     println!("{}", choice.text().await?); // ChoiceError
///     Ok(choice.content_json().parse().await?) // JsonError
/// }
/// # drop(capital("France"));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No stream was returned: the client, the request, the connection or the server's response is at fault.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The stream as a whole failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// One choice failed.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A JSON text that the model wrote cannot be used.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// An error of a later version of unbraid that none of the other variants covers.
    #[error(transparent)]
    Other(unbraid::Error),
}

impl Error {
    /// Returns the error of the request, also if it is the cause of the error of a stream or a choice.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{Client, Error, HttpError, Request};
    ///
    /// async fn ask() -> Result<String, Error> {
    ///     let builder = Client::builder().base_url("http://127.0.0.1:1/v1").proxy_from_env(false);
    ///     let completions = builder.retries(0).build()?.fan_out(&Request::chat("a model").user("Hello?"), 2);
    ///     Ok(completions.first().await?.text().await?)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let error = ask().await.unwrap_err();
    /// assert!(matches!(error, Error::Choice(_)));
    /// assert!(matches!(error.http(), Some(HttpError::Connect { .. })));
    /// # }
    /// ```
    #[must_use]
    pub fn http(&self) -> Option<&HttpError> {
        match self {
            Self::Http(error) => Some(error),
            Self::Stream(error) => HttpError::find_in(error),
            Self::Choice(error) => HttpError::find_in(error),
            Self::Json(error) => HttpError::find_in(error),
            Self::Other(error) => HttpError::find_in(error),
        }
    }
}

impl From<unbraid::Error> for Error {
    fn from(error: unbraid::Error) -> Self {
        match error {
            unbraid::Error::Stream(error) => Self::Stream(error),
            unbraid::Error::Choice(error) => Self::Choice(error),
            unbraid::Error::Json(error) => Self::Json(error),
            other => Self::Other(other),
        }
    }
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Self::Http(error.into())
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        Self::Http(error.into())
    }
}

#[cfg(test)]
mod tests;
