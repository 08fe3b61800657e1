//! `TransportError`: the failure of a stream's source, and whether it was a lost connection.

use std::{
    error::Error as StdError,
    fmt,
    io::{self, ErrorKind},
    iter,
};

use super::{BoxError, StreamError};

/// The source of a stream failed; its own error is the `source()`.
///
/// `Display` reads "connection lost after N bytes" if the source was a connection that ended. Otherwise it reads "the source
/// failed after N bytes": a file cannot be read, or a request was refused.
///
/// # Examples
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use unbraid_core::{ChoiceEnd, ChoiceIndex, Config, Demux, StreamError, TransportError};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
/// let cause = Error::new(ErrorKind::ConnectionReset, "reset by peer");
/// demux.abort(StreamError::Transport(TransportError::new(54, cause).into()));
/// let error = demux.result(ChoiceIndex(0)).unwrap().unwrap_err();
/// let ChoiceEnd::Transport(error) = error.end() else { panic!("{error}") };
/// assert_eq!((error.bytes, error.causes()), (54, "reset by peer".to_owned()));
/// ```
#[derive(Debug)]
pub struct TransportError {
    /// Bytes that had been read.
    pub bytes: u64,
    source: BoxError,
}

impl TransportError {
    /// Wraps the error of a source that failed after this many bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::error::Error;
    ///
    /// let error = unbraid_core::TransportError::new(12, "connection reset");
    /// assert_eq!(error.to_string(), "connection lost after 12 bytes");
    /// assert_eq!(error.source().unwrap().to_string(), "connection reset");
    /// ```
    #[must_use]
    pub fn new(bytes: u64, source: impl Into<BoxError>) -> Self {
        Self {
            bytes,
            source: source.into(),
        }
    }

    /// The messages of all causes, outermost first, joined by `": "`.
    ///
    /// HTTP clients wrap the error of the socket several times, and only the innermost message says what happened.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{Error, ErrorKind};
    ///
    /// let error = unbraid_core::TransportError::new(12, Error::new(ErrorKind::ConnectionReset, "reset by peer"));
    /// assert_eq!(format!("{error}: {}", error.causes()), "connection lost after 12 bytes: reset by peer");
    /// ```
    #[must_use]
    pub fn causes(&self) -> String {
        let first: &(dyn StdError + 'static) = &*self.source;
        let mut messages: Vec<String> = iter::successors(Some(first), |&error| error.source())
            .map(ToString::to_string)
            .collect();
        // A transparent wrapper repeats the message of what it wraps.
        messages.dedup();
        messages.join(": ")
    }

    /// Whether this was a connection that ended, as opposed to a file, or a source that failed at once.
    fn is_lost_connection(&self) -> bool {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(&*self.source);
        while let Some(error) = cause {
            if error.is::<StreamError>() {
                return false; // the bytes arrived, but were not a stream
            }
            let io = error.downcast_ref::<io::Error>();
            if let Some(lost) = io.and_then(|io| ends_connection(io.kind())) {
                return lost;
            }
            // The `source()` of an `io::Error` leaves out the error that it wraps.
            cause = match io.and_then(io::Error::get_ref) {
                Some(wrapped) => Some(wrapped),
                None => error.source(),
            };
        }
        // No cause is known. A source that has returned bytes is most likely a connection.
        self.bytes > 0
    }
}

/// Whether an error of this kind ends a connection; `None` if the kind does not show it.
fn ends_connection(kind: ErrorKind) -> Option<bool> {
    match kind {
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
        | ErrorKind::TimedOut
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown => Some(true),
        ErrorKind::Other => None,
        _ => Some(false),
    }
}

/// Two failures are equal if they say the same: the same bytes, and the same messages of all causes. The causes themselves
/// are of any type, and most of those cannot be compared.
impl PartialEq for TransportError {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.causes() == other.causes()
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        if self.is_lost_connection() {
            write!(f, "connection lost after {bytes} bytes")
        } else {
            write!(f, "the source failed after {bytes} bytes")
        }
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests;
