//! The calls to JetStream, each with one typed outcome.

mod message;

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use async_nats::{
    Client, Request, RequestErrorKind, StatusCode,
    jetstream::{
        Context, ErrorCode,
        context::ContextBuilder,
        message::StreamMessage,
        publish::PublishAck,
        response::Response,
        stream::{Config, DirectGetErrorKind, RawMessageErrorKind, Stream},
    },
};
use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use tokio::{sync::Mutex, time::Instant};

use crate::{NatsError, connection::Connection, streams};
pub(crate) use message::{Ack, Draft, EXPECTED_SEQUENCE, Failure, Stored};

/// How long a question may take. Less than a call, so that a question without an answer is noted before the call ends.
pub(crate) const ANSWER: Duration = Duration::from_millis(700);

/// How long the acknowledgement of a message may take.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(1);

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
    /// The connection on which the streams were known to exist.
    checked: AtomicU64,
    check: Mutex<()>,
}

/// No connection has this number.
const UNCHECKED: u64 = u64::MAX;

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
            checked: AtomicU64::new(UNCHECKED),
            check: Mutex::default(),
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

    /// Waits until the server is connected, and creates the streams if they may be lost.
    ///
    /// This is done once for each connection, because a server without the stream does not answer a direct request at all.
    async fn ready(&self) -> Result<(), Failure> {
        self.connection.ready().await?;
        if self.is_checked() {
            return Ok(());
        }
        // Of many callers one asks the server.
        let _one = self.check.lock().await;
        if self.is_checked() {
            return Ok(());
        }
        let epoch = self.connection.epoch();
        self.create_streams().await?;
        self.checked.store(epoch, Ordering::Relaxed);
        Ok(())
    }

    fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed) == self.connection.epoch()
    }

    /// Notes an answer to a question, and when it was sent if that was on the first connection; or that there was none: then
    /// the streams may be lost.
    fn note<T>(&self, asked: Option<Instant>, result: Result<T, Failure>) -> Result<T, Failure> {
        match &result {
            Ok(_) => self.connection.answered(asked),
            Err(Failure::TimedOut) => self.checked.store(UNCHECKED, Ordering::Relaxed),
            Err(_) => {}
        }
        result
    }

    /// Creates the streams that a restart of the server has lost. Boxed, because its state is large, and rarely needed.
    pub(crate) fn create_streams(&self) -> BoxFuture<'_, Result<(), Failure>> {
        let asked = Instant::now();
        self.ensure_streams()
            .map_ok(move |_| self.connection.answered(Some(asked)))
            .map_err(|error| Failure::Unavailable(error.to_string()))
            .boxed()
    }

    /// Stores a message.
    pub(crate) async fn publish(&self, draft: Draft) -> Result<Ack, Failure> {
        self.ready().await?;
        let request = Request::new()
            .headers(draft.headers)
            .payload(draft.payload)
            .timeout(Some(ACKNOWLEDGEMENT));
        let publishers = &self.connection.publishers;
        let client = publishers.client();
        let asked = client.is_none().then(Instant::now);
        let client = client.as_ref().unwrap_or_else(|| self.client());
        let answer = client.send_request(draft.subject, request).await;
        let answer = answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => Failure::Missing,
            RequestErrorKind::TimedOut => Failure::TimedOut,
            RequestErrorKind::MaxPayloadExceeded => Failure::TooLarge,
            _ => {
                publishers.forget();
                Failure::Unavailable(error.to_string())
            }
        });
        let answer = self.note(asked, answer)?;
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
        self.ready().await?;
        let stream = self.stream(store).await?;
        let asked = Some(Instant::now());
        if self.reads_leader() {
            let request = stream.raw_message_builder().last_by_subject(subject);
            let answer = request.send().await.map_err(|error| error.kind());
            return self.note(asked, by_leader(answer));
        }
        let request = stream.direct_get_builder().last_by_subject(subject);
        let answer = request.send().await.map_err(|error| error.kind());
        self.note(asked, directly(answer))
    }

    /// The first message of a subject whose number is at least `sequence`.
    pub(crate) async fn next(
        &self,
        store: Store,
        subject: String,
        sequence: u64,
    ) -> Result<Option<Stored>, Failure> {
        self.ready().await?;
        let stream = self.stream(store).await?;
        let asked = Some(Instant::now());
        let sequence = sequence.max(1);
        if self.reads_leader() {
            let request = stream.raw_message_builder().sequence(sequence);
            let request = request.next_by_subject(subject);
            let answer = request.send().await.map_err(|error| error.kind());
            return self.note(asked, by_leader(answer));
        }
        let request = stream.direct_get_builder().sequence(sequence);
        let request = request.next_by_subject(subject);
        let answer = request.send().await.map_err(|error| error.kind());
        self.note(asked, directly(answer))
    }

    /// Removes the messages of a subject but the last `keep`.
    pub(crate) async fn purge(
        &self,
        store: Store,
        subject: String,
        keep: u64,
    ) -> Result<(), Failure> {
        self.ready().await?;
        let stream = self.stream(store).await?;
        let purged = stream.purge().filter(subject).keep(keep).await;
        purged
            .map(drop)
            .map_err(|error| Failure::Unavailable(error.to_string()))
    }

    /// Removes the messages of a subject of the log whose number is less than `sequence`.
    pub(crate) async fn purge_before(&self, subject: String, sequence: u64) -> Result<(), Failure> {
        self.ready().await?;
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
        Err(DirectGetErrorKind::TimedOut) => Err(Failure::TimedOut),
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
