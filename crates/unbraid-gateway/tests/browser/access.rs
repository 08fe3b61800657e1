//! Refusals, keys and signed links.

use std::io::Write;

use ring::digest::{SHA256, digest};

use crate::{
    driver::{Browser, Report, list, str_of},
    running::Running,
    upstream::words,
};

async fn run(scenario: &str, model: &str) -> Option<Report> {
    let running = Running::start().await;
    let browser = Browser::start(running.address, scenario, model, "2").await?;
    Some(browser.report().await)
}

#[tokio::test]
async fn an_unknown_stream_is_explained() {
    let Some(report) = run("unknown", "words").await else {
        return;
    };
    let view = &report.views()[0];
    assert_eq!(view["words"], "The gateway does not have this stream");
    assert!(str_of(&view["problem"]).contains("restarted"));
    assert_eq!(report.requests_of("/events"), 1, "it is not asked again");
}

#[tokio::test]
async fn a_refusal_of_the_provider_is_explained() {
    let Some(report) = run("refused", "refused").await else {
        return;
    };
    let view = &report.views()[0];
    assert_eq!(view["state"], "failed");
    assert!(str_of(&view["problem"]).contains("429"), "{view}");
}

#[tokio::test]
async fn a_page_that_has_to_wait_says_why() {
    let running = Running::with(|builder| builder.max_readers(1)).await;
    let Some(browser) = Browser::start(running.address, "busy", "words", "2").await else {
        return;
    };
    let report = browser.report().await;
    assert_eq!(
        report.0["before"]["words"],
        "This stream has too many readers, trying again…"
    );
    for view in report.views() {
        assert_eq!(view["state"], "ended", "{view}");
    }
}

#[tokio::test]
async fn a_key_is_asked_for_and_kept_for_the_session_and_a_link_needs_none() {
    let key = "k-5f0c";
    let hash = digest(&SHA256, key.as_bytes());
    let hash: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "someone sha256:{hash}").unwrap();
    let path = file.path().to_owned();
    let running = Running::with(|builder| builder.auth_file(path)).await;
    let Some(browser) = Browser::start(running.address, "key", "words", key).await else {
        return;
    };
    let report = browser.report().await;
    assert_eq!(report.0["before"]["words"], "The gateway needs a key");
    assert_eq!(report.views().len(), 2);
    for view in report.views() {
        for (index, section) in (0..).zip(list(&view["sections"])) {
            assert_eq!(section["parts"]["content"], words(index));
        }
    }
    let [session, local, cookie] = [0, 1, 2].map(|index| &report.0["stored"][index]);
    assert!(list(session).contains(&key.into()), "{session}");
    assert_eq!((list(local).len(), str_of(cookie)), (0, ""));
    assert_eq!(report.0["cancelButtons"], 0, "a link to read cannot cancel");
    assert!(!report.0["views"][1]["hash"].to_string().contains(key));
}
