//! How often, how many at once, and how long: retries, parallel requests and timeouts.

use std::time::Duration;

use tokio::sync::Semaphore;

use super::ClientBuilder;

impl ClientBuilder {
    /// Sets the maximum number of further attempts. 0 makes none. The default is [`RETRIES`](crate::limits::RETRIES).
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().retries(0).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets how many requests of one [`fan_out`](crate::Client::fan_out) run at once, at least 1. The default is
    /// [`MAX_REQUESTS`](crate::limits::MAX_REQUESTS).
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().max_requests(4).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Sets how long establishing a connection may take, including TLS. The default is
    /// [`CONNECT_TIMEOUT`](crate::limits::CONNECT_TIMEOUT).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use unbraid_http::Client;
    /// let client = Client::builder().connect_timeout(Duration::from_secs(3)).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn connect_timeout(mut self, after: Duration) -> Self {
        self.connect_timeout = after;
        self
    }

    /// Sets how long the first byte may take: first that of the head, in each attempt and including the connection, then that
    /// of the body.
    ///
    /// The default is the [idle timeout](Self::idle_timeout), or, without one,
    /// [`FIRST_BYTE_TIMEOUT`](crate::limits::FIRST_BYTE_TIMEOUT), ten minutes. [`Duration::MAX`] waits indefinitely. In a
    /// [`fan_out`](crate::Client::fan_out) the time counts for each request from when it is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use unbraid_http::Client;
    /// let client = Client::builder().first_byte_timeout(Duration::from_secs(60)).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn first_byte_timeout(mut self, after: Duration) -> Self {
        self.timeouts.first_byte = Some(after);
        self
    }

    /// Sets how long a server may be silent: while the connection is established, before the head, before the first byte of the
    /// body, and then between two bytes. There is no such timeout by default.
    ///
    /// A model that reasons before it answers is silent for long only at first. For such a model set a longer
    /// [`first_byte_timeout`](Self::first_byte_timeout), which then replaces this one up to the first byte.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use unbraid_http::Client;
    /// let client = Client::builder()
    ///     .first_byte_timeout(Duration::from_secs(300))
    ///     .idle_timeout(Duration::from_secs(20))
    ///     .build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn idle_timeout(mut self, after: Duration) -> Self {
        self.timeouts.idle = Some(after);
        self
    }

    /// Sets how long everything may take together: all attempts, their pauses, and the body. There is no such timeout by
    /// default.
    ///
    /// All requests of a fan-out have one deadline, which counts from the call: also those that wait for their turn (see
    /// [`max_requests`](Self::max_requests)), and those that [`ChoiceStrategy::Auto`](crate::ChoiceStrategy::Auto) sends later.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use unbraid_http::Client;
    /// let client = Client::builder().total_timeout(Duration::from_secs(120)).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn total_timeout(mut self, after: Duration) -> Self {
        self.timeouts.total = Some(after);
        self
    }
}
