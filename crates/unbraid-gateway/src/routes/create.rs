//! `POST /v1/chat/completions` and `POST /v1/completions`.

mod attach;
pub(crate) mod body;
mod held_claim;
mod idempotent;
mod open;
mod options;
pub(crate) mod request;
mod unkept;

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Response, Version, header::CONNECTION, request::Parts},
    response::IntoResponse,
};
use unbraid_log::StreamId;

use self::{
    attach::{Attach, Form},
    body::{is_json, read_counted},
    open::{Opening, start_later},
    options::{Durability, RequestOptions},
    request::CreateRequest,
};
use super::{Answer, access, forward::upstream_parts};
use crate::{
    api_error::ApiError,
    auth::keys::Principal,
    config::FanOut,
    fan_out::{Launch, Launched},
    gateway::Gateway,
    streams::{ReaderPermit, StreamPermit},
};

/// The path of text completions.
const TEXT: &str = "/v1/completions";

pub(super) async fn chat(State(gateway): State<Gateway>, request: Request) -> Answer {
    create(gateway, "/v1/chat/completions", request).await
}

pub(super) async fn text(State(gateway): State<Gateway>, request: Request) -> Answer {
    create(gateway, TEXT, request).await
}

/// A request that was read and checked.
struct Create {
    gateway: Gateway,
    endpoint: &'static str,
    principal: Principal,
    options: RequestOptions,
    launch: Launch,
}

async fn create(gateway: Gateway, endpoint: &'static str, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let create = match Create::read(gateway, endpoint, &parts, body).await {
        // The connection does not know of the drain yet, if the body has waited for it.
        Err(ApiError::DRAINING) if parts.version < Version::HTTP_2 => {
            let close = [(CONNECTION, HeaderValue::from_static("close"))];
            return Ok((close, ApiError::DRAINING).into_response());
        }
        read => read?,
    };
    // The future is large, and most of its size belongs to paths that a request does not take.
    Box::pin(create.answer()).await
}

impl Create {
    async fn read(
        gateway: Gateway,
        endpoint: &'static str,
        parts: &Parts,
        body: Body,
    ) -> Result<Self, ApiError> {
        let principal = access::principal(&gateway, parts)?;
        if gateway.is_draining() {
            return Err(ApiError::DRAINING);
        }
        if !is_json(&parts.headers) {
            return Err(ApiError::UNSUPPORTED_MEDIA_TYPE);
        }
        // The gateway reads the request, and it forwards what it has read.
        if unbraid_http::internal::is_encoded(&parts.headers) {
            return Err(ApiError::UNSUPPORTED_ENCODING);
        }
        let options = RequestOptions::parse(&parts.headers)?;
        let (body, held) = read_counted(&gateway, body, &parts.headers).await?;
        let request = CreateRequest::parse(body, held, endpoint == TEXT)?;
        request.check_choices(gateway.inner.options.max_n)?;
        // A body may take a minute, and the drain may have begun meanwhile.
        if gateway.is_draining() {
            return Err(ApiError::DRAINING);
        }
        let (query, headers) = upstream_parts(&gateway, parts);
        let launch = Launch {
            upstream: Arc::clone(&gateway.inner.upstream),
            models: Arc::clone(&gateway.inner.models),
            request: Arc::new(request),
            path: endpoint.strip_prefix("/v1/").unwrap_or(endpoint),
            query,
            headers,
            fan_out: options.fan_out.unwrap_or(gateway.inner.options.fan_out),
            dropped: Arc::default(),
        };
        Ok(Self {
            gateway,
            endpoint,
            principal,
            options,
            launch,
        })
    }

    async fn answer(self) -> Answer {
        let is_stream = self.launch.request.is_stream();
        if self.options.is_live() {
            return self.pass_live(is_stream).await;
        }
        if self.options.idempotency_key.is_some() {
            return self.answer_idempotent().await;
        }
        if self.options.responds_async {
            return self.answer_async().await;
        }
        let keeps = is_stream || self.options.durability == Some(Durability::Replay);
        if keeps || self.launch.fans_out() {
            return self.answer_kept().await;
        }
        self.answer_whole().await
    }

