//! The task of a recording: reads the body, and carries out commands.

use std::{future::poll_fn, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use serde_json::json;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, sleep_until, timeout},
};
use unbraid::BoxError;
use unbraid_core::{
    ChoiceIndex, Limit, LimitExceeded, StreamError, TransportError, limits::MAX_BYTES_AFTER_DONE,
};

use super::Recorder;
use crate::{
    Command, End, LogError, Producer, RecordBuilder, Seq, StreamEnd,
    library::text::ParsedChunks,
    tracker::{Identity, Role, Tracker},
};

/// A silence of this length ends the choices that have a finish reason, as in the library.
const IDLE_END: Duration = Duration::from_millis(250);

/// For how long the rest of a body is read after the end mark, so that the connection can be reused, as in the library.
const DRAIN_TIME: Duration = Duration::from_millis(100);

/// What an item counts at least towards [`MAX_BYTES_AFTER_DONE`].
const DRAIN_ITEM: usize = 64;

type Body<B> = BoxStream<'static, Result<B, BoxError>>;

pub(super) struct RecordingTask<B> {
    body: Option<Body<B>>,
    producer: Producer,
    tracker: Tracker<ParsedChunks>,
    identity: Identity,
    events: RecordBuilder,
    bytes: u64,
    max_bytes: u64,
    /// The number of choices that were requested.
    expected: Option<u32>,
    commands: Commands,
    last_byte: Instant,
    /// The end, if it does not follow from the body.
    end: Option<End>,
}

/// The commands of this process's handles, and those of other processes.
pub(super) struct Commands {
    pub(super) own: UnboundedReceiver<Command>,
    pub(super) log: BoxStream<'static, Command>,
}

/// Why the task woke up.
enum Wakeup<B> {
    Command(Command),
    Read(Option<Result<B, BoxError>>),
    Idle,
    LogFailed(LogError),
}

