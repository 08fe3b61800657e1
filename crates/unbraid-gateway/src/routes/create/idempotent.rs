//! Requests with an idempotency key: the first one does the work, and the others attach to its stream.

use std::time::Duration;

use axum::{http::HeaderMap, response::IntoResponse};
use tokio::time::{Instant, sleep};
use unbraid_log::{Claim, ClaimKey, LogStatus, StreamId};

use super::{
    Create,
    attach::{Attach, Form, mark_replayed},
    held_claim::{HeldClaim, Lost},
    new_id,
    open::{Opening, release, release_later, start_later},
};
use crate::{
    api_error::ApiError,
    auth::keys::fingerprint,
    fan_out::Launched,
    gateway::Gateway,
    idempotency::{Outcome, PendingRequest},
    limits::FAR,
    routes::Answer,
    streams::ReaderPermit,
};

/// How often a request that another gateway has not answered is checked: less and less.
const RECHECK: Duration = Duration::from_millis(50);
const MAX_RECHECK: Duration = Duration::from_millis(250);

/// How long the first reader's place is held for the client that opened the stream, so that it does not count as orphaned
/// between its opening and its first reader.
const ATTACH_TIME: Duration = Duration::from_secs(1);

impl Create {
    pub(super) async fn answer_idempotent(self) -> Answer {
        let key = self.options.idempotency_key.clone().unwrap_or_default();
        let fingerprint = fingerprint(self.launch.request.body());
        let claim = ClaimKey::new(self.principal.name(), self.endpoint, &key, fingerprint);
        let deadline = Instant::now() + self.gateway.inner.options.first_byte_timeout.min(FAR);
        let mut pause = RECHECK;
        loop {
            // The request is entered before its claim can be found by another.
            let id = new_id()?;
            let pending = self.gateway.inner.pending.enter(&id);
            let begun = Instant::now();
            let claimed = match self.gateway.inner.store.claim(&claim, &id).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    // The claim may have been stored. Left alone, it would keep the key from being used.
                    tokio::spawn(release_later(self.gateway.clone(), claim, id));
                    return Err(self.gateway.inner.views.failed(error));
                }
            };
            self.gateway.inner.views.answered();
            let held = match claimed {
                Claim::Acquired => {
                    let held =
                        HeldClaim::new(self.gateway.clone(), claim.clone(), id.clone(), begun);
                    match self.lead(id, held, claim.clone(), pending).await {
                        Some(answer) => return answer,
                        // Another request holds the key now.
                        None => continue,
                    }
                }
                Claim::Held { fingerprint, .. } if fingerprint != claim.fingerprint => {
                    return Err(ApiError::IDEMPOTENCY_KEY_REUSED);
                }
                Claim::Held { id, .. } => id,
            };
            drop(pending);
            if let Some(answer) = self.follow(held).await {
                return answer;
            }
            // The other request was refused meanwhile, or waits in another gateway.
            if Instant::now() >= deadline {
                return Err(ApiError::UPSTREAM_TIMEOUT);
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_RECHECK);
        }
    }

    /// Attaches to the stream of an earlier request; `None` if there is none yet.
    async fn follow(&self, id: StreamId) -> Option<Answer> {
        match self.gateway.inner.pending.wait(&id).await {
            Some(Outcome::Opened(_)) => Some(self.attach(id).await),
            Some(Outcome::Lost) => None,
            Some(outcome) => Some(replay(outcome)),
            // The log may not have it yet.
            None if self.gateway.inner.streams.local(&id).is_some() => Some(self.attach(id).await),
            None => match self.gateway.inner.store.status(&id).await {
                Ok(LogStatus::Running { .. } | LogStatus::Ended { .. }) => {
                    Some(self.attach(id).await)
                }
                Ok(_) => None,
                Err(error) => Some(Err(self.gateway.inner.views.failed(error))),
            },
        }
    }

    async fn attach(&self, id: StreamId) -> Answer {
        let attach = Attach {
            gateway: &self.gateway,
            id,
            form: self.form(),
            headers: HeaderMap::new(),
            replayed: true,
            reader: None,
        };
        attach.answer().await
    }

    /// Does the work. It continues if the client leaves, because others may wait for it, and the client may come back. `None`
    /// if another request holds the key now.
    async fn lead(
        &self,
        id: StreamId,
        held: HeldClaim,
        claim: ClaimKey,
        pending: PendingRequest,
    ) -> Option<Answer> {
        let permit = match self.reserve_kept().await {
            Ok(permit) => permit,
            Err(error) => {
                release(self.gateway.clone(), claim, id).await;
                pending.finish(Outcome::Failed(error));
                return Some(Err(error));
            }
        };
        let form = self.form();
        let opening = Opening {
            claim: Some(claim.clone()),
            ..self.opening(id.clone(), permit)
        };
        let leader = Leader {
            gateway: self.gateway.clone(),
            claim,
            id: id.clone(),
            at_once: self.options.responds_async,
        };
        let outcome = tokio::spawn(leader.run(opening, held, pending)).await;
        let Ok(outcome) = outcome else {
            return Some(Err(ApiError::INTERNAL));
        };
        Some(match outcome {
            (Outcome::Lost, _) => return None,
            (Outcome::Opened(headers), reader) => {
                let attach = Attach {
                    gateway: &self.gateway,
                    id,
                    form: match form {
                        Form::Events(_) => Form::Events(None),
                        form => form,
                    },
                    headers,
                    replayed: false,
                    reader,
                };
                attach.answer().await
            }
            (outcome, _) => answer_of(outcome),
        })
    }
}

