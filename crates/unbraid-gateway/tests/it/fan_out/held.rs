//! Usage that is held back.

use std::time::Duration;

use crate::support::{Step, Upstream, chunk, send, sse, start_with};

/// It is held back until it is known whether the provider ignores `n`. Then it would be that of one choice only.
#[tokio::test]
async fn usage_that_has_arrived_is_shown_also_if_the_answer_does_not_end() {
    let usage = r#"{"id":"c","choices":[],"usage":{"total_tokens":7}}"#;
    // In one read, so that the usage has arrived when the text is seen.
    let events = format!("data: {}\n\ndata: {usage}\n\n", chunk(0, "a"));
    let steps = [sse(), Step::Send(events)];
    for (cancels, last) in [
        (true, Step::Hang),
        (false, Step::Hang),
        (false, Step::Cut),
        (false, Step::End),
    ] {
        let mut steps = steps.to_vec();
        if matches!(last, Step::End) {
            let error = r#"{"error":{"message":"overloaded"}}"#;
            steps.push(Step::Send(format!("data: {error}\n\n")));
        }
        steps.push(last);
        let upstream = Upstream::steps(steps).await;
        let gateway = start_with(&upstream, |builder| {
            builder.idle_timeout(Duration::from_millis(if cancels { 60_000 } else { 300 }))
        })
        .await;
        let (id, mut post) = gateway.create(3).await;
        post.until("\"a\"").await;
        if cancels {
            let path = format!("/v1/streams/{id}/cancel");
            let response = send(gateway.method("POST".parse().unwrap(), &path)).await;
            assert_eq!(response.status(), 200);
        }
        let events = post.rest().await;
        let at = |text: &str| events.iter().position(|event| event.data.contains(text));
        let error = at("\"error\"").unwrap_or(events.len());
        let usage = at("total_tokens");
        assert!(usage.is_some_and(|usage| usage < error), "{}", post.text);
        assert_eq!(upstream.seen().len(), 1, "a failure says nothing about n");
    }
}
