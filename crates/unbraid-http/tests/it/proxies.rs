//! Proxies of the environment. A test cannot change its own, so a second process asks.

use std::{env, process::Command};

use base64::{Engine, prelude::BASE64_STANDARD};
use unbraid_http::Client;

use crate::{
    answers::{texts, two},
    server::{Server, full, two_choices_answer},
};

/// Where the second process sends its request: a name that is nowhere.
const NOWHERE: &str = "http://unbraid.invalid/v1";

#[tokio::test]
#[ignore = "run by the test below, in an environment that names a proxy"]
async fn asks_through_a_proxy() {
    let client = Client::from_env().unwrap();
    let completions = client.send(&two()).await.unwrap();
    assert_eq!(texts(&completions).await, ["one", "two"]);
    let shown = format!("{client:?}");
    assert!(!shown.contains("hush"), "{shown}");

    // A proxy that repeats its credentials.
    let refused = client.send(&two()).await.unwrap_err();
    let answer = refused.status_error().unwrap();
    assert_eq!(answer.message(), Some("no [key], Basic [key]"));
    assert!(!format!("{refused} {refused:?}").contains("hush"));

    let direct = Client::builder()
        .base_url("http://127.0.0.1:1/v1")
        .proxy_from_env(false);
    let direct = direct.retries(0).build().unwrap();
    let refused = direct.send(&two()).await.unwrap_err();
    assert_eq!(refused.to_string(), "no connection to 127.0.0.1:1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_names_proxy_address_and_key() {
    let proxy = Server::start(|request| match request {
        0 => two_choices_answer(),
        _ => {
            let proof = BASE64_STANDARD.encode("user:hush/hush");
            full(407, "text/plain", format!("no hush/hush, Basic {proof}"))
        }
    })
    .await;
    let mut asking = Command::new(env::current_exe().unwrap());
    for name in [
        "NO_PROXY",
        "no_proxy",
        "ALL_PROXY",
        "all_proxy",
        "http_proxy",
    ] {
        asking.env_remove(name);
    }
    asking
        .args(["--exact", "proxies::asks_through_a_proxy", "--ignored"])
        .env(
            "HTTP_PROXY",
            format!("http://user:hush%2Fhush@{}", proxy.address()),
        )
        .env("OPENAI_BASE_URL", NOWHERE)
        .env("OPENAI_API_KEY", "sk-env\n");
    let asked = tokio::task::spawn_blocking(move || asking.output());
    let asked = asked.await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&asked.stdout);
    assert!(
        asked.status.success() && told.contains("1 passed"),
        "{told}"
    );

    let requests = proxy.requests();
    assert_eq!(requests.len(), 2);
    let uri = requests[0].uri().to_string();
    assert_eq!(uri, format!("{NOWHERE}/chat/completions"));
    assert_eq!(requests[0].headers()["authorization"], "Bearer sk-env");
    let proof = &requests[0].headers()["proxy-authorization"];
    assert!(proof.to_str().unwrap().starts_with("Basic "));
}
