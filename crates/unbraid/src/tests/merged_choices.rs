//! Further choices of a source that may have one: refused, or folded if the caller asks for it.

use unbraid_testkit::script::{DONE, bytes, content, finish};

use super::{
    ends,
    merge::{answer, source},
    soon,
};
use crate::{ChoiceIndex, Completions, Event, Source};

/// Two interleaved answers to a request for one.
fn two_answers() -> Source {
    source([
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        bytes(finish(1, "stop")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ])
}

#[tokio::test(start_paused = true)]
async fn e11_a_second_answer_of_a_source_is_refused_and_not_mixed_with_the_first() {
    let completions = Completions::merge([source(answer("fine")), two_answers()]);
    let expected = ["0 finished \"fine\"", "1 finished \"aa\""];
    let mut ends = ends(&completions).await;
    ends.sort_unstable();
    assert_eq!(ends, expected);
    assert!(soon(completions.closed()).await.is_ok());
    let warnings = completions.warnings();
    assert!(!warnings.is_empty());
    for warning in &warnings {
        assert_eq!(
            (warning.code, warning.choice),
            ("E11", Some(ChoiceIndex(1)))
        );
    }
    let mut events = completions.events();
    while let Some(Ok(event)) = soon(events.next()).await {
        if let Event::Warning(warning) = event.event {
            assert_eq!(warning.choice, Some(ChoiceIndex(1)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn e12_the_indices_of_each_source_are_folded_only_on_request() {
    let counting = || {
        let tokens = (1..=6).map(|token| bytes(content(token, "a")));
        source(tokens.chain([bytes(finish(7, "stop")), bytes(DONE)]))
    };
    let folded = Completions::builder()
        .expect_choices(1)
        .merge([counting(), counting()]);
    let expected = ["0 finished \"aaaaaa\"", "1 finished \"aaaaaa\""];
    assert_eq!(ends(&folded).await, expected);
    let apart = Completions::merge([counting(), source(answer("fine"))]);
    let ends = ends(&apart).await;
    assert_eq!(ends[0], "0 done_without_finish \"a\"");
    let codes: Vec<_> = apart.warnings().iter().map(|w| w.code).collect();
    assert!(
        codes.contains(&"E11") && codes.contains(&"E12"),
        "{codes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_kind_of_the_completion_is_known_once_any_source_has_brought_a_choice() {
    let envelope = "data: {\"id\":\"one\",\"choices\":[]}\n\n";
    let empty = "data: {\"id\":\"two\",\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n";
    for order in [[envelope, empty], [empty, envelope]] {
        let completions = Completions::merge(order.map(|body| source([bytes(body)])));
        let _closed = soon(completions.closed()).await;
        assert_eq!(
            completions.metadata().kind,
            Some(crate::CompletionKind::Chat)
        );
    }
}
