//! Answers that are not kept: `live` streams, and whole answers.

use axum::http::{HeaderMap, HeaderValue, Method};
use bytes::Bytes;

use super::{Create, Passed, is_auto};
use crate::{
    api_error::ApiError,
    config::FanOut,
    fan_out::{self, BufferedAnswer, WholeAnswer},
    generation::{PartSource, Started, StartedPart},
    routes::{
        Answer,
        forward::{pass, pass_holding},
    },
    streams::StreamPermit,
    upstream::{self, Outgoing},
};

impl Create {
    fn outgoing(&self) -> Outgoing {
        Outgoing {
            method: Method::POST,
            path: self.launch.path.to_owned(),
            query: self.launch.query.clone(),
            headers: self.launch.headers.clone(),
            body: self.launch.request.body().clone(),
        }
    }

    async fn send_unchanged(&self) -> Result<upstream::Answer, ApiError> {
        self.gateway.inner.upstream.send(&self.outgoing()).await
    }

    /// Nothing is kept: the upstream's bytes as they are. Dropping the response closes the upstream's connection.
    pub(super) async fn pass_live(self, is_stream: bool) -> Answer {
        // A stream holds its place among the running ones until its body ends.
        let permit = is_stream.then(|| self.reserve()).transpose()?;
        let answer = self.send_unchanged().await?;
        let is_success = answer.status.is_success();
        let mut response: Passed = pass_holding(answer, permit);
        if is_stream && is_success {
            let headers = response.headers_mut();
            headers.insert("cache-control", HeaderValue::from_static("no-store"));
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        }
        Ok(response)
    }

    /// The upstream's own answer, byte for byte. If the provider refuses or ignores `n`, the missing choices are requested one
    /// by one, and the answer is the aggregate.
    pub(super) async fn answer_whole(mut self) -> Answer {
        if !is_auto(&self.launch) {
            return Ok(pass(self.send_unchanged().await?));
        }
        let prompts = self.launch.request.prompts();
        if prompts > 1 {
            return self.answer_prompts(prompts).await;
        }
        // Before anything is sent: an answer that was paid for must not end as 429 or 503 because it has to be completed.
        let permit = self.reserve_kept().await?;
        let whole = self.send_whole().await?;
        if !whole.status.is_success() {
            let Some(refused) = self.launch.refused_n(&whole) else {
                return Ok(whole.into_response());
            };
            self.launch.fan_out = FanOut::Always;
            let launched = self.launch.send_refused(&refused, &whole).await?;
            return self.keep_launched(permit, launched).await;
        }
        let stream = match fan_out::count_choices(&whole.body) {
            Some(1) => fan_out::as_stream(&whole.body),
            _ => None,
        };
        match stream {
            None => Ok(whole.into_response()),
            Some(stream) => self.complete(permit, whole.headers, stream).await,
        }
    }

    /// The upstream's own answer to a list of prompts. It is not completed: with one choice for each prompt, their indices are not
    /// those that they would have with `n`.
    async fn answer_prompts(self, prompts: usize) -> Answer {
        let whole = self.send_whole().await?;
        if whole.status.is_success() && fan_out::count_choices(&whole.body) == Some(prompts) {
            self.launch.models.insert(self.launch.request.model());
        }
        Ok(whole.into_response())
    }

    async fn send_whole(&self) -> Result<BufferedAnswer, ApiError> {
        WholeAnswer::of(self.send_unchanged().await?)
            .buffered(self.launch.request.memory())
            .await
    }

    /// Requests the choices that a whole answer does not have.
    async fn complete(self, permit: StreamPermit, headers: HeaderMap, stream: Bytes) -> Answer {
        let part = StartedPart {
            source: PartSource::Open(fan_out::one_read(stream)),
            choice: None,
        };
        let started = Started {
            parts: vec![part],
            singles: Some(self.launch.singles()),
        };
        let start = Box::pin(std::future::ready(Ok(started)));
        // The missing choices are requested in any case.
        self.keep(permit, start, true, headers).await
    }
}
