//! A client that creates or reads a stream, drops its connection, and resumes at another gateway.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hyper::Method;
use tokio::time::{Instant, sleep, timeout_at};
use unbraid_testkit::cut::Rng;

use super::{
    attempts::Outcome,
    checker::{Finish, Got},
    client::{self, Failure, Response},
    gateways::Gateways,
    history::History,
    streams::Received,
};

/// What all clients of a round share.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) gateways: Arc<Gateways>,
    pub(super) history: Arc<History>,
    /// Whether each gateway has each stream.
    pub(super) is_shared: bool,
    /// How long a stream may be unknown before a client gives it up, while nothing is wrong with the log.
    pub(super) patience: Duration,
}

/// One client.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) clients: Arc<Clients>,
    pub(super) received: Arc<Received>,
    pub(super) rng: Rng,
    pub(super) cursor: u64,
}

/// When a client drops a connection by itself.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Stay,
    After(Duration),
    Events(usize),
}

/// How long a client with an idempotency key tries to create a stream.
const CREATE_TIME: Duration = Duration::from_secs(15);

impl Reader {
    /// Creates the stream, and reads it to its end.
    pub(super) async fn create(mut self) {
        let stream = Arc::clone(&self.received.stream);
        let key = self.rng.chance(0.5);
        let deadline = Instant::now() + CREATE_TIME;
        let mut headers = Vec::new();
        if key {
            headers.push(("idempotency-key", format!("key-{}", stream.answer.number)));
        }
        let first = loop {
            let slot = self.rng.below(self.clients.gateways.len());
            self.begin(slot);
            let address = self.clients.gateways.address(slot);
            let sent = client::send(
                address,
                Method::POST,
                "/v1/chat/completions",
                &headers,
                stream.answer.request(),
            )
            .await;
            match sent {
                Ok(mut response) if response.status == 200 => match response.stream_id.take() {
                    Some(id) => {
                        stream.set_created(id, slot);
                        break Some((response, slot));
                    }
                    None => break None,
                },
                // Without a key, a request that may have arrived must not be sent again.
                Err(Failure::Unknown) if !key => break None,
                Ok(response) => self.ended(Outcome::Status(response.status)),
                Err(failure) => self.ended(Outcome::Failed(failure)),
            }
            if Instant::now() >= deadline {
                break None;
            }
            self.pause().await;
        };
        let Some((response, slot)) = first else {
            stream.set_failed();
            self.received.update(|state| state.is_unborn = true);
            return;
        };
        if !self.events(response, slot).await {
            self.resume().await;
        }
    }

    /// Reads a stream that another client creates.
    pub(super) async fn read(mut self) {
        if !self.received.stream.created().await {
            self.received.update(|state| state.is_unborn = true);
            return;
        }
        sleep(Duration::from_millis(self.rng.below(3_000) as u64)).await;
        self.resume().await;
    }

    async fn pause(&mut self) {
        sleep(Duration::from_millis(20 + self.rng.below(250) as u64)).await;
    }

    fn slot(&mut self) -> usize {
        match self.clients.is_shared {
            true => self.rng.below(self.clients.gateways.len()),
            false => self.received.stream.home(),
        }
    }

    /// Reads on, at one gateway after the other.
    pub(super) async fn resume(&mut self) {
        self.received.update(|state| state.is_reading = true);
        let mut unknown_since = None;
        loop {
            let slot = self.slot();
            self.begin(slot);
            let status = match self.connect(slot).await {
                Ok(response) if response.status == 200 => {
                    unknown_since = None;
                    if self.events(response, slot).await {
                        return;
                    }
                    self.pause().await;
                    continue;
                }
                Ok(response) => {
                    self.ended(Outcome::Status(response.status));
                    Some(response.status)
                }
                Err(failure) => {
                    self.ended(Outcome::Failed(failure));
                    None
                }
            };
            match status {
                Some(204) => return self.received.finish(Finish::NothingLeft),
                Some(410) => return self.received.finish(Finish::Gone(410)),
                Some(404) if self.clients.history.is_quiet(slot) => {
                    // It has an answer, and does not hang. It gives the producer the time to write the stream again.
                    self.received.update(|state| state.is_reading = false);
                    let since = *unknown_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.clients.patience {
                        return self.received.finish(Finish::Gone(404));
                    }
                }
                _ => unknown_since = None,
            }
            self.pause().await;
        }
    }

    fn begin(&self, slot: usize) {
        self.received.gateway.store(slot, Ordering::Relaxed);
        self.received.update(|state| state.attempts.begin(slot));
    }

    fn ended(&self, outcome: Outcome) {
        self.received.update(|state| state.attempts.end(outcome));
    }

    async fn connect(&self, slot: usize) -> Result<Response, Failure> {
        let id = self.received.stream.id().unwrap_or_default();
        let path = format!("/v1/streams/{id}/{}", self.received.view.path());
        let mut headers = Vec::new();
        if self.cursor > 0 {
            headers.push(("last-event-id", self.cursor.to_string()));
        }
        client::send(
            self.clients.gateways.address(slot),
            Method::GET,
            &path,
            &headers,
            String::new(),
        )
        .await
    }

    /// Reads events until the connection ends, or until this client drops it. Returns whether the view has ended.
    async fn events(&mut self, mut response: Response, slot: usize) -> bool {
        let connection = self.received.update(|state| {
            state.is_reading = true;
            state.connections += 1;
            state.connections - 1
        });
        let mut plan = self.plan();
        let far = Instant::now() + Duration::from_secs(3600);
        let deadline = match plan {
            Plan::After(time) => Instant::now() + time,
            Plan::Stay | Plan::Events(_) => far,
        };
        let mut has_ended = false;
        let mut events = 0;
        let stop = loop {
            let event = match timeout_at(deadline, response.next()).await {
                Ok(Ok(event)) => event,
                Err(_) => break None,
                Ok(Err(stop)) => break Some(stop),
            };
            events += 1;
            self.cursor = event.id.unwrap_or(self.cursor);
            has_ended |= is_last(&event.data);
            let got = Got {
                connection,
                gateway: slot,
                id: event.id,
                data: event.data,
            };
            self.received.update(|state| state.got.push(got));
            // After the last event the client waits until the gateway closes, to see whether anything follows.
            if let (Plan::Events(left), false) = (&mut plan, has_ended) {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    break None;
                }
            }
        };
        self.ended(Outcome::Read { events, stop });
        if has_ended {
            self.received.finish(Finish::Ended);
        }
        has_ended
    }

    fn plan(&mut self) -> Plan {
        match self.rng.below(10) {
            0..3 => Plan::Stay,
            3..7 => Plan::After(Duration::from_millis(self.rng.below(2_000) as u64)),
            _ => Plan::Events(1 + self.rng.below(12)),
        }
    }
}

/// Whether a client that gets this event does not connect again.
fn is_last(data: &str) -> bool {
    data == "[DONE]" || data.starts_with(r#"{"error""#)
}
