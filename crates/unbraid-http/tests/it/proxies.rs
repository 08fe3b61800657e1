//! Proxies of the environment. A test cannot change its own, so a second process asks.

use std::{env, process::Command};

use unbraid_http::Client;

use crate::{
    answers::{texts, two},
    server::{Server, two_choices_answer},
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

    let direct = Client::builder()
        .base_url("http://127.0.0.1:1/v1")
        .proxy_from_env(false);
    let direct = direct.retries(0).build().unwrap();
    let refused = direct.send(&two()).await.unwrap_err();
    assert_eq!(refused.to_string(), "no connection to 127.0.0.1:1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_names_proxy_address_and_key() {
    let proxy = Server::start(|_| two_choices_answer()).await;
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
            format!("http://user:hush@{}", proxy.address()),
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
    assert_eq!(requests.len(), 1);
    let uri = requests[0].uri().to_string();
    assert_eq!(uri, format!("{NOWHERE}/chat/completions"));
    assert_eq!(requests[0].headers()["authorization"], "Bearer sk-env");
    let proof = &requests[0].headers()["proxy-authorization"];
    assert!(proof.to_str().unwrap().starts_with("Basic "));
}
