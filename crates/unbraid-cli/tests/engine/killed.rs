//! The engine dies in the middle of its answers.

use std::time::Duration;

use futures::StreamExt;
use unbraid::{ChoiceEnd, Event, Sequenced, StreamError};
use unbraid_http::{HttpError, Request};

use crate::{busy::occupy, case, client, engine, engine::SLOTS, run};

#[test]
fn every_choice_ends_and_keeps_what_it_had() {
    let Some(mut server) = engine::own() else {
        return;
    };
    run(async {
        let completions = occupy(&server.base_url).await;
        let choices: Vec<_> = completions.choices().take(SLOTS as usize).collect().await;
        server.kill();
        for choice in choices {
            let choice = choice.unwrap();
            let ended = choice.outcome().await;
            assert!(
                matches!(ended.end, ChoiceEnd::Transport(_)),
                "{:?}",
                ended.end
            );
            assert!(!ended.message.content.is_empty());
            let error = choice.finished().await.unwrap_err();
            assert!(matches!(error.end(), ChoiceEnd::Transport(_)), "{error:?}");
        }
        let error = completions.closed().await.unwrap_err();
        assert!(matches!(error, StreamError::Transport(_)), "{error:?}");
    });
}

#[test]
fn events_tell_every_end() {
    let Some(mut server) = engine::own() else {
        return;
    };
    run(async {
        let completions = occupy(&server.base_url).await;
        let mut events = completions.events();
        events.next().await.expect("it talks").unwrap();
        server.kill();
        let last = events.collect::<Vec<_>>().await;
        let ends = last.iter().filter(|event| {
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
fn who_waits_for_a_slot_is_told() {
    let Some(mut server) = engine::own() else {
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
