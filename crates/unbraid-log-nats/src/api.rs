//! The calls to JetStream, each with one typed outcome.

mod check;
mod message;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_nats::{
    Client, Request, RequestErrorKind, StatusCode,
    jetstream::{
        Context, ErrorCode,
        context::{self, ContextBuilder},
        message::StreamMessage,
        publish::PublishAck,
        response::Response,
        stream::{Config, DirectGetErrorKind, RawMessageErrorKind, Stream},
    },
};
use futures::{FutureExt, future::BoxFuture};
use tokio::time::Instant;

use crate::{NatsError, connection::Connection, streams};
use check::Check;
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
    checks: [Check; 2],
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
            checks: Default::default(),
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
            Err(error) if error.kind() == context::RequestErrorKind::TimedOut => {
                Err(NatsError::Silent)
            }
            Err(error) => none(error.to_string()),
        }
    }

    fn check(&self, store: Store) -> &Check {
        let [log, values] = &self.checks;
        match store {
            Store::Log => log,
            Store::Values => values,
        }
    }

    /// Creates a stream unless it exists. Returns what an operator should know about an existing one.
    pub(crate) async fn ensure_stream(&self, store: Store) -> Result<Vec<String>, NatsError> {
        let found = streams::ensure(&self.context, self.config(store)).await?;
        if found.replicas > 1 {
            self.is_replicated.store(true, Ordering::Relaxed);
        }
        Ok(found.warnings)
    }

    /// Waits until the server is connected, and creates the stream if it may be lost.
    ///
    /// This is done once for each connection, because a server without the stream does not answer a direct request at all. The
    /// other stream is not looked at: one of them may have no leader.
    async fn ready(&self, store: Store) -> Result<(), Failure> {
        self.connection.ready().await?;
        let epoch = self.connection.epoch();
        let check = self.check(store);
        check.once(epoch, || self.create_stream(store)).await
    }

    /// Notes an answer, or that there was none: then the stream may be lost.
    fn note<T>(&self, store: Store, result: Result<T, Failure>) -> Result<T, Failure> {
        match &result {
            Ok(_) => self.connection.answered(),
            Err(Failure::TimedOut) => self.check(store).repeat(),
            Err(_) => {}
        }
        result
    }

    /// Creates a stream that a restart of the server has lost. Boxed, because its state is large, and rarely needed.
    pub(crate) fn create_stream(&self, store: Store) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            let ensured = self.ensure_stream(store).await;
            ensured.map_err(|error| Failure::Unavailable(error.to_string()))?;
            self.connection.answered();
            Ok(())
        }
        .boxed()
    }

    /// Stores a message.
    pub(crate) async fn publish(&self, store: Store, draft: Draft) -> Result<Ack, Failure> {
        self.ready(store).await?;
        let request = Request::new()
            .headers(draft.headers)
            .payload(draft.payload)
            .timeout(Some(ACKNOWLEDGEMENT));
        let publishers = &self.connection.publishers;
        let client = publishers.client();
        // Only on the first connection, which is the one that the readers of this gateway have.
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
        let answer = self.note(store, answer)?;
        match serde_json::from_slice(&answer.payload) {
            Ok(Response::Ok(PublishAck {
                duplicate: true, ..
            })) => Ok(Ack::Duplicate),
            Ok(Response::Ok(ack)) => {
                if let (Store::Values, Some(asked)) = (store, asked) {
                    self.connection.stored_value(asked);
                }
                Ok(Ack::Stored(ack.sequence))
            }
            Ok(Response::Err { error }) => refusal(&error),
            Err(_) => Err(Failure::Unavailable(
                "the acknowledgement is not JSON".to_owned(),
            )),
        }
    }

    /// Sends a message that the server refuses to store, because it is for another stream. One that the user may not send is not
    /// answered.
    pub(crate) async fn publish_nowhere(&self, subject: String) {
        let draft = Draft::new(subject, "").header("Nats-Expected-Stream", "-");
        let request = Request::new().headers(draft.headers).timeout(Some(ANSWER));
        let _refused = self.client().send_request(draft.subject, request).await;
    }

    /// Stores a message, and creates the stream first if it is lost.
    pub(crate) async fn publish_anew(&self, store: Store, draft: Draft) -> Result<Ack, Failure> {
        match self.publish(store, draft.clone()).await {
            Err(Failure::Missing) => {
                self.create_stream(store).await?;
                self.publish(store, draft).await
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
                self.create_stream(store).await?;
                self.read_last(store, subject).await
            }
            result => result,
        }
    }

    async fn read_last(&self, store: Store, subject: String) -> Result<Option<Stored>, Failure> {
        self.ready(store).await?;
        let stream = self.stream(store).await?;
        if self.reads_leader() {
            let request = stream.raw_message_builder().last_by_subject(subject);
            let answer = request.send().await.map_err(|error| error.kind());
            return self.note(store, by_leader(answer));
        }
        let request = stream.direct_get_builder().last_by_subject(subject);
        let answer = request.send().await.map_err(|error| error.kind());
        self.note(store, directly(answer))
    }

    /// The first message of a subject whose number is at least `sequence`.
    pub(crate) async fn next(
        &self,
        store: Store,
        subject: String,
        sequence: u64,
    ) -> Result<Option<Stored>, Failure> {
        self.ready(store).await?;
        let stream = self.stream(store).await?;
        let sequence = sequence.max(1);
        if self.reads_leader() {
            let request = stream.raw_message_builder().sequence(sequence);
            let request = request.next_by_subject(subject);
            let answer = request.send().await.map_err(|error| error.kind());
            return self.note(store, by_leader(answer));
        }
        let request = stream.direct_get_builder().sequence(sequence);
        let request = request.next_by_subject(subject);
        let answer = request.send().await.map_err(|error| error.kind());
        self.note(store, directly(answer))
    }

    /// Removes the messages of a subject but the last `keep`.
    pub(crate) async fn purge(
        &self,
        store: Store,
        subject: String,
        keep: u64,
    ) -> Result<(), Failure> {
        self.ready(store).await?;
        let stream = self.stream(store).await?;
        let purged = stream.purge().filter(subject).keep(keep).await;
        purged
            .map(drop)
            .map_err(|error| Failure::Unavailable(error.to_string()))
    }

    /// Removes the messages of a subject of the log whose number is less than `sequence`.
    pub(crate) async fn purge_before(&self, subject: String, sequence: u64) -> Result<(), Failure> {
        self.ready(Store::Log).await?;
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
    ]
    .contains(&code)
    {
        Err(Failure::Full(reason()))
    } else if code == ErrorCode::STREAM_STORE_FAILED {
        Err(Failure::NotWritten(reason()))
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
