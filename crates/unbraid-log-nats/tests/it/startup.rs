//! What is wrong at the start is a typed error, and what exists stays.

use std::time::Duration;

use async_nats::jetstream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::Instant,
};
use unbraid_log_nats::{NatsError, NatsLog, NatsOptions};
use unbraid_testkit::servers::nats::{NatsConfig, NatsServer};

use crate::support::{connect, options, server};

async fn refusal(url: &str, options: NatsOptions) -> NatsError {
    let connected = tokio::time::timeout(Duration::from_secs(10), NatsLog::connect(url, options));
    connected.await.expect("it hangs").unwrap_err()
}

#[tokio::test]
async fn a_wrong_address_is_refused() {
    for url in ["http://127.0.0.1:1", "redis://127.0.0.1", "nats://", ""] {
        let error = refusal(url, options()).await;
        assert!(
            matches!(error, NatsError::InvalidUrl { .. }),
            "{url}: {error}"
        );
    }
    let error = refusal("nats://127.0.0.1:1", options()).await;
    assert!(matches!(error, NatsError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let long = Duration::from_secs(u64::MAX);
    for invalid in [
        options().with_prefix("a.b"),
        options().with_gateway("a b"),
        options().with_ttl(Duration::ZERO),
        options().with_lease(long),
        options().with_claim_pending(long),
    ] {
        let error = refusal("nats://127.0.0.1:1", invalid).await;
        assert!(matches!(error, NatsError::InvalidOption { .. }), "{error}");
    }
    let missing = options().with_credentials("/does/not/exist.creds");
    let error = refusal("nats://127.0.0.1:1", missing).await;
    assert!(matches!(error, NatsError::Unauthorized { .. }), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_shown() {
    let config = NatsConfig {
        user: Some(("unbraid".to_owned(), "correct".to_owned())),
        ..NatsConfig::default()
    };
    let Some(server) = NatsServer::start(config).await else {
        return;
    };
    let address = format!("127.0.0.1:{}", server.port());
    for login in ["", "unbraid:incorrect@", "other:correct@"] {
        let error = refusal(&format!("nats://{login}{address}"), options()).await;
        assert!(matches!(error, NatsError::Unauthorized { .. }), "{error}");
        assert!(!error.to_string().contains("correct"), "{error}");
    }
    let url = format!("nats://unbraid:correct@{address}");
    let log = NatsLog::connect(&url, options()).await.unwrap();
    assert!(!format!("{log:?}").contains("correct"));
}

#[tokio::test]
async fn a_server_without_jetstream_is_refused() {
    let config = NatsConfig {
        jetstream: false,
        ..NatsConfig::default()
    };
    let Some(server) = NatsServer::start(config).await else {
        return;
    };
    let error = refusal(&server.url(), options()).await;
    assert!(matches!(error, NatsError::NoJetStream { .. }), "{error}");
}

/// A server of this version, as far as a client sees it at first.
async fn pretend(info: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                client.write_all(info.as_bytes()).await.unwrap();
                let mut buffer = [0; 4096];
                while let Ok(1..) = client.read(&mut buffer).await {
                    if client.write_all(b"PONG\r\n").await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("nats://127.0.0.1:{port}")
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let url = pretend(
        "INFO {\"server_id\":\"A\",\"version\":\"2.8.4\",\"go\":\"go1\",\"host\":\"0.0.0.0\",\"port\":4222,\
         \"headers\":true,\"max_payload\":1048576,\"proto\":1,\"jetstream\":true}\r\n",
    )
    .await;
    let error = refusal(&url, options()).await;
    let version = "2.8.4".to_owned();
    assert_eq!(error, NatsError::TooOld { version });
}

#[tokio::test]
async fn a_server_that_accepts_only_small_messages_is_refused() {
    let url = pretend(
        "INFO {\"server_id\":\"A\",\"version\":\"2.10.1\",\"go\":\"go1\",\"host\":\"0.0.0.0\",\"port\":4222,\
         \"headers\":true,\"max_payload\":65536,\"proto\":1,\"jetstream\":true}\r\n",
    )
    .await;
    let error = refusal(&url, options()).await;
    assert!(
        matches!(error, NatsError::SmallPayload { bytes: 65536, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_answers_no_request_is_refused() {
    let url = pretend(
        "INFO {\"server_id\":\"A\",\"version\":\"2.10.1\",\"go\":\"go1\",\"host\":\"0.0.0.0\",\"port\":4222,\
         \"headers\":true,\"max_payload\":1048576,\"proto\":1,\"jetstream\":true}\r\n",
    )
    .await;
    assert_eq!(refusal(&url, options()).await, NatsError::Silent);
}

#[tokio::test]
async fn a_foreign_stream_stays_as_it_is() {
    let Some(server) = server().await else {
        return;
    };
    let client = async_nats::connect(server.url()).await.unwrap();
    let context = jetstream::new(client.clone());
    let config = jetstream::stream::Config {
        name: "UNBRAID".to_owned(),
        subjects: vec!["orders.*".to_owned()],
        ..Default::default()
    };
    context.create_stream(config).await.unwrap();
    context
        .publish("orders.1", "kept".into())
        .await
        .unwrap()
        .await
        .unwrap();
    let error = refusal(&server.url(), options()).await;
    assert!(
        matches!(&error, NatsError::ForeignStream { stream, .. } if stream == "UNBRAID"),
        "{error}"
    );
    let mut stream = context.get_stream("UNBRAID").await.unwrap();
    let info = stream.info().await.unwrap();
    assert_eq!((info.config.subjects.len(), info.state.messages), (1, 1));
    // The same prefix in other letters has the same streams, but other subjects.
    let other = options().with_prefix("Shared");
    NatsLog::connect(&server.url(), other).await.unwrap();
    let error = refusal(&server.url(), options().with_prefix("SHARED")).await;
    assert!(matches!(error, NatsError::ForeignStream { .. }), "{error}");
}

#[tokio::test]
async fn replicas_that_one_server_cannot_have_are_refused_or_reported() {
    let Some(server) = server().await else {
        return;
    };
    let error = refusal(&server.url(), options().with_replicas(3)).await;
    assert!(matches!(error, NatsError::Refused { .. }), "{error}");
    let log = connect(&server).await;
    assert_eq!(log.warnings(), Vec::<String>::new());
    let other = NatsLog::connect(&server.url(), options().with_replicas(3))
        .await
        .unwrap();
    let warnings = other.warnings();
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("1 replicas, not 3")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_longer_ttl_extends_the_streams_and_a_shorter_one_does_not() {
    let Some(server) = server().await else {
        return;
    };
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    for (ttl, expected) in [(2, 26), (5, 29), (1, 29)] {
        let log = NatsLog::connect(&server.url(), options().with_ttl(hours(ttl)))
            .await
            .unwrap();
        assert_eq!(log.warnings(), Vec::<String>::new());
        let stream = context.get_stream("UNBRAID").await.unwrap();
        assert_eq!(stream.cached_info().config.max_age, hours(expected));
    }
}

/// The server drops what a user may not send, so no answer says so.
#[tokio::test]
async fn a_user_without_a_permission_is_refused_and_learns_which() {
    const ALL: [&str; 4] = ["unbraid.>", "$JS.API.>", "unbraid.>", "_INBOX.>"];
    let refused = async |action: &'static str, allowed: &[&str], expected: &str| {
        let allow = |allowed: &[&str]| format!("{{ allow: {allowed:?} }}");
        let [publish, subscribe] = match action {
            "publish" => [allowed, &ALL[2..]].map(allow),
            _ => [&ALL[..2], allowed].map(allow),
        };
        let config = NatsConfig {
            user: Some(("unbraid".to_owned(), "secret".to_owned())),
            permissions: Some(format!("{{ publish: {publish}, subscribe: {subscribe} }}")),
            ..NatsConfig::default()
        };
        let server = NatsServer::start(config).await?;
        let url = format!("nats://unbraid:secret@127.0.0.1:{}", server.port());
        let started = Instant::now();
        let error = NatsLog::connect(&url, options()).await.err();
        assert!(started.elapsed() < Duration::from_secs(5));
        let Some(NatsError::NotPermitted {
            action: refused,
            subject,
            needed,
        }) = &error
        else {
            assert!(error.is_none() && expected.is_empty(), "{error:?}");
            return None;
        };
        assert_eq!(*refused, action);
        assert!(
            !expected.is_empty() && subject.starts_with(expected),
            "{subject}"
        );
        assert_eq!(
            needed,
            "publish unbraid.> and $JS.API.>, subscribe unbraid.> and _INBOX.>"
        );
        let message = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(!message.contains("secret"), "{message}");
        Some(())
    };
    refused("publish", &ALL[..2], "").await;
    refused("publish", &["$JS.API.>"], "unbraid.").await;
    refused("publish", &["unbraid.log.>", "$JS.API.>"], "unbraid.").await;
    refused("publish", &["unbraid.>"], "$JS.API.").await;
    refused(
        "publish",
        &["unbraid.>", "$JS.API.INFO", "$JS.API.STREAM.>"],
        "$JS.API.DIRECT.",
    )
    .await;
    refused("subscribe", &["_INBOX.>"], "unbraid.live.").await;
    refused("subscribe", &["unbraid.>"], "_INBOX.").await;
}
