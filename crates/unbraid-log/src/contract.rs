//! The tests that every log has to pass.
//!
//! An engine implements [`Engine`], which can be stopped, started and emptied, and calls [`run`]. The suite needs a tokio
//! runtime with time. It panics, as a test does, with the name of the check that failed.
//!
//! # Examples
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//! use futures::future::{BoxFuture, FutureExt};
//! use unbraid_log::{LogStore, MemoryLog, MemoryOptions, contract::{Engine, run}};
//!
//! struct Memory(MemoryLog);
//!
//! impl Engine for Memory {
//!     fn gateway(&self) -> BoxFuture<'_, Arc<dyn LogStore>> {
//!         let log: Arc<dyn LogStore> = Arc::new(self.0.clone());
//!         async move { log }.boxed()
//!     }
//!     fn stop(&self) -> BoxFuture<'_, ()> {
//!         async {}.boxed() // a real engine stops its process
//!     }
//!     fn start(&self) -> BoxFuture<'_, ()> {
//!         async {}.boxed()
//!     }
//!     fn empty(&self) -> BoxFuture<'_, ()> {
//!         async { self.0.clear() }.boxed()
//!     }
//!     fn ttl(&self) -> Duration {
//!         Duration::from_secs(4)
//!     }
//!     fn lease(&self) -> Duration {
//!         Duration::from_secs(2)
//!     }
//! }
//!
//! # async fn test() {
//! let options = MemoryOptions::default().with_ttl(Duration::from_secs(4)).with_lease(Duration::from_secs(2));
//! run(&Memory(MemoryLog::new(options))).await;
//! # }
//! ```
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a check panics if it fails, as every test does"
)]

mod claims;
mod faults;
mod fixture;
mod leases;
pub(crate) mod scripted;
mod streams;

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, LocalBoxFuture};
use tokio::time::timeout;

use crate::LogStore;

/// An engine under test.
pub trait Engine: Send + Sync {
    /// Connects another gateway. All of them use the same streams.
    fn gateway(&self) -> BoxFuture<'_, Arc<dyn LogStore>>;

    /// Stops the engine: its calls fail until it is started. What it contains is kept.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// Starts the engine again.
    fn start(&self) -> BoxFuture<'_, ()>;

    /// Makes the engine forget everything, as a restart without persistence does. It runs before and after.
    fn empty(&self) -> BoxFuture<'_, ()>;

    /// How long the gateways keep a stream after its end. A few seconds.
    fn ttl(&self) -> Duration;

    /// How long a producer may be silent, and the holder of a claim. A few seconds, and less than [`ttl`](Self::ttl).
    ///
    /// A log that has a time of its own for claims whose stream is not open is tested with less than three leases.
    fn lease(&self) -> Duration;
}

/// One check of the suite.
///
/// # Examples
///
/// ```
/// use unbraid_log::contract::{CHECKS, Check};
///
/// let first: &Check = &CHECKS[0];
/// assert_eq!(first.name, "a_reader_gets_what_was_appended");
/// ```
#[derive(Clone, Copy)]
pub struct Check {
    /// Its name, a sentence.
    pub name: &'static str,
    run: fn(&dyn Engine) -> LocalBoxFuture<'_, ()>,
}

impl Check {
    /// Runs it.
    ///
    /// # Panics
    ///
    /// If the log breaks the contract, or if the check takes more than two minutes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves streams in the engine.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::contract::{CHECKS, Check, Engine};
    ///
    /// /// One test for each check, for an engine whose checks take long.
    /// async fn run_one(engine: &dyn Engine, name: &str) {
    ///     let check: &Check = CHECKS.iter().find(|check| check.name == name).unwrap();
    ///     check.run(engine).await;
    /// }
    /// ```
    pub async fn run(&self, engine: &dyn Engine) {
        const DEADLINE: Duration = Duration::from_secs(120);
        let finished = timeout(DEADLINE, (self.run)(engine)).await;
        assert!(finished.is_ok(), "`{}` hangs", self.name);
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

macro_rules! checks {
    ($($module:ident::$name:ident,)*) => {
        /// All checks, in the order in which [`run`] runs them.
        pub const CHECKS: &[Check] = &[$(Check {
            name: stringify!($name),
            run: |engine| Box::pin($module::$name(engine)),
        }),*];
    };
}

checks! {
    streams::a_reader_gets_what_was_appended,
    streams::a_reader_follows_the_log_and_ends_after_the_seal,
    streams::every_cursor_gets_the_rest,
    streams::readers_of_several_gateways_get_the_same,
    streams::a_repeated_record_is_a_duplicate,
    streams::another_record_at_the_same_number_is_fenced,
    streams::a_record_that_leaves_a_gap_is_refused,
    streams::nothing_is_appended_after_the_seal,
    streams::the_first_end_is_kept,
    streams::a_long_payload_is_kept_in_parts,
    streams::an_unknown_stream_is_unknown_to_every_call,
    streams::an_id_is_opened_once,
    streams::a_stream_is_opened_again_by_its_opener,
    streams::an_erased_stream_is_expired,
    streams::a_stream_expires_after_its_ttl,
    claims::one_of_many_claims_is_acquired,
    claims::a_claim_that_is_repeated_is_kept_without_a_stream,
    claims::a_claim_is_kept_with_its_stream_and_freed_with_it,
    claims::the_claim_of_an_expired_stream_is_free,
    claims::only_the_holder_releases_a_claim,
    claims::the_claim_of_a_refused_stream_stays_free,
    claims::commands_reach_the_producer_in_order,
    claims::commands_of_one_stream_have_a_receiver_of_their_own,
    leases::a_live_producer_is_not_lost,
    leases::a_silent_producer_is_lost_after_its_lease,
    leases::gateways_that_seal_at_once_agree,
    faults::a_stopped_engine_is_unavailable_and_loses_nothing,
    faults::a_reader_resumes_after_the_engine_was_stopped,
    faults::the_producer_appends_again_everything_that_an_emptied_engine_has_lost,
    faults::a_late_reader_of_an_emptied_engine_reads_what_was_written_again,
    faults::a_reader_that_is_behind_in_an_emptied_engine_loses_nothing,
    faults::a_seal_does_not_make_a_loss_final,
    faults::a_stream_that_is_lost_with_its_producer_ends_its_readers,
}

/// Runs all checks.
///
/// # Panics
///
/// If the log breaks the contract.
///
/// # Cancel safety
///
/// Dropping the future leaves streams in the engine.
pub async fn run(engine: &dyn Engine) {
    for check in CHECKS {
        check.run(engine).await;
    }
}
