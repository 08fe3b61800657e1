//! Streams that are erased while readers on several gateways read them.

use std::time::Duration;

use http::Method;
use unbraid_log::internal::scripted::Fault;

use super::{pair, path, silent, status_code};
use crate::support::{Event, send, start_with};

/// Every reader gets the end, also if the gateway that erases the stream sees it first.
#[tokio::test]
async fn a_stream_that_is_erased_ends_for_all_readers() {
    for answer in [None, Some(Fault::SlowAnswer(Duration::from_millis(400)))] {
        let pair = pair(silent().await).await;
        let third = pair.engine.gateway();
        let third = start_with(&pair.upstream, |builder| builder.log(third)).await;
        let (id, mut post) = pair.a.create(2).await;
        post.until("\"b\"").await;
        let mut views = Vec::new();
        for gateway in [&pair.a, &pair.b, &third] {
            let mut view = gateway.view(&path(&id, "/events")).await;
            view.until("\"b\"").await;
            views.push(view);
        }
        pair.logs[0].set(answer);
        let response = send(pair.b.method(Method::DELETE, &path(&id, ""))).await;
        assert_eq!(response.status(), 204);
        assert_eq!(status_code(&pair.b, &path(&id, "")).await, 410);
        let events: Vec<Event> = post.rest().await;
        let cancelled = events
            .iter()
            .filter(|event| event.data.contains("cancelled"));
        assert_eq!(cancelled.count(), 2);
        assert_eq!(events.last().unwrap().data, "[DONE]");
        for mut view in views {
            assert_eq!(view.rest().await, events);
        }
    }
}
