//! Sends a request for a stream: once, or once for each choice.

mod dropped;
pub(crate) mod models;
mod singles;
mod whole;

use std::sync::Arc;

use axum::http::{HeaderMap, Method, header::CONTENT_ENCODING};
use bytes::Bytes;
use unbraid_http::internal::RefusedN;

pub(crate) use self::dropped::DroppedChoices;
use self::whole::as_one_chunk;
pub(crate) use self::whole::{BufferedAnswer, WholeAnswer, as_stream, count_choices, one_read};
use self::{models::SingleChoiceModels, singles::send_singles};
use crate::{
    api_error::ApiError,
    config::FanOut,
    generation::{PartSource, Singles, Started, StartedPart},
    routes::create::request::CreateRequest,
    upstream::{Answer, Outgoing, Upstream},
};

/// A request for a stream.
///
/// It holds no handle of the gateway, because a generation keeps it: the generation would keep itself running.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) models: Arc<SingleChoiceModels>,
    pub(crate) request: Arc<CreateRequest>,
    pub(crate) path: &'static str,
    pub(crate) query: Option<String>,
    /// The headers for the upstream.
    pub(crate) headers: HeaderMap,
    pub(crate) fan_out: FanOut,
    /// The choices that are cancelled before an answer has begun.
    pub(crate) dropped: Arc<DroppedChoices>,
}

/// The upstream's answer to it.
pub(crate) enum Launched {
    Stream {
        /// The headers of the first response.
        headers: HeaderMap,
        started: Started,
    },
    /// A refusal, or one whole JSON object.
    Whole(WholeAnswer),
}

impl Launch {
    /// Whether the choices are requested one by one, as far as that is known before the request is sent.
    pub(crate) fn fans_out(&self) -> bool {
        match self.fan_out {
            _ if !self.request.has_several_choices() => false,
            FanOut::Native => false,
            FanOut::Always => true,
            FanOut::Auto => self.is_known_single(),
        }
    }

    /// Says that each choice has a request of its own, if that is known before any is sent.
    pub(crate) fn announce_singles(&self) {
        if self.fans_out() {
            self.dropped.set_singles();
        }
    }

    fn is_known_single(&self) -> bool {
        self.models.contains(self.request.model())
    }

    /// Sends the request, and waits until an answer has begun or was refused.
    pub(crate) async fn send(&self) -> Result<Launched, ApiError> {
        if self.fans_out() {
            return send_singles(self).await;
        }
        let (asks_usage, is_auto) = (self.request.adds_usage(), self.is_auto());
        let body = self.request.whole_body();
        let answer = self.upstream.send(&self.outgoing(body)).await?;
        if answer.status.is_success() {
            return self.started(answer).await;
        }
        let whole = WholeAnswer::of(answer);
        if !is_auto && !asks_usage {
            return Ok(Launched::Whole(whole));
        }
        let whole = whole.buffered(self.request.memory()).await?;
        if asks_usage && self.drops_usage(&whole) {
            return Box::pin(self.send()).await;
        }
        match self.refused_n(&whole).filter(|_| is_auto) {
            Some(refused) => self.send_refused(&refused, &whole).await,
            None => Ok(Launched::Whole(whole.into())),
        }
    }

    fn is_auto(&self) -> bool {
        self.fan_out == FanOut::Auto && self.request.has_several_choices()
    }

    /// Whether a refusal of a body that asks for usage is about that. If so, the next body does not ask, also where another
    /// request for a choice of this answer has learned it first.
    fn drops_usage(&self, whole: &BufferedAnswer) -> bool {
        let refuses = whole.refuses_usage();
        if refuses {
            self.request.omit_usage();
        }
        refuses
    }

    /// Whether a buffered answer refuses the request's `n`.
    pub(crate) fn refused_n(&self, answer: &BufferedAnswer) -> Option<RefusedN> {
        let body = String::from_utf8_lossy(&answer.body);
        RefusedN::find(answer.status.as_u16(), &body, self.request.choices())
    }