    /// A place for a generation, or 429.
    fn reserve(&self) -> Result<StreamPermit, ApiError> {
        self.gateway.inner.streams.reserve(&self.principal)
    }

    /// A place for a generation that is kept, or 429 or 503. The upstream bills what it is sent, so this comes first.
    async fn reserve_kept(&self) -> Result<StreamPermit, ApiError> {
        let permit = self.reserve()?;
        self.gateway.check_log().await?;
        if !self.gateway.has_memory() {
            return Err(ApiError::OUT_OF_MEMORY);
        }
        Ok(permit)
    }

    fn form(&self) -> Form {
        match self.launch.request.is_stream() {
            _ if self.options.responds_async => Form::Async,
            true => Form::Events(self.options.after),
            false => Form::Json,
        }
    }

    fn opening(&self, id: StreamId, permit: StreamPermit, fan_out: bool) -> Opening {
        Opening {
            id,
            principal: self.principal.clone(),
            permit,
            endpoint: self.endpoint,
            claim: None,
            orphan_after: self.orphan_after(),
            fan_out,
            launch: self.launch.clone(),
        }
    }

    /// After how long without a reader the generation is cancelled.
    fn orphan_after(&self) -> Option<Duration> {
        let has_id = self.launch.request.is_stream()
            || self.options.idempotency_key.is_some()
            || self.options.durability == Some(Durability::Replay);
        if self.options.responds_async {
            None
        } else if has_id {
            self.options
                .orphan_after
                .or(self.gateway.inner.options.orphan_after)
        } else {
            // Nobody learns the id before the whole answer, so without its client the generation is of no use.
            Some(Duration::ZERO)
        }
    }

    /// Waits for the answer to begin, and then keeps it as a stream.
    async fn answer_kept(self) -> Answer {
        let permit = self.reserve_kept().await?;
        let launched = self.launch.send().await?;
        self.keep_launched(permit, launched).await
    }

    async fn keep_launched(self, permit: StreamPermit, launched: Launched) -> Answer {
        match launched {
            Launched::Whole(whole) => Ok(whole.into_response()),
            Launched::Stream { headers, started } => {
                let fan_out = started.is_fan_out();
                let start = Box::pin(std::future::ready(Ok(started)));
                self.keep(permit, start, fan_out, headers).await
            }
        }
    }

    async fn keep(
        self,
        permit: StreamPermit,
        start: crate::generation::Start,
        fan_out: bool,
        headers: HeaderMap,
    ) -> Answer {
        let id = new_id()?;
        let reader = self
            .opening(id.clone(), permit, fan_out)
            .open(&self.gateway, start)
            .await?;
        let attach = self.attach_to_new(id, headers, Some(reader));
        drop(self);
        attach.answer().await
    }

    /// Attaches to the stream that this request has opened.
    fn attach_to_new(
        &self,
        id: StreamId,
        headers: HeaderMap,
        reader: Option<ReaderPermit>,
    ) -> Attach {
        let form = match self.form() {
            // A cursor of another stream means nothing to a new one.
            Form::Events(_) => Form::Events(None),
            form => form,
        };
        Attach {
            gateway: self.gateway.clone(),
            id,
            form,
            headers,
            replayed: false,
            reader,
        }
    }

    /// 202 at once; the request is sent meanwhile.
    async fn answer_async(self) -> Answer {
        let permit = self.reserve_kept().await?;
        let fan_out = self.launch.fans_out();
        let start = start_later(self.launch.clone());
        self.keep(permit, start, fan_out, HeaderMap::new()).await
    }
}

fn new_id() -> Result<StreamId, ApiError> {
    StreamId::random().map_err(|_| ApiError::INTERNAL)
}

/// Whether `n` is requested natively first, and completed only if the provider ignores it.
fn is_auto(launch: &Launch) -> bool {
    launch.fan_out == FanOut::Auto && launch.request.has_several_choices()
}

type Passed = Response<Body>;
