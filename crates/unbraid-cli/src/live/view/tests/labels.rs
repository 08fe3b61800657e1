//! The providers and models in the titles of panes.

use unbraid::{ChoiceEnd, Event, FinishReason};

use super::TestView;
use crate::labels::{Label, Labels};

fn labelled(width: u16) -> TestView {
    let mut test = TestView::new(width, 8);
    let label = |provider, model: &str| Label {
        provider,
        model: model.to_owned(),
    };
    let labels = Labels::new([
        label("openai", "gpt-5-mini"),
        label("anthropic", "claude-sonnet-4-5"),
        label("ollama", "qwen3:8b\u{1b}[2J"),
    ]);
    test.view = test.view.with_labels(labels);
    for choice in 0..3 {
        test.push_text(choice, "Hi");
    }
    test
}

#[test]
fn a_title_has_the_provider_and_the_model() {
    let mut test = labelled(132);
    let screen = test.screen().join("\n");
    for title in [
        "[0] openai:gpt-5-mini ",
        "[1] anthropic:claude-sonnet-4-5 ",
        "[2] ollama:qwen3:8b\\u{1b}[2J ",
    ] {
        assert!(screen.contains(title), "{title}: {screen}");
    }
}

#[test]
fn a_label_is_shortened_before_the_end_is() {
    for width in [60, 78, 96, 120] {
        let mut test = labelled(width);
        let end = ChoiceEnd::Finished(FinishReason::Other("end_turn".into()));
        test.apply(1, Event::End(end));
        let screen = test.screen().join("\n");
        assert!(screen.contains("\u{2713} end_turn"), "{width}: {screen}");
        assert!(screen.contains("[1] a"), "{width}: {screen}");
    }
}
