//! Answers that are longer than a stream may be, and end in the read that passes the limit.

use crate::support::{Reader, Step, Upstream, chunk, finish, request, send, sse, start_with};

#[tokio::test]
async fn an_answer_that_ends_in_the_read_that_passes_the_limit_is_complete() {
    for n in [1, 2] {
        let last = chunk(0, &"x".repeat(20_000));
        let mut events = vec![chunk(0, "a"), last, finish(0)];
        if n == 2 {
            events.extend([chunk(1, "b"), finish(1)]);
        }
        events.push("[DONE]".to_owned());
        let events: String = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        let upstream = Upstream::steps(vec![sse(), Step::Send(events), Step::Hang]).await;
        let gateway = start_with(&upstream, |builder| builder.max_stream_bytes(16 << 10)).await;
        let mut post = Reader::new(send(gateway.post(request(n))).await);
        let events = post.rest().await;
        assert_eq!(events.last().unwrap().data, "[DONE]", "{n}");
        let id = post.header("x-stream-id").unwrap();
        assert_eq!(gateway.ended(id).await["end"], "finished", "{n}");
    }
}
