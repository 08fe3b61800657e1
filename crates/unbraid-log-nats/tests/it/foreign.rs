//! Messages that something else has written: typed errors, and everything stays.

use async_nats::{HeaderMap, jetstream};
use futures::StreamExt;
use unbraid_log::{Appended, End, LogError, LogStore, Seq, StreamEnd, StreamId};
use unbraid_testkit::servers::nats::NatsServer;

use crate::support::{connect, meta, new_id, record, server};

async fn publish(server: &NatsServer, subject: String, kind: Option<&str>, payload: &[u8]) {
    let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let mut headers = HeaderMap::new();
    if let Some(kind) = kind {
        headers.insert("Unbraid-Kind", kind);
    }
    let published = context.publish_with_headers(subject, headers, payload.to_vec().into());
    published.await.unwrap().await.unwrap();
}

/// What a stream has after two events, and after something else was written to its subject.
async fn errors(server: &NatsServer, kind: Option<&str>, payload: &[u8]) -> Vec<LogError> {
    let log = connect(server).await;
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 2)).await, Ok(Appended::New));
    publish(server, format!("unbraid.log.{id}"), kind, payload).await;
    let mut errors = vec![
        writer.append(&record(3, 3)).await.unwrap_err(),
        writer
            .seal(&StreamEnd::new(End::Finished))
            .await
            .unwrap_err(),
        log.status(&id).await.unwrap_err(),
    ];
    let mut records = log.read(&id, Seq::START);
    match records.next().await {
        Some(Ok(first)) => {
            assert_eq!(first.last(), Seq(2));
            errors.push(records.next().await.unwrap().unwrap_err());
        }
        first => errors.push(first.unwrap().unwrap_err()),
    }
    assert!(records.next().await.is_none(), "it ends after the error");
    assert_eq!(messages(server, &id).await, 2, "what was written stays");
    errors
}

async fn messages(server: &NatsServer, id: &StreamId) -> usize {
    let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let stream = context.get_stream("UNBRAID").await.unwrap();
    let subject = format!("unbraid.log.{id}");
    let subjects = stream.info_with_subjects(subject).await.unwrap();
    let counts: Vec<_> = subjects.map(|count| count.unwrap().1).collect().await;
    counts.into_iter().sum()
}

#[tokio::test]
async fn a_foreign_message_is_a_typed_error() {
    let Some(server) = server().await else {
        return;
    };
    for (kind, payload) in [
        (None, &b"hello"[..]),
        (Some("record/1"), b""),
        (Some("order/1"), b"hello"),
        (Some("seal/1"), &[1, 1, 0]),
    ] {
        for error in errors(&server, kind, payload).await {
            assert!(
                matches!(error, LogError::InvalidRecord { .. }),
                "{kind:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn a_later_version_is_a_typed_error() {
    let Some(server) = server().await else {
        return;
    };
    for (kind, payload) in [("record/2", &[1, 3][..]), ("record/1", &[2, 3, 1])] {
        for error in errors(&server, Some(kind), payload).await {
            assert_eq!(error, LogError::UnsupportedVersion { version: 2 }, "{kind}");
        }
    }
}

#[tokio::test]
async fn foreign_meta_data_and_commands_are_no_streams_and_no_commands() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let id = new_id();
    publish(&server, format!("unbraid.meta.{id}"), None, b"{}").await;
    let error = log.status(&id).await.unwrap_err();
    assert!(matches!(error, LogError::InvalidRecord { .. }), "{error}");
    let error = log.open(&id, &meta()).await.err().unwrap();
    assert!(matches!(error, LogError::InvalidRecord { .. }), "{error}");
    // A foreign message among the commands does not stop those after it.
    publish(
        &server,
        format!("unbraid.log.={}", log.gateway()),
        None,
        b"stop",
    )
    .await;
    let running = new_id();
    let _writer = log.open(&running, &meta()).await.unwrap();
    let cancel = unbraid_log::Command::Cancel(None);
    assert_eq!(log.send_command(&running, cancel).await, Ok(()));
    assert_eq!(log.commands().next().await, Some((running, cancel)));
}
