//! The contract of a log, each check as a test of its own.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use unbraid_log::{
    LogStore,
    contract::{CHECKS, Engine},
};
use unbraid_log_redis::{RedisLog, RedisOptions};
use unbraid_testkit::servers::RedisServer;

use crate::support::blocking;

const TTL: Duration = Duration::from_secs(8);
const LEASE: Duration = Duration::from_secs(2);

struct Redis(Arc<RedisServer>);

impl Engine for Redis {
    fn gateway(&self) -> BoxFuture<'_, Arc<dyn LogStore>> {
        async {
            let options = RedisOptions::default().with_ttl(TTL).with_lease(LEASE);
            let log = RedisLog::connect(&self.0.url(), options).await;
            Arc::new(log.expect("the server runs")) as Arc<dyn LogStore>
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        blocking(&self.0, RedisServer::stop).boxed()
    }

    fn start(&self) -> BoxFuture<'_, ()> {
        blocking(&self.0, RedisServer::start).boxed()
    }

    fn empty(&self) -> BoxFuture<'_, ()> {
        let empty = |server: &RedisServer| {
            server.kill();
            server.delete_data();
            server.start();
        };
        blocking(&self.0, empty).boxed()
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    fn lease(&self) -> Duration {
        LEASE
    }
}

async fn check(name: &str) {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let check = CHECKS.iter().find(|check| check.name == name);
    let check = check.expect("it is a check of the suite");
    check.run(&Redis(Arc::new(server))).await;
}

macro_rules! checks {
    ($($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            check(stringify!($name)).await;
        })*

        #[test]
        fn no_check_is_missing() {
            let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

checks! {
    a_reader_gets_what_was_appended
    a_reader_follows_the_log_and_ends_after_the_seal
    every_cursor_gets_the_rest
    readers_of_several_gateways_get_the_same
    a_repeated_record_is_a_duplicate
    another_record_at_the_same_number_is_fenced
    a_record_that_leaves_a_gap_is_refused
    nothing_is_appended_after_the_seal
    the_first_end_is_kept
    a_long_payload_is_kept_in_parts
    an_unknown_stream_is_unknown_to_every_call
    an_id_is_opened_once
    a_stream_is_opened_again_by_its_opener
    an_erased_stream_is_expired
    a_stream_expires_after_its_ttl
    one_of_many_claims_is_acquired
    a_claim_that_is_repeated_is_kept_without_a_stream
    a_claim_is_kept_with_its_stream_and_freed_with_it
    the_claim_of_an_expired_stream_is_free
    only_the_holder_releases_a_claim
    the_claim_of_a_refused_stream_stays_free
    commands_reach_the_producer_in_order
    commands_of_one_stream_have_a_receiver_of_their_own
    a_live_producer_is_not_lost
    a_silent_producer_is_lost_after_its_lease
    gateways_that_seal_at_once_agree
    a_stopped_engine_is_unavailable_and_loses_nothing
    a_reader_resumes_after_the_engine_was_stopped
    the_producer_appends_again_everything_that_an_emptied_engine_has_lost
    a_late_reader_of_an_emptied_engine_reads_what_was_written_again
    a_reader_that_is_behind_in_an_emptied_engine_loses_nothing
    a_seal_does_not_make_a_loss_final
    a_stream_that_is_lost_with_its_producer_ends_its_readers
}
