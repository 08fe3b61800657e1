//! Requests with an idempotency key: the first one does the work, and the others attach to its stream.

use std::time::Duration;

use axum::{http::HeaderMap, response::IntoResponse};
use tokio::time::{Instant, sleep};
use unbraid_log::{Claim, ClaimKey, LogStatus, StreamId};

use super::{
    Create,
    attach::{Attach, Form, mark_replayed},
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
    views::log_error,
};

/// How often a request that another gateway has not answered is checked.
const RECHECK: Duration = Duration::from_millis(50);

/// How long the first reader's place is held for the client that opened the stream, so that it does not count as orphaned
/// between its opening and its first reader.
const ATTACH_TIME: Duration = Duration::from_secs(1);

impl Create {
    pub(super) async fn answer_idempotent(self) -> Answer {
        let key = self.options.idempotency_key.clone().unwrap_or_default();
        let fingerprint = fingerprint(self.launch.request.body());
        let claim = ClaimKey::new(self.principal.name(), self.endpoint, &key, fingerprint);
        let deadline = Instant::now() + self.gateway.inner.options.first_byte_timeout.min(FAR);
        loop {
            // The request is entered before its claim can be found by another.
            let id = new_id()?;
            let pending = self.gateway.inner.pending.enter(&id);
            let claimed = match self.gateway.inner.store.claim(&claim, &id).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    // The claim may have been stored. Left alone, it would keep the key from being used.
                    tokio::spawn(release_later(self.gateway.clone(), claim, id));
                    return Err(log_error(error));
                }
            };
            let held = match claimed {
                Claim::Acquired => return self.lead(id, claim, pending).await,
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
            sleep(RECHECK).await;
        }
    }

    /// Attaches to the stream of an earlier request; `None` if there is none yet.
    async fn follow(&self, id: StreamId) -> Option<Answer> {
        match self.gateway.inner.pending.wait(&id).await {
            Some(Outcome::Opened(_)) => Some(self.attach(id).await),
            Some(outcome) => Some(replay(outcome)),
            None => match self.gateway.inner.store.status(&id).await {
                Ok(LogStatus::Running { .. } | LogStatus::Ended { .. }) => {
                    Some(self.attach(id).await)
                }
                Ok(_) => None,
                Err(error) => Some(Err(log_error(error))),
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

    /// Does the work. It continues if the client leaves, because others may wait for it, and the client may come back.
    async fn lead(self, id: StreamId, claim: ClaimKey, pending: PendingRequest) -> Answer {
        let permit = match self.reserve_kept().await {
            Ok(permit) => permit,
            Err(error) => {
                release(self.gateway.clone(), claim, id).await;
                pending.finish(Outcome::Failed(error));
                return Err(error);
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
        let outcome = tokio::spawn(leader.run(opening, pending)).await;
        match outcome.map_err(|_| ApiError::INTERNAL)? {
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
        }
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
        pending: PendingRequest,
    ) -> (Outcome, Option<ReaderPermit>) {
        let (outcome, reader) = match self.work(opening).await {
            Ok((outcome, reader)) => (outcome, reader),
            Err(error) => (Outcome::Failed(error), None),
        };
        if !matches!(outcome, Outcome::Opened(_)) {
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

    async fn work(&self, opening: Opening) -> Result<(Outcome, Option<ReaderPermit>), ApiError> {
        let (headers, start) = if self.at_once {
            (HeaderMap::new(), start_later(opening.launch.clone()))
        } else {
            match opening.launch.send().await? {
                Launched::Whole(whole) => {
                    let whole = whole.buffered().await?;
                    return Ok((Outcome::Whole(whole), None));
                }
                Launched::Stream { headers, started } => {
                    let start = Box::pin(std::future::ready(Ok(started)));
                    (headers, start as crate::generation::Start)
                }
            }
        };
        let reader = opening.open(&self.gateway, start).await?;
        Ok((Outcome::Opened(headers), Some(reader)))
    }
}

fn answer_of(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Whole(whole) => Ok(whole.into_response()),
        Outcome::Failed(error) => Err(error),
        Outcome::Opened(_) => Err(ApiError::INTERNAL),
    }
}

fn replay(outcome: Outcome) -> Answer {
    let mut response = answer_of(outcome).unwrap_or_else(IntoResponse::into_response);
    mark_replayed(&mut response);
    Ok(response)
}
