//! Proxies of the environment. A test cannot change its own environment, so it starts a second process.

use std::{env, process::Command};

use base64::{Engine, prelude::BASE64_STANDARD};
use unbraid_http::Client;

use crate::{
    responses::{request, texts},
    server::{Server, full, two_choices_reply},
};

/// Where the second process sends its requests: a name that does not resolve.
const NOWHERE: &str = "http://unbraid.invalid/v1";

#[tokio::test]
#[ignore = "run by the test below, in an environment that names a proxy"]
async fn sends_through_a_proxy() {
    let client = Client::from_env().unwrap();
    let completions = client.send(&request()).await.unwrap();
    assert_eq!(texts(&completions).await, ["one", "two"]);
    let shown = format!("{client:?}");
    assert!(!shown.contains("hush"), "{shown}");

    // A proxy that repeats its credentials.
    let error = client.send(&request()).await.unwrap_err();
    let status = error.status_error().unwrap();
    assert_eq!(status.message(), Some("no [key], Basic [key]"));
    assert!(!format!("{error} {error:?}").contains("hush"));

    let direct = Client::builder()
        .base_url("http://127.0.0.1:1/v1")
        .proxy_from_env(false);
    let direct = direct.retries(0).build().unwrap();
    let error = direct.send(&request()).await.unwrap_err();
    assert_eq!(error.to_string(), "no connection to 127.0.0.1:1");
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_address_and_key_are_read_from_the_environment() {
    let proxy = Server::start(|request| match request {
        0 => two_choices_reply(),
        _ => {
            let credentials = BASE64_STANDARD.encode("user:hush/hush");
            full(
                407,
                "text/plain",
                format!("no hush/hush, Basic {credentials}"),
            )
        }
    })
    .await;
    let mut process = Command::new(env::current_exe().unwrap());
    for name in [
        "NO_PROXY",
        "no_proxy",
        "ALL_PROXY",
        "all_proxy",
        "http_proxy",
    ] {
        process.env_remove(name);
    }
    process
        .args(["--exact", "proxies::sends_through_a_proxy", "--ignored"])
        .env(
            "HTTP_PROXY",
            format!("http://user:hush%2Fhush@{}", proxy.address()),
        )
        .env("OPENAI_BASE_URL", NOWHERE)
        .env("OPENAI_API_KEY", "sk-env\n");
    let output = tokio::task::spawn_blocking(move || process.output());
    let output = output.await.unwrap().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}"
    );

    let requests = proxy.requests();
    assert_eq!(requests.len(), 2);
    let uri = requests[0].uri().to_string();
    assert_eq!(uri, format!("{NOWHERE}/chat/completions"));
    assert_eq!(requests[0].headers()["authorization"], "Bearer sk-env");
    let credentials = &requests[0].headers()["proxy-authorization"];
    assert!(credentials.to_str().unwrap().starts_with("Basic "));
}
