//! One request with `n`, and further ones if the provider does not support it.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use unbraid::{Completions, Source, SourceHandle, SourceSet};

use super::{FanOut, SingleChoiceRequests, count_requests, first_response};
use crate::{
    error::HttpError, refused_n::RefusedN, request::Request, send::timeouts::with_deadline,
};

/// How long the missing requests wait after the first answer. A caller who needs no more, as with `first_finished(1)`, learns of its
/// end at the same time, and cancels them within this pause: each of them would be billed.
const PAUSE_FOR_CANCEL: Duration = Duration::from_millis(20);

impl FanOut {
    /// Sends one request with `n`, unless the model is known not to support it.
    pub(crate) async fn send_auto(
        self: &Arc<Self>,
        request: &Request,
        n: u32,
    ) -> Result<Completions, HttpError> {
        count_requests(request, n)?; // before the first request, which may be billed
        let deadline = self.sender.timeouts.deadline();
        let has_n = request.has_n(self.sender.provider());
        if !has_n || self.single_choice_models.contains(request.model()) {
            return self.start_and_wait(request, n, deadline).await;
        }
        let config = self.sender.config_for(request);
        let outgoing = self.sender.outgoing(request)?;
        let response = match self.sender.send(&outgoing).await {
            Err(HttpError::Status(status)) => {
                let Some(refused) = RefusedN::of_status(&status, n) else {
                    return Err(HttpError::Status(status));
                };
                let completions = self.start_and_wait(request, n, deadline).await?;
                // Not before: if the single requests fail as well, the refusal was not about `n`.
                if !refused.permits_fewer {
                    self.single_choice_models.insert(request.model());
                }
                return Ok(completions);
            }
            response => response?,
        };
        let config = with_deadline(config, deadline);
        let config = response.configure(config);
        let (completions, source_set) = config.source_set();
        let expected = request
            .expected_choices(self.sender.provider())
            .unwrap_or(n);
        let first = Source::from_byte_stream(response.bytes);
        let Some(first) = source_set.add(first, 0..expected) else {
            return Ok(completions);
        };
        // Several prompts give several choices whether or not `n` is supported, so nothing can be concluded from them.
        if request.prompts().len() < 2 {
            let missing = SingleChoiceRequests::new(self, request, n, 1..n, deadline)?;
            let model = request.model().to_owned();
            // The task ends with the first response, whose reader ends with the last handle.
            tokio::spawn(request_missing(first, missing, model, source_set));
        }
        Ok(completions)
    }
}

/// Waits for the end of the first response, and sends the missing requests if it contained one choice only.
async fn request_missing(
    first: SourceHandle,
    missing: SingleChoiceRequests,
    model: String,
    source_set: SourceSet,
) {
    if first.closed().await.is_ok() && first.choices() == 1 {
        missing.fan_out.single_choice_models.insert(&model);
        sleep(PAUSE_FOR_CANCEL).await;
        missing.add_to(&source_set, &first_response::channel().0);
    }
}