    /// Sends a request for each choice, because the provider has refused `n`. If that helps, the model is remembered.
    pub(crate) async fn send_refused(
        &self,
        refused: &RefusedN,
        answer: &BufferedAnswer,
    ) -> Result<Launched, ApiError> {
        let mut launch = self.clone();
        if !answer.is_multiplexed {
            // Some providers close the connection of a refusal without notice, a few milliseconds later. A request that meets
            // the close may have been processed, so it could not be sent again.
            launch.upstream = Arc::new(self.upstream.with_new_connections());
        }
        let launched = send_singles(&launch).await?;
        // The value of `best_of` limits that of `n`, whatever the provider supports.
        let is_single = !refused.permits_fewer && !self.request.has_best_of();
        if matches!(launched, Launched::Stream { .. }) && is_single {
            self.models.insert(self.request.model());
        }
        Ok(launched)
    }

    async fn started(&self, answer: Answer) -> Result<Launched, ApiError> {
        if answer.has_unknown_encoding() {
            return Err(ApiError::UPSTREAM_ENCODING);
        }
        let is_stream = answer.is_content_type("text/event-stream");
        let mut headers = answer.headers.clone();
        headers.remove(CONTENT_ENCODING);
        let body = if is_stream {
            answer.into_decoded()
        } else {
            match whole::distinguish(answer).await? {
                whole::Kind::Json(whole) => return self.json(whole).await,
                whole::Kind::Stream(body) => body,
            }
        };
        let part = StartedPart {
            source: PartSource::Open(body),
            choice: None,
        };
        let started = Started {
            parts: vec![part],
            singles: self.later_singles(),
        };
        Ok(Launched::Stream { headers, started })
    }

    /// A whole JSON object. It becomes a stream of one chunk if the client requested one as well, and waits for it as a stream's
    /// aggregate, or if it lacks choices of a stream, which are requested one by one.
    async fn json(&self, whole: WholeAnswer) -> Result<Launched, ApiError> {
        let is_stream = self.request.is_stream();
        let may_lack_choices = self.is_auto() && self.request.prompts() < 2;
        if is_stream && !may_lack_choices {
            return Ok(Launched::Whole(whole));
        }
        let whole = whole.buffered(self.request.memory()).await?;
        if is_stream && count_choices(&whole.body) != Some(1) {
            return Ok(Launched::Whole(whole.into()));
        }
        Ok(match self.completion(&whole) {
            Some(started) => Launched::Stream {
                headers: whole.headers,
                started,
            },
            None => Launched::Whole(whole.into()),
        })
    }

    /// A whole completion as a stream of one chunk; `None` if the answer is something else. Its usage is an event of its own if
    /// the client asked for that, or if more answers may follow, whose usage is added.
    pub(crate) fn completion(&self, whole: &BufferedAnswer) -> Option<Started> {
        let may_lack_choices = self.is_auto() && count_choices(&whole.body) == Some(1);
        let splits_usage = self.request.wants_usage() || may_lack_choices;
        let as_events = if splits_usage {
            as_stream
        } else {
            as_one_chunk
        };
        let chunk = as_events(&whole.body).filter(|_| whole.status.is_success())?;
        let part = StartedPart {
            source: PartSource::Open(one_read(chunk)),
            choice: None,
        };
        Some(Started {
            parts: vec![part],
            singles: self.later_singles(),
        })
    }

    /// The requests that follow if the answer turns out to have one choice.
    fn later_singles(&self) -> Option<Singles> {
        self.is_auto().then(|| self.singles())
    }

    /// The requests for the choices that the first answer does not have.
    pub(crate) fn singles(&self) -> Singles {
        let launch = self.clone();
        let (models, model) = (Arc::clone(&self.models), self.request.model().to_owned());
        let permits = singles::permits();
        Singles {
            n: self.request.choices(),
            prompts: self.request.prompts().max(1),
            request: Some(Box::new(move |choice| launch.single(choice, &permits))),
            remember: Box::new(move || models.insert(&model)),
        }
    }

    fn outgoing(&self, body: Bytes) -> Outgoing {
        Outgoing {
            method: Method::POST,
            path: self.path.to_owned(),
            query: self.query.clone(),
            headers: self.headers.clone(),
            body,
        }
    }
}
