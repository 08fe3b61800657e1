//! Requests with an idempotency key: the first one does the work, and the others attach to its stream.

use std::{sync::Arc, time::Duration};

use axum::{http::HeaderMap, response::IntoResponse};
use tokio::time::{Instant, sleep};
use unbraid_log::{Claim, ClaimKey, LogStatus, StreamId};

use super::{
    Create,
    attach::{Attach, mark_replayed},
    held_claim::{HeldClaim, Lost},
    new_id,
    open::{Opening, release, release_later, start_later},
};
use crate::{
    api_error::ApiError,
    auth::keys::fingerprint,
    fan_out::{BufferedAnswer, Launched},
    generation::Started,
    idempotency::{Outcome, PendingRequest},
    routes::Answer,
    streams::ReaderPermit,
};

/// How often a request that another gateway has not answered is checked: less and less.
const RECHECK: Duration = Duration::from_millis(50);
const MAX_RECHECK: Duration = Duration::from_millis(250);

/// How long a place is held for the requests that wait for the one that opened the stream: if its client leaves, the stream does
/// not count as orphaned before they are its readers.
const ATTACH_TIME: Duration = Duration::from_secs(1);

impl Create {
    pub(super) async fn answer_idempotent(self) -> Answer {
        let key = self.options.idempotency_key.clone().unwrap_or_default();
        let fingerprint = fingerprint(self.launch.request.body());
        let claim = ClaimKey::new(self.principal.name(), self.endpoint, &key, fingerprint);
        let deadline = Instant::now() + self.gateway.inner.options.first_byte_timeout;
        let mut pause = RECHECK;
        let create = Arc::new(self);
        loop {
            let id = new_id()?;
            let leader = Leader {
                create: Arc::clone(&create),
                claim: claim.clone(),
                id: id.clone(),
            };
            // In a task of its own, which does not end if the client leaves: the log may have the claim by then, and a key
            // that nobody works for could not be used until the log frees it.
            let Ok(claimed) = tokio::spawn(leader.run()).await else {
                return Err(ApiError::INTERNAL);
            };
            let held = match claimed {
                Claimed::Lost => continue,
                Claimed::Answered(Outcome::Opened(headers), reader) => {
                    let attach = create.attach_to_new(id, headers, reader);
                    drop(create);
                    return attach.answer().await;
                }
                Claimed::Answered(outcome, _) => return answer_of(outcome),
                Claimed::Held { fingerprint, .. } if fingerprint != claim.fingerprint => {
                    return Err(ApiError::IDEMPOTENCY_KEY_REUSED);
                }
                Claimed::Held { id, .. } => id,
            };
            match create.follow(&held).await {
                Some(Followed::Stream) => {
                    let attach = Attach {
                        gateway: create.gateway.clone(),
                        id: held,
                        form: create.form(),
                        headers: HeaderMap::new(),
                        replayed: true,
                        reader: None,
                    };
                    drop(create);
                    return attach.answer().await;
                }
                Some(Followed::Answer(answer)) => return answer,
                None => {}
            }
            // The other request was refused meanwhile, or waits in another gateway.
            if Instant::now() >= deadline {
                return Err(ApiError::UPSTREAM_TIMEOUT);
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_RECHECK);
        }
    }

    /// What the earlier request has become; `None` if that is not known yet.
    async fn follow(&self, id: &StreamId) -> Option<Followed> {
        match self.gateway.inner.pending.wait(id).await {
            Some(Outcome::Opened(_)) => Some(Followed::Stream),
            Some(Outcome::Lost) => None,
            Some(outcome) => Some(Followed::Answer(replay(outcome))),
            // The log may not have it yet.
            None if self.gateway.inner.streams.local(id).is_some() => Some(Followed::Stream),
            None => match self.gateway.inner.store.status(id).await {
                Ok(LogStatus::Running { .. } | LogStatus::Ended { .. }) => Some(Followed::Stream),
                Ok(_) => None,
                Err(error) => {
                    let error = self.gateway.inner.views.failed(error);
                    Some(Followed::Answer(Err(error)))
                }
            },
        }
    }
}

/// What an earlier request with the same key has become.
enum Followed {
    /// A stream, to attach to.
    Stream,
    /// An answer that is not kept.
    Answer(Answer),
}

/// A request that claims its key, and does the work if it gets it. It continues if its client leaves, because others may wait
/// for it, and the client may come back.
struct Leader {
    create: Arc<Create>,
    claim: ClaimKey,
    id: StreamId,
}

/// What became of a claim.
enum Claimed {
    /// The result of the work, and the first reader's place.
    Answered(Outcome, Option<ReaderPermit>),
    /// The work was not finished: another request has taken the key over.
    Lost,
    /// Another request holds the key.
    Held { id: StreamId, fingerprint: [u8; 32] },
}