impl<B: AsRef<[u8]> + Send + 'static> RecordingTask<B> {
    pub(super) fn new(
        recorder: &Recorder,
        commands: Commands,
        body: Body<B>,
        producer: Producer,
    ) -> Self {
        let is_text = recorder.meta.endpoint.ends_with("/completions")
            && !recorder.meta.endpoint.ends_with("/chat/completions");
        let endpoint = if is_text {
            "/v1/completions"
        } else {
            "/v1/chat/completions"
        };
        Self {
            commands,
            body: Some(body),
            producer,
            tracker: Tracker::new(Role::Whole, recorder.max_choices),
            identity: Identity::new(endpoint, recorder.meta.created, recorder.meta.model.clone()),
            events: RecordBuilder::new(Seq(1)),
            bytes: 0,
            max_bytes: recorder.max_bytes,
            expected: recorder.meta.n,
            last_byte: Instant::now(),
            end: None,
        }
    }

    /// Reads the body to its end, and seals the log. Dropped before, it ends the stream as one of a lost producer.
    pub(super) async fn run(mut self) {
        while self.body.is_some() {
            let wakeup = self.next().await;
            self.handle(wakeup);
            self.close_if_cancelled();
            self.flush();
            // A body that is always ready must not starve the other tasks.
            tokio::task::consume_budget().await;
        }
        self.producer.finish(self.stream_end());
        self.producer.sealed().await;
    }

    async fn next(&mut self) -> Wakeup<B> {
        let Self {
            body,
            producer,
            tracker,
            commands,
            last_byte,
            ..
        } = self;
        let read = async {
            match body {
                Some(body) => body.next().await,
                None => None,
            }
        };
        let has_finished = tracker.has_finished_choices();
        // Commands come first: a body that is always ready must not keep a cancel waiting.
        tokio::select! {
            biased;
            Some(command) = commands.own.recv() => Wakeup::Command(command),
            Some(command) = commands.log.next() => Wakeup::Command(command),
            error = poll_fn(|cx| producer.poll_failed(cx)) => Wakeup::LogFailed(error),
            read = read => Wakeup::Read(read),
            () = sleep_until(*last_byte + IDLE_END), if has_finished => Wakeup::Idle,
        }
    }

    fn handle(&mut self, wakeup: Wakeup<B>) {
        match wakeup {
            Wakeup::Command(command) => self.handle_command(command),
            Wakeup::Read(Some(Ok(bytes))) => self.read(bytes.as_ref()),
            Wakeup::Read(Some(Err(error))) => {
                let error = match error.downcast::<StreamError>() {
                    Ok(error) => *error,
                    Err(error) => {
                        let read = self.tracker.bytes();
                        StreamError::Transport(TransportError::new(read, error).into())
                    }
                };
                self.finish(Some(error));
            }
            Wakeup::Read(None) => self.finish(None),
            Wakeup::Idle => {
                self.tracker.handle_idle(&self.identity, &mut self.events);
                // Until the next byte nothing else can end.
                self.last_byte = Instant::now();
            }
            Wakeup::LogFailed(error) => {
                // The log has its end, or nobody can read it: to generate more is of no use.
                let end = match error {
                    LogError::Sealed | LogError::Fenced { .. } => End::ProducerLost,
                    _ => End::Lost,
                };
                self.abort(end, StreamError::Lost);
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        self.last_byte = Instant::now();
        self.tracker
            .feed(bytes, &mut self.identity, &mut self.events);
        if self.bytes + self.events.bytes() as u64 > self.max_bytes {
            let error = LimitExceeded::new(Limit::CompletionBytes, self.max_bytes);
            return self.abort(End::LimitExceeded, StreamError::Limit(error));
        }
        if self.tracker.closed().is_some() {
            self.finish_reading();
        }
    }

    /// The stream has closed before its body has ended.
    fn finish_reading(&mut self) {
        let body = self.body.take().filter(|_| self.tracker.is_done());
        if let Some(body) = body {
            tokio::spawn(async { timeout(DRAIN_TIME, drain(body)).await });
        }
    }

    fn finish(&mut self, error: Option<StreamError>) {
        self.body = None;
        self.tracker
            .finish(error, &mut self.identity, &mut self.events);
    }

    /// Ends every open choice, and drops the body.
    fn abort(&mut self, end: End, error: StreamError) {
        self.end = Some(end);
        self.finish(Some(error));
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Cancel(Some(choice)) => self.cancel(choice),
            Command::Cancel(None) => self.abort(End::Cancelled, StreamError::Cancelled),
            // A recording does not depend on its readers.
            Command::Read => {}
        }
    }

    fn cancel(&mut self, choice: ChoiceIndex) {
        let is_unknown = self.expected.is_some_and(|n| choice.0 >= n);
        let choices = self.tracker.choices();
        if is_unknown && !choices.iter().any(|known| known.index == choice) {
            return;
        }
        self.tracker
            .cancel(choice, &self.identity, &mut self.events);
    }

    /// Drops the body if a choice was cancelled and no choice is open any more.
    fn close_if_cancelled(&mut self) {
        let choices = self.tracker.choices();
        let is_cancelled = |end| end == Some(End::Cancelled);
        let any_cancelled = choices.iter().any(|choice| is_cancelled(choice.end));
        let all_ended = choices.iter().all(|choice| choice.end.is_some());
        let all_appeared = self.expected.is_some_and(|n| choices.len() >= n as usize);
        if self.body.is_some() && any_cancelled && all_ended && all_appeared {
            self.abort(End::Cancelled, StreamError::Cancelled);
        }
    }

    fn flush(&mut self) {
        while let Some(record) = self.events.take() {
            self.bytes += record.encoded().len() as u64;
            self.producer.append(record);
        }
    }

    fn stream_end(&self) -> StreamEnd {
        let end = self.end.unwrap_or_else(|| self.tracker.end());
        let message = "the answer is incomplete";
        let error = json!({ "message": message, "type": "stream_error", "param": null, "code": end.as_str() });
        let usage = self.tracker.usage().map(|usage| usage.to_string());
        StreamEnd::new(end)
            .with_error(end.is_error().then(|| error.to_string()))
            .with_usage(usage)
    }
}

/// Reads the rest of a body, which is usually only its end.
async fn drain<B: AsRef<[u8]>>(mut body: Body<B>) {
    let mut read = 0;
    while let Some(Ok(bytes)) = body.next().await {
        // A body that is always ready with nothing must come to an end, too: it never lets the timer run.
        read += bytes.as_ref().len().max(DRAIN_ITEM);
        if read > MAX_BYTES_AFTER_DONE {
            return;
        }
    }
}
