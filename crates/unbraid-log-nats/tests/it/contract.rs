//! The contract of a log, with a real server.

use unbraid_log::contract::CHECKS;

use crate::support::{Nats, server};

#[tokio::test(flavor = "multi_thread")]
async fn the_log_in_nats_passes_the_contract() {
    let Some(server) = server().await else {
        return;
    };
    let engine = Nats(server);
    for check in CHECKS {
        println!("{}", check.name);
        check.run(&engine).await;
    }
}
