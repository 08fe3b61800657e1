//! The engine is killed in the middle of its answers.

use std::time::Duration;

use futures::StreamExt;
use unbraid::{ChoiceEnd, Event, Sequenced, StreamError};
use unbraid_http::{HttpError, Request};

use crate::{busy::occupy, case, client, engine, engine::SLOTS, run};

#[test]
fn every_choice_ends_and_keeps_its_data() {
    let Some(mut server) = engine::start() else {
        return;
    };
    run(async {
        let completions = occupy(&server.base_url).await;
        let choices: Vec<_> = completions.choices().take(SLOTS as usize).collect().await;
        server.kill();
        for choice in choices {
            let choice = choice.unwrap();
            let outcome = choice.outcome().await;
            assert!(
                matches!(outcome.end, ChoiceEnd::Transport(_)),
                "{:?}",
                outcome.end
            );
            assert!(!outcome.message.content.is_empty());
            let error = choice.finished().await.unwrap_err();
            assert!(matches!(error.end(), ChoiceEnd::Transport(_)), "{error:?}");
        }
        let error = completions.closed().await.unwrap_err();
        assert!(matches!(error, StreamError::Transport(_)), "{error:?}");
    });
}

#[test]
fn every_end_is_an_event() {
    let Some(mut server) = engine::start() else {
        return;
    };
    run(async {
        let completions = occupy(&server.base_url).await;
        let mut events = completions.events();
        events.next().await.expect("the answer is endless").unwrap();
        server.kill();
        let remaining = events.collect::<Vec<_>>().await;
        let ends = remaining.iter().filter(|event| {
            matches!(
                event,
                Ok(Sequenced {
                    event: Event::End(_),
                    ..
                })
            )
        });
        assert_eq!(ends.count(), SLOTS as usize);
    });
}

#[test]
fn a_request_that_waits_for_a_slot_fails() {
    let Some(mut server) = engine::start() else {
        return;
    };
    run(async {
        let _busy = occupy(&server.base_url).await;
        let client = client(&server.base_url);
        let request = Request::from_value(case::endless(1)).unwrap();
        let kill = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            server.kill();
        };
        let (answer, ()) = tokio::join!(client.send(&request), kill);
        let error = answer.unwrap_err();
        assert!(matches!(error, HttpError::Transport { .. }), "{error:?}");
        let error = client.send(&request).await.unwrap_err();
        assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
    });
}
