//! More is asked than the engine has slots for.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use unbraid::Completions;
use unbraid_http::{Client, HttpError, Request};

use crate::{
    answer, case, client,
    engine::{self, SLOTS},
    http, run,
};

/// An answer without end has all slots once each of its choices has said something.
pub(crate) async fn occupy(base_url: &str) -> Completions {
    let endless = case::endless(SLOTS.into());
    let request = Request::from_value(endless).unwrap();
    let completions = client(base_url).send(&request).await.unwrap();
    for index in 0..SLOTS {
        let choice = completions.choice(index).await.expect("it goes on");
        choice.content().next().await.expect("it talks").unwrap();
    }
    completions
}

#[test]
fn sixteen_at_a_time_are_answered_each_with_its_own() {
    let Some(base_url) = engine::shared() else {
        return;
    };
    let cases: Vec<_> = (0..16)
        .map(|at| case::chat("crowd", 100 + at, 1 + at % 4, json!({})))
        .collect();
    run(async {
        let client = client(base_url);
        let answers = join_all(cases.iter().map(async |case| {
            let request = Request::from_value(case.request.clone()).unwrap();
            let completions = client.send(&request).await.unwrap();
            answer::of_handles(&completions).await
        }));
        for (case, found) in cases.iter().zip(answers.await) {
            let whole = http::post(base_url, case.path(), &case.request).await;
            assert_eq!(found, answer::of_response(&whole.json()), "{}", case.name);
        }
    });
}

#[test]
fn who_waits_for_a_slot_gets_it_when_the_answer_before_is_dropped() {
    let Some(server) = engine::own() else { return };
    let case = case::chat("waiting", 9, 4, json!({}));
    run(async {
        let whole = http::post(&server.base_url, case.path(), &case.request).await;
        let before = occupy(&server.base_url).await;
        let client = client(&server.base_url);
        let request = Request::from_value(case.request.clone()).unwrap();
        let sent = client.send(&request);
        let waiting = tokio::time::timeout(Duration::from_secs(1), sent);
        assert!(waiting.await.is_err(), "there was a slot");

        let (answer, ()) = tokio::join!(client.send(&request), async { drop(before) });
        let found = answer::of_handles(&answer.unwrap()).await;
        assert_eq!(found, answer::of_response(&whole.json()));
    });
}

#[test]
fn waiting_for_a_slot_can_be_bounded() {
    let Some(server) = engine::own() else { return };
    run(async {
        let _busy = occupy(&server.base_url).await;
        let hasty = Client::builder()
            .base_url(&server.base_url)
            .proxy_from_env(false);
        let hasty = hasty
            .first_byte_timeout(Duration::from_millis(300))
            .build()
            .unwrap();
        let request = Request::from_value(case::endless(1)).unwrap();
        let refused = hasty.send(&request).await.unwrap_err();
        assert!(matches!(refused, HttpError::TimedOut { .. }), "{refused:?}");
    });
}

#[test]
fn more_choices_than_slots_are_refused() {
    let Some(base_url) = engine::shared() else {
        return;
    };
    run(async {
        let request = Request::chat("tiny").user("Hi").n(SLOTS + 4);
        let refused = client(base_url).send(&request).await.unwrap_err();
        let refused = refused.status_error().expect("it has a status");
        assert_eq!(
            (refused.status(), refused.kind()),
            (400, Some("invalid_request_error"))
        );
        assert!(
            refused.message().is_some_and(|said| said.contains("12")),
            "{refused:?}"
        );
    });
}

#[test]
fn a_cancelled_choice_leaves_the_others() {
    let Some(base_url) = engine::shared() else {
        return;
    };
    let case = case::chat("cancelled", 5, 4, json!({}));
    run(async {
        let whole = http::post(base_url, case.path(), &case.request).await;
        let mut expected = answer::of_response(&whole.json());
        let request = Request::from_value(case.request.clone()).unwrap();
        let completions = client(base_url).send(&request).await.unwrap();
        completions.choice(2).await.unwrap().discard();
        for index in [0, 1, 3] {
            let finished = completions
                .choice(index)
                .await
                .unwrap()
                .finished()
                .await
                .unwrap();
            let said = expected.remove(&u64::from(index)).unwrap();
            assert_eq!(finished.message.content, said.text);
        }
    });
}
