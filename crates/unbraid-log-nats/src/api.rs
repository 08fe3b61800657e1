//! The calls to JetStream, each with one typed outcome.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use async_nats::{
    Client, HeaderMap, Request, RequestErrorKind, StatusCode,
    jetstream::{
        Context, ErrorCode,
        context::ContextBuilder,
        message::StreamMessage,
        publish::PublishAck,
        response::Response,
        stream::{Config, DirectGetErrorKind, RawMessageErrorKind, Stream},
    },
};
use bytes::Bytes;
use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use unbraid_log::LogError;

use crate::{NatsError, connection::Connection, streams};

/// How long one request may take.
pub(crate) const ANSWER: Duration = Duration::from_secs(1);

/// Of a message: the number of the message of the same subject that it follows.
pub(crate) const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The JetStream stream does not exist: a restart has lost it.
    Missing,
    /// The server, the account or the stream has no room.
    Full(String),
    /// The message is larger than the server accepts.
    TooLarge,
    /// No answer, or a refusal that may be temporary.
    Unavailable(String),
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing => Self::unavailable("JetStream has lost the streams of the log"),
            Failure::Full(reason) => Self::unavailable(format!("JetStream has no room: {reason}")),
            Failure::TooLarge => Self::InvalidRecord {
                what: "more bytes than the NATS server accepts",
                offset: 0,
            },
            Failure::Unavailable(reason) => Self::Unavailable { reason },
        }
    }
}

/// A message of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    /// Its number in the JetStream stream.
    pub(crate) sequence: u64,
    /// When it was stored, by the clock of the server.
    pub(crate) time: SystemTime,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl From<StreamMessage> for Stored {
    fn from(message: StreamMessage) -> Self {
        Self {
            subject: message.subject.to_string(),
            sequence: message.sequence,
            time: message.time.into(),
            headers: message.headers,
            payload: message.payload,
        }
    }
}

/// A message to be stored.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    subject: String,
    headers: HeaderMap,
    payload: Bytes,
}

impl Draft {
    pub(crate) fn new(subject: String, payload: impl Into<Bytes>) -> Self {
        Self {
            subject,
            headers: HeaderMap::new(),
            payload: payload.into(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.insert(name, value.to_string());
        self
    }

    /// It is stored only if this is the number of the last message of its subject; 0 if there must be none.
    pub(crate) fn after(self, sequence: u64) -> Self {
        self.header(EXPECTED_SEQUENCE, sequence)
    }

    /// For a while, the server stores only one message with this id.
    pub(crate) fn message_id(self, id: impl ToString) -> Self {
        self.header("Nats-Msg-Id", id)
    }
}

/// What the server has done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    /// It is stored under this number.
    Stored(u64),
    /// The server has seen its id. That does not say that it is still stored.
    Duplicate,
    /// It does not follow the last message of its subject.
    Conflict,
}

/// Which stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    /// That of the records.
    Log,
    /// That of the values.
    Values,
}

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) connection: Connection,
    pub(crate) context: Context,
    configs: [Config; 2],
    is_replicated: AtomicBool,
}

impl Api {
    pub(crate) fn new(connection: Connection, domain: Option<&str>, configs: [Config; 2]) -> Self {
        let builder = ContextBuilder::new();
        let client = connection.client.clone();
        let context = match domain {
            Some(domain) => builder.domain(domain).timeout(ANSWER).build(client),
            None => builder.timeout(ANSWER).build(client),
        };
        Self {
            connection,
            context,
            configs,
            is_replicated: AtomicBool::new(false),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    fn config(&self, store: Store) -> &Config {
        let [log, values] = &self.configs;
        match store {
            Store::Log => log,
            Store::Values => values,
        }
    }

    /// A handle that requests nothing.
    pub(crate) async fn stream(&self, store: Store) -> Result<Stream<()>, Failure> {
        let name = &self.config(store).name;
        let stream = self.context.get_stream_no_info(name).await;
        stream.map_err(|error| Failure::Unavailable(error.to_string()))
    }

    /// Fails unless the account may use JetStream.
    pub(crate) async fn check_jetstream(&self) -> Result<(), NatsError> {
        let none = |reason| Err(NatsError::NoJetStream { reason });
        // The client's own type requires fields that a server 2.9 does not send.
        let answer: Result<serde_json::Value, _> = self.context.request("INFO", &()).await;
        match answer.map(|answer| answer.get("error").map(error_text)) {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => none(reason),
            Err(error) => none(error.to_string()),
        }
    }

    /// Creates the streams that do not exist. Returns what an operator should know about the others.
    pub(crate) async fn ensure_streams(&self) -> Result<Vec<String>, NatsError> {
        let mut warnings = Vec::new();
        for config in &self.configs {
            let found = streams::ensure(&self.context, config).await?;
            if found.replicas > 1 {
                self.is_replicated.store(true, Ordering::Relaxed);
            }
            warnings.extend(found.warnings);
        }
        Ok(warnings)
    }

    /// Creates the streams that a restart of the server has lost. Boxed, because its state is large, and rarely needed.
    pub(crate) fn create_streams(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.ensure_streams()
            .map_ok(drop)
            .map_err(|error| Failure::Unavailable(error.to_string()))
            .boxed()
    }

    /// Stores a message.
    pub(crate) async fn publish(&self, draft: Draft) -> Result<Ack, Failure> {
        self.connection.ready().await?;
        let request = Request::new()
            .headers(draft.headers)
            .payload(draft.payload)
            .timeout(Some(ANSWER));
        let answer = self.client().send_request(draft.subject, request).await;
        let answer = answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => Failure::Missing,
            RequestErrorKind::TimedOut => {
                Failure::Unavailable("no acknowledgement within a second".to_owned())
            }
            RequestErrorKind::MaxPayloadExceeded => Failure::TooLarge,
            _ => Failure::Unavailable(error.to_string()),
        })?;
        match serde_json::from_slice(&answer.payload) {
            Ok(Response::Ok(PublishAck {
                duplicate: true, ..
            })) => Ok(Ack::Duplicate),
            Ok(Response::Ok(ack)) => Ok(Ack::Stored(ack.sequence)),
            Ok(Response::Err { error }) => refusal(&error),
            Err(_) => Err(Failure::Unavailable(
                "the acknowledgement is not JSON".to_owned(),
            )),
        }
    }