impl Leader {
    async fn run(self) -> Claimed {
        let gateway = &self.create.gateway;
        if let Err(error) = gateway.inner.views.wait_for_claims().await {
            return Claimed::Answered(Outcome::Failed(error), None);
        }
        // The request is entered before its claim can be found by another.
        let pending = gateway.inner.pending.enter(&self.id);
        let begun = Instant::now();
        let claimed = match gateway.inner.store.claim(&self.claim, &self.id).await {
            Ok(claimed) => claimed,
            Err(error) => {
                // The claim may have been stored. Left alone, it would keep the key from being used.
                tokio::spawn(release_later(
                    Arc::clone(&gateway.inner.store),
                    self.claim,
                    self.id,
                ));
                return Claimed::Answered(Outcome::Failed(gateway.inner.views.failed(error)), None);
            }
        };
        gateway.inner.views.answered();
        match claimed {
            Claim::Acquired => {
                let (claim, id) = (self.claim.clone(), self.id.clone());
                let held = HeldClaim::new(gateway, claim, id, begun);
                self.lead(held, pending).await
            }
            Claim::Held { id, fingerprint } => Claimed::Held { id, fingerprint },
        }
    }

    /// Does the work, and gives the result to those who wait for it.
    async fn lead(self, held: HeldClaim, pending: PendingRequest) -> Claimed {
        let gateway = &self.create.gateway;
        let (outcome, reader) = match self.work(held).await {
            Ok(Ok((outcome, reader))) => (outcome, reader),
            Ok(Err(Lost)) => {
                tracing::warn!(id = %self.id, "another gateway has taken over a request: this one was silent for a lease");
                let _has_waiters = pending.finish(Outcome::Lost);
                return Claimed::Lost;
            }
            Err(error) => (Outcome::Failed(error), None),
        };
        // Before the result is known, so that the stream is not orphaned in between.
        let mut second = None;
        if matches!(outcome, Outcome::Opened(_)) {
            second = gateway.inner.streams.connect(&self.id).ok();
        } else {
            // So that a client that tries again finds the key free.
            release(Arc::clone(&gateway.inner.store), self.claim, self.id).await;
        }
        if pending.finish(outcome.clone()) && second.is_some() {
            tokio::spawn(async move {
                sleep(ATTACH_TIME).await;
                drop(second);
            });
        }
        Claimed::Answered(outcome, reader)
    }

    async fn work(&self, mut held: HeldClaim) -> Result<Worked, ApiError> {
        let gateway = &self.create.gateway;
        let permit = self.create.reserve_kept().await?;
        let launch = &self.create.launch;
        // Before the provider is asked: this process may have been suspended since its claim.
        let confirmed = held.confirm().await;
        if let Err(Lost) = confirmed.map_err(|error| gateway.inner.views.failed(error))? {
            return Ok(Err(Lost));
        }
        // With `respond-async` the stream is opened before the request is answered.
        let (headers, start, fan_out) = if self.create.options.responds_async {
            let start = start_later(launch.clone());
            (HeaderMap::new(), start, launch.fans_out())
        } else {
            let (headers, started) = match self.launch(&mut held).await? {
                Ok(Ok(answer)) => answer,
                Ok(Err(whole)) => return Ok(Ok((Outcome::Whole(whole), None))),
                Err(Lost) => return Ok(Err(Lost)),
            };
            // And before its answer becomes a stream.
            let confirmed = held.confirm_for_stream().await;
            if let Err(Lost) = confirmed.map_err(|error| gateway.inner.views.failed(error))? {
                return Ok(Err(Lost));
            }
            let fan_out = started.is_fan_out();
            let start = Box::pin(std::future::ready(Ok(started)));
            (headers, start as crate::generation::Start, fan_out)
        };
        let opening = Opening {
            claim: Some(self.claim.clone()),
            ..self.create.opening(self.id.clone(), permit, fan_out)
        };
        let reader = opening.open(gateway, start).await?;
        held.keep_until_written();
        Ok(Ok((Outcome::Opened(headers), Some(reader))))
    }

    /// Asks the provider. A whole completion becomes a stream, also if the client asked for events: without one, the next request
    /// with the key would be sent, and billed, again.
    async fn launch(&self, held: &mut HeldClaim) -> Result<Result<Kept, Lost>, ApiError> {
        let launch = &self.create.launch;
        let whole = match held.during(launch.send()).await {
            Ok(Ok(Launched::Stream { headers, started })) => {
                return Ok(Ok(Ok((headers, started))));
            }
            Ok(Ok(Launched::Whole(whole))) => whole,
            Ok(Err(error)) => return Err(error),
            Err(Lost) => return Ok(Err(Lost)),
        };
        let whole = match held.during(whole.buffered(launch.request.memory())).await {
            Ok(whole) => whole?,
            Err(Lost) => return Ok(Err(Lost)),
        };
        Ok(Ok(match launch.completion(&whole) {
            Some(started) => Ok((whole.headers, started)),
            None => Err(whole),
        }))
    }
}

/// What a stream begins with, or an answer that is none.
type Kept = Result<(HeaderMap, Started), BufferedAnswer>;

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
