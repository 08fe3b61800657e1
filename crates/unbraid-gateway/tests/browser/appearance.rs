//! How the page looks, how it is used without a mouse, and how fast it responds.

use serde_json::Value;

use crate::{
    driver::{Browser, Report, list, str_of},
    running::Running,
    upstream::large,
};

async fn run(scenario: &str, model: &str, n: u32) -> Option<Report> {
    let running = Running::start().await;
    let browser = Browser::start(running.address, scenario, model, &n.to_string()).await?;
    Some(browser.report().await)
}

fn number(section: &Value, field: &str) -> f64 {
    section[field].as_f64().unwrap()
}

#[tokio::test]
async fn choices_are_columns_in_a_wide_window() {
    let Some(report) = run("answer", "words", 3).await else {
        return;
    };
    for pair in report.sections().windows(2) {
        assert_eq!(number(&pair[0], "y"), number(&pair[1], "y"));
        assert!(number(&pair[0], "x") + number(&pair[0], "width") <= number(&pair[1], "x"));
        assert!((number(&pair[0], "width") - number(&pair[1], "width")).abs() < 1.0);
        assert!(number(&pair[1], "width") > 250.0 && pair[1]["visible"] == true);
    }
}

#[tokio::test]
async fn a_narrow_window_stacks_the_choices_and_a_dark_one_is_dark() {
    let Some(report) = run("narrow", "words", 3).await else {
        return;
    };
    for pair in report.sections().windows(2) {
        assert_eq!(number(&pair[0], "x"), number(&pair[1], "x"));
        assert!(number(&pair[0], "y") + number(&pair[0], "height") <= number(&pair[1], "y"));
        assert!(number(&pair[0], "width") > 340.0);
    }
    assert_eq!(report.0["width"], 390, "nothing is wider than the window");
    let brightness = |scheme: &str, layer: usize| -> u32 {
        let color = str_of(&report.0[scheme][layer]);
        let digits = color
            .split(|c: char| !c.is_ascii_digit())
            .filter(|part| !part.is_empty());
        digits
            .take(3)
            .map(|part| part.parse::<u32>().unwrap())
            .sum()
    };
    let [text, page] = [0, 1];
    assert!(brightness("light", page) > 650 && brightness("light", text) < 200);
    assert!(brightness("dark", page) < 100 && brightness("dark", text) > 600);
}

#[tokio::test]
async fn the_keyboard_alone_is_enough() {
    let Some(report) = run("keyboard", "words", 3).await else {
        return;
    };
    let focus = list(&report.0["focus"]);
    assert_eq!(focus.len(), 6);
    for stop in focus {
        assert_eq!(stop[1], "solid 2px", "the focus is visible: {stop}");
    }
    assert_eq!(report.sections().len(), 3, "the number was typed");
    assert_eq!(report.sections()[1]["end"], "cancelled");
    assert_eq!(report.0["focused"], "1", "a cancel leaves the focus there");
    assert_eq!(report.sections()[0]["end"], "finished");
}

#[tokio::test]
async fn eight_choices_of_50_000_characters_leave_the_page_responsive() {
    let Some(report) = run("load", "large", 8).await else {
        return;
    };
    for (index, section) in (0..).zip(report.sections()) {
        assert!(
            section["parts"]["content"] == large(index),
            "choice {index} is complete"
        );
    }
    let longest = |field: &str| {
        let times = list(&report.0[field])
            .iter()
            .map(|time| time.as_f64().unwrap());
        times.fold(0.0, f64::max)
    };
    assert!(list(&report.0["clicks"]).len() >= 10);
    assert!(
        longest("clicks") < 1000.0,
        "a click waited {} ms",
        longest("clicks")
    );
}

#[tokio::test]
async fn new_text_is_announced_in_sentences_and_not_by_token() {
    let Some(report) = run("announce", "words", 1).await else {
        return;
    };
    let announced: Vec<&str> = list(&report.0["announced"]).iter().map(str_of).collect();
    assert!((1..=4).contains(&announced.len()), "{announced:?}");
    assert!(
        announced[0].starts_with("word0x0 word0x1 "),
        "{announced:?}"
    );
    assert_eq!(
        report.0["live"],
        serde_json::json!(["state", "problem", "announcer"])
    );
}