    /// Stores a message, and creates the streams first if they are lost.
    pub(crate) async fn publish_anew(&self, draft: Draft) -> Result<Ack, Failure> {
        match self.publish(draft.clone()).await {
            Err(Failure::Missing) => {
                self.create_streams().await?;
                self.publish(draft).await
            }
            result => result,
        }
    }

    /// The last message of a subject.
    pub(crate) async fn last(
        &self,
        store: Store,
        subject: String,
    ) -> Result<Option<Stored>, Failure> {
        match self.read_last(store, subject.clone()).await {
            Err(Failure::Missing) => {
                // A cluster without a leader answers in the same way: only a stream that can be created is known to be empty.
                self.create_streams().await?;
                self.read_last(store, subject).await
            }
            result => result,
        }
    }

    async fn read_last(&self, store: Store, subject: String) -> Result<Option<Stored>, Failure> {
        self.connection.ready().await?;
        let stream = self.stream(store).await?;
        if self.reads_leader() {
            let request = stream.raw_message_builder().last_by_subject(subject);
            return by_leader(request.send().await.map_err(|error| error.kind()));
        }
        let request = stream.direct_get_builder().last_by_subject(subject);
        directly(request.send().await.map_err(|error| error.kind()))
    }

    /// The first message of a subject whose number is at least `sequence`.
    pub(crate) async fn next(
        &self,
        store: Store,
        subject: String,
        sequence: u64,
    ) -> Result<Option<Stored>, Failure> {
        self.connection.ready().await?;
        let stream = self.stream(store).await?;
        let sequence = sequence.max(1);
        if self.reads_leader() {
            let request = stream.raw_message_builder().sequence(sequence);
            let request = request.next_by_subject(subject);
            return by_leader(request.send().await.map_err(|error| error.kind()));
        }
        let request = stream.direct_get_builder().sequence(sequence);
        let request = request.next_by_subject(subject);
        directly(request.send().await.map_err(|error| error.kind()))
    }

    /// Removes the messages of a subject but the last `keep`.
    pub(crate) async fn purge(
        &self,
        store: Store,
        subject: String,
        keep: u64,
    ) -> Result<(), Failure> {
        self.connection.ready().await?;
        let stream = self.stream(store).await?;
        let purged = stream.purge().filter(subject).keep(keep).await;
        purged
            .map(drop)
            .map_err(|error| Failure::Unavailable(error.to_string()))
    }

    /// Removes the messages of a subject of the log whose number is less than `sequence`.
    pub(crate) async fn purge_before(&self, subject: String, sequence: u64) -> Result<(), Failure> {
        self.connection.ready().await?;
        let stream = self.stream(Store::Log).await?;
        let purged = stream.purge().filter(subject).sequence(sequence).await;
        purged
            .map(drop)
            .map_err(|error| Failure::Unavailable(error.to_string()))
    }

    /// With several replicas, direct access may reach one that is late.
    fn reads_leader(&self) -> bool {
        self.is_replicated.load(Ordering::Relaxed)
    }
}

fn error_text(error: &serde_json::Value) -> String {
    let description = error.get("description").and_then(|text| text.as_str());
    description.unwrap_or("an error").to_owned()
}

/// What an error of the server says about a message that was to be stored.
fn refusal(error: &async_nats::jetstream::Error) -> Result<Ack, Failure> {
    let code = error.error_code();
    let reason = || error.to_string();
    if code == ErrorCode::STREAM_WRONG_LAST_SEQUENCE
        || code == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT
    {
        Ok(Ack::Conflict)
    } else if code == ErrorCode::STREAM_NOT_FOUND {
        Err(Failure::Missing)
    } else if [
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::STREAM_STORE_FAILED,
    ]
    .contains(&code)
    {
        Err(Failure::Full(reason()))
    } else if code == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM {
        Err(Failure::TooLarge)
    } else {
        Err(Failure::Unavailable(reason()))
    }
}

fn directly(answer: Result<StreamMessage, DirectGetErrorKind>) -> Result<Option<Stored>, Failure> {
    match answer {
        Ok(message) => Ok(Some(message.into())),
        Err(DirectGetErrorKind::NotFound) => Ok(None),
        Err(DirectGetErrorKind::ErrorResponse(StatusCode::NO_RESPONDERS, _)) => {
            Err(Failure::Missing)
        }
        Err(error) => Err(Failure::Unavailable(error.to_string())),
    }
}

fn by_leader(
    answer: Result<StreamMessage, RawMessageErrorKind>,
) -> Result<Option<Stored>, Failure> {
    match answer {
        Ok(message) => Ok(Some(message.into())),
        Err(RawMessageErrorKind::NoMessageFound) => Ok(None),
        Err(RawMessageErrorKind::JetStream(error))
            if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
        {
            Err(Failure::Missing)
        }
        Err(error) => Err(Failure::Unavailable(error.to_string())),
    }
}