/// The request that does the work.
struct Leader {
    gateway: Gateway,
    claim: ClaimKey,
    id: StreamId,
    /// Whether the stream is opened before the request is answered.
    at_once: bool,
}

impl Leader {
    /// The result, and the first reader's place if the client still waits for it.
    async fn run(
        self,
        opening: Opening,
        held: HeldClaim,
        pending: PendingRequest,
    ) -> (Outcome, Option<ReaderPermit>) {
        let (outcome, reader) = match self.work(opening, held).await {
            Ok(Ok((outcome, reader))) => (outcome, reader),
            Ok(Err(Lost)) => (Outcome::Lost, None),
            Err(error) => (Outcome::Failed(error), None),
        };
        if matches!(outcome, Outcome::Lost) {
            tracing::warn!(id = %self.id, "another gateway has taken over a request: this one was silent for a lease");
        } else if !matches!(outcome, Outcome::Opened(_)) {
            // Before the result is known, so that a client that tries again finds the key free.
            release(self.gateway.clone(), self.claim, self.id.clone()).await;
        } else if let Ok(second) = self.gateway.inner.streams.connect(&self.id) {
            tokio::spawn(async move {
                sleep(ATTACH_TIME).await;
                drop(second);
            });
        }
        pending.finish(outcome.clone());
        (outcome, reader)
    }

    async fn work(&self, opening: Opening, mut held: HeldClaim) -> Result<Worked, ApiError> {
        // Before the provider is asked: this process may have been suspended since its claim.
        let confirmed = held.confirm().await;
        if let Err(Lost) = confirmed.map_err(|error| self.gateway.inner.views.failed(error))? {
            return Ok(Err(Lost));
        }
        let (headers, start) = if self.at_once {
            (HeaderMap::new(), start_later(opening.launch.clone()))
        } else {
            let launched = match held.during(opening.launch.send()).await {
                Ok(launched) => launched?,
                Err(Lost) => return Ok(Err(Lost)),
            };
            match launched {
                Launched::Whole(whole) => {
                    let whole = match held.during(whole.buffered()).await {
                        Ok(whole) => whole?,
                        Err(Lost) => return Ok(Err(Lost)),
                    };
                    return Ok(Ok((Outcome::Whole(whole), None)));
                }
                Launched::Stream { headers, started } => {
                    // And before its answer becomes a stream. If the log is down now, the stream begins degraded.
                    if let Ok(Err(Lost)) = held.confirm().await {
                        return Ok(Err(Lost));
                    }
                    let start = Box::pin(std::future::ready(Ok(started)));
                    (headers, start as crate::generation::Start)
                }
            }
        };
        let reader = opening.open(&self.gateway, start).await?;
        held.keep_until_written();
        Ok(Ok((Outcome::Opened(headers), Some(reader))))
    }
}

/// The result of the work, and the first reader's place.
type Worked = Result<(Outcome, Option<ReaderPermit>), Lost>;

fn answer_of(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Whole(whole) => Ok(whole.into_response()),
        Outcome::Failed(error) => Err(error),
        Outcome::Opened(_) | Outcome::Lost => Err(ApiError::INTERNAL),
    }
}

fn replay(outcome: Outcome) -> Answer {
    let mut response = answer_of(outcome).unwrap_or_else(IntoResponse::into_response);
    mark_replayed(&mut response);
    Ok(response)
}
