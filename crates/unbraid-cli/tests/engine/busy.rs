//! More choices are requested than the engine has slots for.

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

/// Starts an endless answer, and waits until each of its choices has a delta, so that it occupies all slots.
pub(crate) async fn occupy(base_url: &str) -> Completions {
    let endless = case::endless(SLOTS.into());
    let request = Request::from_value(endless).unwrap();
    let completions = client(base_url).send(&request).await.unwrap();
    for index in 0..SLOTS {
        let choice = completions
            .choice(index)
            .await
            .expect("the answer is endless");
        choice
            .content()
            .next()
            .await
            .expect("the answer is endless")
            .unwrap();
    }
    completions
}

#[test]
fn sixteen_concurrent_requests_get_their_own_answers() {
    let Some(base_url) = engine::shared() else {
        return;
    };
    let cases: Vec<_> = (0..16)
        .map(|k| case::chat("crowd", 100 + k, 1 + k % 4, json!({})))
        .collect();
    run(async {
        let client = client(base_url);
        let answers = join_all(cases.iter().map(async |case| {
            let request = Request::from_value(case.request.clone()).unwrap();
            let completions = client.send(&request).await.unwrap();
            answer::from_handles(&completions).await
        }));
        for (case, found) in cases.iter().zip(answers.await) {
            let response = http::post(base_url, case.path(), &case.request).await;
            assert_eq!(
                found,
                answer::from_response(&response.json()),
                "{}",
                case.name
            );
        }
    });
}

#[test]
fn a_waiting_request_gets_the_slot_when_the_answer_before_it_is_dropped() {
    let Some(server) = engine::start() else {
        return;
    };
    let case = case::chat("waiting", 9, 4, json!({}));
    run(async {
        let response = http::post(&server.base_url, case.path(), &case.request).await;
        let occupying = occupy(&server.base_url).await;
        let client = client(&server.base_url);
        let request = Request::from_value(case.request.clone()).unwrap();
        let sent = client.send(&request);
        let waiting = tokio::time::timeout(Duration::from_secs(1), sent);
        assert!(waiting.await.is_err(), "there was a slot");

        let (answer, ()) = tokio::join!(client.send(&request), async { drop(occupying) });
        let found = answer::from_handles(&answer.unwrap()).await;
        assert_eq!(found, answer::from_response(&response.json()));
    });
}

#[test]
fn the_wait_for_a_slot_times_out() {
    let Some(server) = engine::start() else {
        return;
    };
    run(async {
        let _busy = occupy(&server.base_url).await;
        let client = Client::builder()
            .base_url(&server.base_url)
            .proxy_from_env(false);
        let client = client
            .first_byte_timeout(Duration::from_millis(300))
            .build()
            .unwrap();
        let request = Request::from_value(case::endless(1)).unwrap();
        let error = client.send(&request).await.unwrap_err();
        assert!(matches!(error, HttpError::TimedOut { .. }), "{error:?}");
    });
}

#[test]
fn more_choices_than_slots_are_rejected() {
    let Some(base_url) = engine::shared() else {
        return;
    };
    run(async {
        let request = Request::chat("tiny").user("Hi").n(SLOTS + 4);
        let error = client(base_url).send(&request).await.unwrap_err();
        let error = error.status_error().expect("it has a status");
        assert_eq!(
            (error.status(), error.kind()),
            (400, Some("invalid_request_error"))
        );
        assert!(
            error.message().is_some_and(|text| text.contains("12")),
            "{error:?}"
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
        let response = http::post(base_url, case.path(), &case.request).await;
        let mut expected = answer::from_response(&response.json());
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
            let content = expected.remove(&u64::from(index)).unwrap();
            assert_eq!(finished.message.content, content.text);
        }
    });
}
