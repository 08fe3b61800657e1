//! The choices while they are written, and as they end.

use crate::{
    driver::{Browser, Report, list, str_of, text_of},
    running::Running,
    upstream::{ARGUMENTS, MARKUP, MARKUP_MODEL, words},
};

async fn run(scenario: &str, model: &str, n: u32) -> Option<Report> {
    let running = Running::start().await;
    let browser = Browser::start(running.address, scenario, model, &n.to_string()).await?;
    Some(browser.report().await)
}

#[tokio::test]
async fn the_choices_grow_side_by_side_to_their_texts() {
    let Some(report) = run("answer", "words", 4).await else {
        return;
    };
    for (index, section) in (0..).zip(report.sections()) {
        assert_eq!(section["choice"], index.to_string());
        assert_eq!(section["heading"], format!("Choice {index}"));
        assert_eq!(section["parts"]["content"], words(index));
        assert_eq!(section["parts"]["reasoning"], "It is easy. ");
        assert_eq!(
            (&section["state"], &section["end"]),
            (&"ended".into(), &"finished".into())
        );
        assert!(str_of(&section["rate"]).ends_with(" tokens/s"), "{section}");
        assert_eq!(
            section["cancel"], false,
            "an ended choice cannot be cancelled"
        );
    }
    assert_eq!(report.ends(), ["✓ stop", "✓ stop", "✓ length", "✓ stop"]);
    assert_eq!(report.sections()[2]["notice"], "warning");
    report.check_growth();
    let lengths = report
        .samples()
        .iter()
        .filter_map(|sample| Some(text_of(sample, 1)?.len()));
    let seen: std::collections::BTreeSet<usize> = lengths.collect();
    assert!(seen.len() > 10, "the text is seen while it grows: {seen:?}");
    let view = &report.views()[0];
    assert_eq!(
        (&view["state"], &view["words"]),
        (&"ended".into(), &"Ended: 4 finished".into())
    );
    assert!(str_of(&view["hash"]).starts_with("#stream="));
    let colors: std::collections::BTreeSet<&str> = report
        .sections()
        .iter()
        .map(|section| str_of(&section["color"]))
        .collect();
    assert_eq!(colors.len(), 4, "each choice has a colour of its own");
    assert_ne!(
        report.sections()[0]["noticeColor"],
        report.sections()[2]["noticeColor"]
    );
    let policy = str_of(&report.0["policy"]);
    for directive in [
        "default-src 'none'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "script-src 'sha256-",
        "style-src 'sha256-",
    ] {
        assert!(policy.contains(directive), "{policy}");
    }
    assert_eq!(report.0["headers"]["referrer-policy"], "no-referrer");
    assert_eq!(view["models"][0], "words", "the form lists the models");
}

#[tokio::test]
async fn calls_grow_as_indented_json() {
    let Some(report) = run("answer", "calls", 2).await else {
        return;
    };
    let expected = "get_weather{\n  \"city\": \"Oslo\",\n  \"days\": [\n    1,\n    2\n  ],\n  \"near\": {\n    \"name\": \"Tøyen\"\n  }\n}";
    for section in report.sections() {
        assert_eq!(section["parts"]["tool_calls.0"], expected);
        assert_eq!(section["note"], "");
    }
    report.check_growth();
    let mut partial = report
        .samples()
        .iter()
        .filter_map(|sample| text_of(sample, 0));
    assert!(partial.any(|text| text.starts_with("get_weather{\n  \"")
        && text.len() < expected.len()
        && text != "get_weather"));
    let arguments: serde_json::Value = serde_json::from_str(ARGUMENTS).unwrap();
    let shown = expected.strip_prefix("get_weather").unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(shown).unwrap(),
        arguments
    );
}

#[tokio::test]
async fn a_reload_and_a_second_tab_show_the_same() {
    let Some(report) = run("reload", "words", 4).await else {
        return;
    };
    assert_eq!(report.views().len(), 2);
    for view in report.views() {
        assert_eq!(view["hash"], report.views()[0]["hash"]);
        for (index, section) in (0..).zip(list(&view["sections"])) {
            assert_eq!(section["parts"]["content"], words(index));
            assert_eq!(section["end"], "finished");
        }
    }
    let before = |index: usize| str_of(&report.0["before"]["sections"][index]["text"]);
    assert!(
        before(0).len() < words(0).len(),
        "the reload came while the text was written"
    );
    assert_eq!(report.0["prompt"], "Hi", "the form keeps what was asked");
    assert_eq!(
        report.requests_of("/chat/completions"),
        1,
        "a reload asks nothing"
    );
}

#[tokio::test]
async fn a_cancelled_choice_ends_and_the_others_continue() {
    let Some(report) = run("cancel", "words", 4).await else {
        return;
    };
    assert_eq!(report.views().len(), 2);
    for view in report.views() {
        let sections = list(&view["sections"]);
        assert_eq!(sections[1]["end"], "cancelled");
        assert_eq!(sections[1]["doing"], "✗ cancelled");
        let text = str_of(&sections[1]["parts"]["content"]);
        assert!(text.len() < words(1).len() && words(1).starts_with(text));
        for index in [0, 2, 3] {
            assert_eq!(sections[index]["parts"]["content"], words(index as u64));
        }
        assert_eq!(view["words"], "Ended: 3 finished, 1 cancelled");
    }
    let seen_at_once = &report.0["before"]["sections"];
    assert_eq!(seen_at_once[0]["state"], "running");
}

#[tokio::test]
async fn cancel_all_ends_every_choice() {
    let Some(report) = run("cancelAll", "words", 3).await else {
        return;
    };
    for (index, section) in (0..).zip(report.sections()) {
        assert_eq!(
            (&section["state"], &section["end"]),
            (&"ended".into(), &"cancelled".into())
        );
        assert!(str_of(&section["parts"]["content"]).len() < words(index).len());
    }
    assert_eq!(
        report.views()[0]["cancelAll"],
        true,
        "the button is disabled"
    );
}

#[tokio::test]
async fn markup_in_an_answer_is_shown_as_text() {
    let Some(report) = run("answer", MARKUP_MODEL, 2).await else {
        return;
    };
    let view = &report.views()[0];
    assert!(list(&view["models"]).contains(&MARKUP_MODEL.into()));
    assert!(
        str_of(&view["about"]).starts_with(MARKUP_MODEL),
        "{}",
        view["about"]
    );
    for section in report.sections() {
        assert_eq!(section["parts"]["reasoning"], MARKUP[0]);
        assert_eq!(section["parts"]["content"], MARKUP[1]);
        let call = str_of(&section["parts"]["tool_calls.0"]);
        assert!(call.starts_with(MARKUP[2]), "{call}");
        assert!(
            call.contains(r#""<i>a</i>": "</pre><script>alert(4)</script>""#),
            "{call}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_is_not_a_success() {
    let Some(report) = run("answer", "cut", 2).await else {
        return;
    };
    assert_eq!(report.ends(), ["✗ interrupted", "✗ interrupted"]);
    let view = &report.views()[0];
    assert_eq!(view["state"], "failed");
    assert!(str_of(&view["problem"]).contains("interrupted"), "{view}");
    assert!(
        report
            .sections()
            .iter()
            .all(|section| section["notice"] == "error")
    );
}

#[tokio::test]
async fn an_error_of_the_provider_is_shown_and_a_finished_choice_stays() {
    let Some(report) = run("answer", "error", 2).await else {
        return;
    };
    assert_eq!(report.ends(), ["✓ stop", "✗ server error"]);
    assert!(str_of(&report.views()[0]["problem"]).contains("engine <i>died</i>"));
}
