//! Responses of a fan-out with several choices, or with an index for each token.

use unbraid::Completions;
use unbraid_http::ChoiceStrategy;
use unbraid_testkit::script::{DONE, content, finish};

use crate::{
    fan_out::{ends, one, question, sse},
    server::{self, Server},
};

#[tokio::test]
async fn an_extra_choice_is_not_mixed_with_the_requested_one() {
    let server = Server::start(|ordinal| match ordinal {
        0 => sse(one("fine")),
        _ => server::two_choices_reply(),
    })
    .await;
    let client = server.builder().max_requests(1).build().unwrap();
    for completions in [
        client.fan_out(&question(), 2),
        client.fan_out(&question().n(1), 1),
    ] {
        let ends = ends(&completions).await;
        // The response contains `one` and `two`.
        assert_eq!(
            ends.last().map(|end| &end[1..]),
            Some(" finished one"),
            "{ends:?}"
        );
        let warnings = completions.warnings();
        assert!(!warnings.is_empty());
        let last = (ends.len() - 1) as u32;
        for warning in warnings {
            assert_eq!(
                (warning.code, warning.choice.map(|c| c.0)),
                ("E11", Some(last))
            );
        }
    }
}

#[tokio::test]
async fn e12_a_fan_out_folds_indices_that_count_tokens_if_one_choice_is_expected() {
    let body: String = (1..=6).map(|token| content(token, "a")).collect();
    let body = body + &finish(7, "stop") + DONE;
    let server = Server::start(move |_| sse(body.clone())).await;
    let config = Completions::builder().expect_choices(1);
    let client = server.builder().stream_config(config).build().unwrap();
    let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
    let completions = client.send(&request).await.unwrap();
    let expected = ["0 finished aaaaaa", "1 finished aaaaaa"];
    assert_eq!(ends(&completions).await, expected);
}
