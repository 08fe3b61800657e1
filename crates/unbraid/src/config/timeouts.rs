//! Timeouts and timers.

use std::time::Duration;

use super::CompletionsBuilder;

impl CompletionsBuilder {
    /// Ends the stream if no byte at all has arrived after this time.
    ///
    /// # Examples
    ///
    /// See [`CompletionsBuilder`].
    #[must_use]
    pub fn first_byte_timeout(mut self, after: Duration) -> Self {
        self.timeouts.first_byte = Some(after);
        self
    }

    /// Ends the stream if no byte has arrived for this time since the last one. Comments count as bytes (S4).
    ///
    /// It does not bound the wait for the first byte, which may be much longer;
    /// [`first_byte_timeout`](Self::first_byte_timeout) does. Set both for a source that may never begin.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use std::time::Duration;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().idle_timeout(Duration::from_secs(30)).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn idle_timeout(mut self, after: Duration) -> Self {
        self.timeouts.idle = Some(after);
        self
    }

    /// Ends the stream if it has not closed by itself after this time. Of several sources, each has as much from when it is
    /// added.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use std::time::Duration;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().total_timeout(Duration::from_secs(600)).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn total_timeout(mut self, after: Duration) -> Self {
        self.timeouts.total = Some(after);
        self.timeouts.whole_total = None;
        self
    }

    /// Ends the stream after the rest of a total timeout that began before it, whose whole length the error states.
    pub(crate) fn rest_of_total_timeout(mut self, rest: Duration, whole: Duration) -> Self {
        self.timeouts.total = Some(rest);
        self.timeouts.whole_total = Some(whole);
        self
    }

    /// Sets whether the library may use timers of its own accord; on by default.
    ///
    /// With timers, a choice whose finish reason has arrived ends after 250 ms without bytes, and the rest of a finished body
    /// is read for at most 100 ms. Without, such a choice ends with the next event, and the rest is read only as far as it is
    /// ready. Turn them off in a runtime without a time driver: tokio has no query for it, and the attempt to use it is a
    /// panic, which is caught, but its message is printed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().implicit_timers(false).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn implicit_timers(mut self, timers: bool) -> Self {
        self.timeouts.implicit = timers;
        self
    }
}
