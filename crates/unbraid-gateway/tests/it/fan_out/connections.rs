//! On which connections the requests for single choices are sent.

use serde_json::json;

use super::{REFUSED, one_choice};
use crate::support::{Step, Upstream, send, soon, start};

/// A provider that closes the connection of a refusal later, and does not say so: the next request on it gets no answer.
async fn closes_after_refusal() -> Upstream {
    let head = "HTTP/1.1 400 X\r\ncontent-type: application/json";
    let length = REFUSED.len();
    let refusal = format!("{head}\r\ncontent-length: {length}\r\n\r\n{REFUSED}");
    Upstream::script(move |seen, ordinal| match seen.json().get("n") {
        Some(_) => vec![Step::Raw(refusal.clone()), Step::Hang],
        None => one_choice(seen, ordinal),
    })
    .await
}

#[tokio::test]
async fn the_connection_on_which_n_was_refused_takes_no_request_for_a_choice() {
    for is_stream in [true, false] {
        let upstream = closes_after_refusal().await;
        let gateway = start(&upstream).await;
        let body = json!({"model": "m", "n": 3, "stream": is_stream}).to_string();
        let answer = soon(send(gateway.post(body)).await.text()).await;
        let answer = answer.unwrap().unwrap();
        let finished = answer.matches(r#""finish_reason":"stop""#).count();
        assert_eq!(finished, 3, "{answer}");
        assert_eq!(upstream.seen().len(), 4);
    }
}
