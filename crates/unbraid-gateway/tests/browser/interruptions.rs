//! Lost connections, and a gateway that was restarted.

use crate::{
    driver::{Browser, str_of},
    running::{Running, cuttable},
    upstream::words,
};

#[tokio::test]
async fn a_cut_connection_continues_where_it_was() {
    let running = Running::start().await;
    let (cut, address) = cuttable(running.address).await;
    let Some(mut browser) = Browser::start(address, "interrupt", "words", "4").await else {
        return;
    };
    assert_eq!(browser.line().await["writing"], true);
    cut.send_modify(|cuts| *cuts += 1);
    browser.proceed().await;
    assert_eq!(browser.line().await["reconnecting"], true);
    let report = browser.report().await;
    for (index, section) in (0..).zip(report.sections()) {
        assert_eq!(
            section["parts"]["content"],
            words(index),
            "nothing is lost or repeated"
        );
    }
    report.check_growth();
    assert!(
        report.requests_of("/events") >= 2,
        "the page connected again"
    );
    assert_eq!(report.views()[0]["state"], "ended");
}

#[tokio::test]
async fn a_restarted_gateway_that_has_lost_the_stream_is_reported() {
    let running = Running::start().await;
    let Some(mut browser) = Browser::start(running.address, "interrupt", "words", "3").await else {
        return;
    };
    assert_eq!(browser.line().await["writing"], true);
    let restarted = running.restart().await;
    browser.proceed().await;
    assert_eq!(browser.line().await["reconnecting"], true);
    let report = browser.report().await;
    let view = &report.views()[0];
    assert_eq!(view["state"], "failed");
    assert_eq!(view["words"], "The gateway does not have this stream");
    for (index, section) in (0..).zip(report.sections()) {
        let text = str_of(&section["text"]);
        let sent = format!("It is easy. {}", words(index));
        assert!(
            !text.is_empty() && sent.starts_with(text),
            "what arrived stays"
        );
        assert_eq!(
            (&section["state"], &section["end"]),
            (&"ended".into(), &"lost".into())
        );
    }
    drop(restarted);
}
