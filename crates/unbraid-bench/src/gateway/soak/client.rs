//! What a client does with one generation, and what it must not see.

use std::{io, net::SocketAddr, time::Duration};

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    fault::{Client, Plan},
    provider::Provider,
};
use crate::random::Random;

/// Clients of one gateway.
#[derive(Debug)]
pub(super) struct Soaker {
    http: reqwest::Client,
    base: String,
    provider: Provider,
}

/// How a generation ended, or what is wrong.
type Outcome = Result<String, String>;

/// How long the gateway may take until a stream whose readers have ended is seen as ended.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// What a reader has got of a stream.
#[derive(Debug, Default)]
struct Got {
    /// The id of the last event.
    cursor: u64,
    /// The last word of each choice.
    words: [Option<u64>; 4],
    is_done: bool,
    is_over: bool,
}

fn failed(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Soaker {
    pub(super) fn new(address: SocketAddr, provider: Provider) -> io::Result<Self> {
        // reqwest has no provider of its own; another client of this process may have installed it.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build();
        Ok(Self {
            http: http.map_err(io::Error::other)?,
            base: format!("http://{address}/v1"),
            provider,
        })
    }

    /// Checks that the gateway has neither generations nor upstream connections left.
    pub(super) async fn is_quiet(&self, address: SocketAddr) -> io::Result<()> {
        let mut left = (String::new(), 0);
        for _ in 0..200 {
            let response = self
                .http
                .get(format!("http://{address}/metrics"))
                .send()
                .await;
            let text = response.map_err(io::Error::other)?.text().await;
            let text = text.map_err(io::Error::other)?;
            let running = text
                .lines()
                .find_map(|line| line.strip_prefix("unbraid_streams_running "));
            left = (
                running.unwrap_or("unknown").to_owned(),
                self.provider.open(),
            );
            if left == ("0".to_owned(), 0) {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        let (running, open) = left;
        let message = format!("{running} generations run, {open} upstream connections are open");
        Err(io::Error::other(message))
    }

    pub(super) async fn generation(&self, seed: u64, plan: Plan) -> Outcome {
        let mut random = Random::new(seed ^ 0x1234_5678);
        let end = match plan.client {
            Client::Json | Client::JsonLeaves => self.json(seed, plan).await,
            Client::Live => self.live(seed, plan).await,
            Client::Repeats => self.repeats(seed, plan, &mut random).await,
            Client::Async => self.respond_async(seed, plan, &mut random).await,
            _ => self.stream(seed, plan, &mut random).await,
        }?;
        let requests = self.provider.requests(seed);
        if requests > 1 {
            return Err(format!("{requests} requests"));
        }
        Ok(end)
    }

    fn post(&self, seed: u64, plan: Plan, streams: bool) -> RequestBuilder {
        let n = plan.choices;
        let body = format!(r#"{{"model":"m","n":{n},"stream":{streams},"seed":{seed}}}"#);
        self.http
            .post(format!("{}/chat/completions", self.base))
            .header("content-type", "application/json")
            // Otherwise a provider with one choice only gets more requests.
            .header("x-stream-fan-out", "native")
            .body(body)
    }

    fn get(&self, id: &str, path: &str) -> RequestBuilder {
        self.http.get(format!("{}/streams/{id}{path}", self.base))
    }

    async fn json(&self, seed: u64, plan: Plan) -> Outcome {
        let sent = self.post(seed, plan, false).send();
        if plan.client == Client::JsonLeaves {
            let left = tokio::time::timeout(Duration::from_millis(seed % 20), sent).await;
            drop(left);
            return Ok("left".to_owned());
        }
        let response = sent.await.map_err(failed)?;
        let status = response.status();
        // The body is the upstream's own, and may be cut as it was.
        let _body = response.bytes().await;
        Ok(status.as_u16().to_string())
    }

    async fn live(&self, seed: u64, plan: Plan) -> Outcome {
        let post = self
            .post(seed, plan, true)
            .header("x-stream-durability", "live");
        let mut response = post.send().await.map_err(failed)?;
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes);
        }
        let is_done = memchr::memmem::find(&body, b"[DONE]").is_some();
        if is_done && !plan.upstream.may_be_done() {
            return Err("a live answer that was cut has an end".into());
        }
        Ok("live".to_owned())
    }

    /// Several equal requests at once are one request to the provider, and get the same answer.
    async fn repeats(&self, seed: u64, plan: Plan, random: &mut Random) -> Outcome {
        let count = 2 + random.below(3);
        let posts = (0..count).map(|_| {
            let post = self.post(seed, plan, true);
            post.header("idempotency-key", format!("soak-{seed}"))
                .send()
        });
        let mut ids: Vec<String> = Vec::new();
        let mut refusals = 0;
        for response in futures::future::join_all(posts).await {
            let response = response.map_err(failed)?;
            let Some(id) = id(&response) else {
                refusals += 1;
                drop(response.bytes().await);
                continue;
            };
            ids.push(id);
            let mut got = Got::default();
            got.read(response, None, plan).await?;
        }
        // A refusal frees the key, so each of the others may have been sent as well.
        if refusals > 0 {
            self.provider.requests(seed);
        }
        ids.dedup();
        match &ids[..] {
            [] => Ok("refused".to_owned()),
            [id] => self.ended(id).await,
            _ => Err(format!("{} streams for one key", ids.len())),
        }
    }

    async fn respond_async(&self, seed: u64, plan: Plan, random: &mut Random) -> Outcome {
        let post = self
            .post(seed, plan, true)
            .header("prefer", "respond-async");
        let response = post.send().await.map_err(failed)?;
        if response.status() != StatusCode::ACCEPTED {
            return Err(format!("status {}", response.status()));
        }
        let id = id(&response).ok_or("no id")?;
        drop(response);
        let mut got = Got::default();
        self.read_on(&id, "/events", &mut got, plan, random).await?;
        self.ended(&id).await
    }

    async fn stream(&self, seed: u64, plan: Plan, random: &mut Random) -> Outcome {
        let response = self.post(seed, plan, true).send().await.map_err(failed)?;
        let Some(id) = id(&response) else {
            let status = response.status();
            drop(response.bytes().await);
            return Ok(format!("status {}", status.as_u16()));
        };
        let mut got = Got::default();
        match plan.client {
            Client::Slow => got.read_slowly(response, plan).await?,
            Client::Stops => {
                sleep(Duration::from_millis(1500)).await;
                drop(response);
            }
            Client::Resumes => got.read(response, Some(random.below(1000)), plan).await?,
            Client::Leaves => drop(response),
            Client::CancelsOne | Client::CancelsAll => {
                sleep(Duration::from_millis(random.below(20) as u64)).await;
                self.cancel(&id, plan, random).await?;
                got.read(response, None, plan).await?;
            }
            Client::Erases => {
                sleep(Duration::from_millis(random.below(20) as u64)).await;
                let path = format!("{}/streams/{id}", self.base);
                let erased = self.http.request(Method::DELETE, path).send().await;
                let status = erased.map_err(failed)?.status();
                drop(got.read(response, None, plan).await);
                // It may have been evicted before.
                let is_gone = [
                    StatusCode::NO_CONTENT,
                    StatusCode::GONE,
                    StatusCode::NOT_FOUND,
                ];
                let gone = self.get(&id, "").send().await.map_err(failed)?.status();
                return match is_gone.contains(&status) && gone != StatusCode::OK {
                    true => Ok("erased".to_owned()),
                    false => Err(format!("erasing: {status}, then {gone}")),
                };
            }
            _ => got.read(response, None, plan).await?,
        }
        if plan.client == Client::Leaves {
            for choice in 0..plan.choices {
                let mut own = Got::default();
                let path = format!("/choices/{choice}?index=keep");
                self.read_on(&id, &path, &mut own, plan, random).await?;
            }
        }
        self.read_on(&id, "/events", &mut got, plan, random).await?;
        self.ended(&id).await
    }

    async fn cancel(&self, id: &str, plan: Plan, random: &mut Random) -> Result<(), String> {
        let request = if plan.client == Client::CancelsAll {
            self.http.post(format!("{}/streams/{id}/cancel", self.base))
        } else {
            let choice = random.below(plan.choices);
            let path = format!("{}/streams/{id}/choices/{choice}", self.base);
            self.http.request(Method::DELETE, path)
        };
        let status = request.send().await.map_err(failed)?.status();
        let accepted = [
            StatusCode::OK,
            StatusCode::ACCEPTED,
            StatusCode::GONE,
            StatusCode::NOT_FOUND,
        ];
        match accepted.contains(&status) {
            true => Ok(()),
            false => Err(format!("cancelling: {status}")),
        }
    }

    /// Reads a view to its end, over as many connections as it takes.
    async fn read_on(
        &self,
        id: &str,
        path: &str,
        got: &mut Got,
        plan: Plan,
        random: &mut Random,
    ) -> Result<(), String> {
        let drops = plan.client == Client::Resumes;
        while !got.is_over {
            let get = self.get(id, path);
            let get = get.header("last-event-id", got.cursor.to_string());
            let response = get.send().await.map_err(failed)?;
            match response.status() {
                StatusCode::OK => {}
                // All of it has been read, or it was evicted, or the choice is one that the upstream does not have.
                StatusCode::NO_CONTENT | StatusCode::GONE | StatusCode::NOT_FOUND => return Ok(()),
                status => return Err(format!("{path}: {status}")),
            }
            let limit = (drops && random.below(3) > 0).then(|| random.below(3000));
            got.read(response, limit, plan).await?;
        }
        Ok(())
    }

    /// Waits until a stream has ended. Returns its end.
    async fn ended(&self, id: &str) -> Outcome {
        let end = async {
            loop {
                let response = self.get(id, "").send().await.map_err(failed)?;
                if response.status() != StatusCode::OK {
                    return Ok("evicted".to_owned());
                }
                let body = response.bytes().await.map_err(failed)?;
                let status: Value = serde_json::from_slice(&body).map_err(failed)?;
                if status["state"] == "ended" {
                    return Ok(status["end"].as_str().unwrap_or_default().to_owned());
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let end = tokio::time::timeout(ENDS_WITHIN, end).await;
        end.map_err(|_| "the stream does not end".to_owned())?
    }
}

impl Got {
    /// Reads a body to its end, or until it has so many bytes.
    async fn read(
        &mut self,
        mut response: Response,
        limit: Option<usize>,
        plan: Plan,
    ) -> Result<(), String> {
        let mut text = Vec::new();
        while limit.is_none_or(|limit| text.len() < limit) {
            match response.chunk().await {
                Ok(Some(bytes)) => text.extend_from_slice(&bytes),
                // Erasing a stream, for one, cuts its readers.
                Ok(None) | Err(_) => break,
            }
        }
        self.take(&text, plan)
    }

    async fn read_slowly(&mut self, mut response: Response, plan: Plan) -> Result<(), String> {
        let mut text = Vec::new();
        while let Ok(Some(bytes)) = response.chunk().await {
            text.extend_from_slice(&bytes);
            sleep(Duration::from_millis(5)).await;
        }
        self.take(&text, plan)
    }

    /// Takes the complete events of a connection.
    fn take(&mut self, text: &[u8], plan: Plan) -> Result<(), String> {
        let text = String::from_utf8_lossy(text);
        let complete = text.rfind("\n\n").map_or(0, |end| end + 2);
        for event in text
            .get(..complete)
            .unwrap_or_default()
            .split_terminator("\n\n")
        {
            let id = event.lines().find_map(|line| line.strip_prefix("id: "));
            let id: u64 = id
                .ok_or("an event without an id")?
                .parse()
                .map_err(failed)?;
            if id <= self.cursor {
                return Err(format!("{id} after {}", self.cursor));
            }
            self.cursor = id;
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            self.event(data.unwrap_or_default(), plan)?;
        }
        Ok(())
    }

    fn event(&mut self, data: &str, plan: Plan) -> Result<(), String> {
        if self.is_over {
            return Err("an event after the last one".into());
        }
        if data == "[DONE]" {
            let is_cancelled = matches!(plan.client, Client::CancelsOne | Client::CancelsAll);
            (self.is_done, self.is_over) = (true, true);
            // Of a body that is not an event stream, the core may find no choice, and of an empty one neither.
            return match plan.upstream.may_be_done() || is_cancelled {
                true => Ok(()),
                false => Err("an answer that was cut ends with [DONE]".into()),
            };
        }
        let Ok(chunk) = serde_json::from_str::<Value>(data) else {
            return Ok(());
        };
        self.is_over = !chunk["error"].is_null() && chunk["choices"].is_null();
        for entry in chunk["choices"].as_array().into_iter().flatten() {
            let word = entry["delta"]["content"].as_str();
            let word =
                word.and_then(|text| text.strip_prefix('w')?.split(' ').next()?.parse().ok());
            let choice = entry["index"]
                .as_u64()
                .and_then(|index| usize::try_from(index).ok());
            let last = choice.and_then(|choice| self.words.get_mut(choice));
            let (Some(word), Some(last)) = (word, last) else {
                continue;
            };
            let next: u64 = match *last {
                None => word % plan.choices as u64,
                Some(last) => last + plan.choices as u64,
            };
            if word != next {
                return Err(format!("word {word} in place of {next}"));
            }
            *last = Some(word);
        }
        Ok(())
    }
}

/// The id of the stream that a response belongs to.
fn id(response: &Response) -> Option<String> {
    let id = response.headers().get("x-stream-id")?;
    Some(id.to_str().ok()?.to_owned())
}
