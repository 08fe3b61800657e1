//! A rolling restart: one gateway after the other drains and is started again, while clients create and read streams.

use std::{path::PathBuf, time::Duration};

use unbraid_adversarial::chaos::{self, LogKind, Options, Plan};

use crate::UNBRAID;

#[test]
fn a_rolling_restart_loses_no_stream() {
    let options = Options {
        log: LogKind::Redis,
        plan: Plan::Rolling,
        kills: 0,
        first_round: 1,
        seed: 1,
        clients: 60,
        lease: Duration::from_secs(10),
        time: Duration::ZERO,
        unbraid: PathBuf::from(UNBRAID),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let summary = runtime.block_on(Box::pin(chaos::run(options, |line| println!("{line}"))));
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) if error.is_absent() => {
            let is_required =
                std::env::var_os("UNBRAID_REQUIRE_ENGINES").is_some_and(|value| value == "1");
            assert!(!is_required, "{error}");
            println!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(summary.is_clean(), "{summary}");
    // A drained gateway finishes what it produces, so no stream ends early.
    let ends = &summary.json()["ends"];
    assert_eq!(
        ends.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["[DONE]"],
        "{summary}"
    );
}
