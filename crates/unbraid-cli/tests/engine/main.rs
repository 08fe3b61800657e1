//! Against a real engine: llama.cpp's HTTP server, with a model made on the spot. How it comes here stands in `tests/engine/README.md`.
#![cfg(test)]

mod answer;
mod busy;
mod case;
mod check;
mod engine;
mod http;
mod killed;
mod recording;
mod second_opinion;

use std::{
    future::Future,
    path::{Path, PathBuf},
    time::Duration,
};

use unbraid_http::Client;

/// The binary under test.
const UNBRAID: &str = env!("CARGO_BIN_EXE_unbraid");

/// Far beyond what any answer takes, on a machine that is busy; a hang becomes a failure.
const PATIENCE: Duration = Duration::from_secs(120);

/// What `tests/engine/prepare.py` has prepared.
fn prepared() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target
        .expect("`tmp` lies in the target directory")
        .join("engine")
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let bounded = async { tokio::time::timeout(PATIENCE, test).await };
    runtime.unwrap().block_on(bounded).expect("nothing hangs")
}

fn client(base_url: &str) -> Client {
    let client = Client::builder().base_url(base_url).proxy_from_env(false);
    client.build().unwrap()
}
