//! Tests against a real engine: llama.cpp's HTTP server, with a generated model. `tests/engine/README.md` describes the setup.
#![cfg(test)]

mod answer;
mod busy;
mod case;
mod check;
mod dialects;
mod engine;
#[cfg(feature = "serve")]
mod gateway_sdks;
mod http;
mod killed;
mod openai_sdk;
mod provider_sdks;
mod python;
mod recording;

use std::{
    future::Future,
    path::{Path, PathBuf},
    time::Duration,
};

use unbraid_http::Client;

/// The binary under test.
const UNBRAID: &str = env!("CARGO_BIN_EXE_unbraid");

/// The limit for one test, far longer than any answer takes on a busy machine. It turns a hang into a failure.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The directory that `tests/engine/prepare.py` fills.
fn prepared() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target
        .expect("`tmp` is in the target directory")
        .join("engine")
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let bounded = async { tokio::time::timeout(TIMEOUT, test).await };
    runtime.unwrap().block_on(bounded).expect("no hang")
}

fn client(base_url: &str) -> Client {
    let client = Client::builder().base_url(base_url).proxy_from_env(false);
    client.build().unwrap()
}
