//! Section 11: for any script of the upstream, and any readers with cursors, disconnects, resumes and cancels, each reader gets
//! the projection of the log: nothing twice, nothing lost. Over sockets, with everything that is between them and the log.
//!
//! `UNBRAID_CASES=1000 UNBRAID_SEED=7` runs as many cases from that seed on. A failure names its seed.

mod projection;
mod reader;
mod script;

use std::{env, fmt::Debug, panic::AssertUnwindSafe, str::FromStr, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt};
use reqwest::Method;
use unbraid_log::{MemoryLog, MemoryOptions};
use unbraid_testkit::cut::Rng;

use self::{
    projection::{Log, Shown},
    reader::{Begin, Client},
    script::{Close, Script},
};
use crate::support::{Reader, TestGateway, Upstream, request, send, start_with};

/// A view of a stream.
#[derive(Debug, Clone)]
struct Target {
    choice: Option<u32>,
    keeps_index: bool,
    part: Option<&'static str>,
}

impl Target {
    const COMBINED: Self = Self {
        choice: None,
        keeps_index: false,
        part: None,
    };

    fn random(rng: &mut Rng, n: u32) -> Self {
        let parts = ["content", "reasoning", "tool_calls.0"];
        let is_combined = rng.chance(0.3);
        Self {
            choice: (!is_combined).then(|| rng.below(n as usize) as u32),
            keeps_index: rng.chance(0.3),
            part: (!is_combined && rng.chance(0.4)).then(|| parts[rng.below(parts.len())]),
        }
    }

    /// The path below the stream, and the query without a cursor.
    fn path(&self) -> String {
        let path = match self.choice {
            None => "events?".to_owned(),
            Some(choice) => format!("choices/{choice}?"),
        };
        let index = if self.keeps_index { "index=keep&" } else { "" };
        let part = self
            .part
            .map_or(String::new(), |part| format!("part={part}&"));
        path + index + &part
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_over_http_gets_the_projection_of_the_log() {
    let first: u64 = number("UNBRAID_SEED", 0);
    let cases: u64 = number("UNBRAID_CASES", 64);
    let one = |seed| async move {
        let case = AssertUnwindSafe(check(seed)).catch_unwind().await;
        case.unwrap_or_else(|_| panic!("repeat it with UNBRAID_SEED={seed} UNBRAID_CASES=1"));
    };
    let all = futures::stream::iter((first..first + cases).map(one));
    all.buffer_unordered(4).collect::<Vec<()>>().await;
}

fn number<T: FromStr<Err: Debug>>(variable: &str, default: T) -> T {
    env::var(variable).map_or(default, |text| text.parse().unwrap())
}

async fn check(seed: u64) {
    let mut rng = Rng::new(seed);
    let script = Script::random(&mut rng);
    let upstream = Upstream::steps(script.steps.clone()).await;
    // Half of the cases read the log of this process directly, half through the interface that every log has.
    let log = rng
        .chance(0.5)
        .then(|| Arc::new(MemoryLog::new(MemoryOptions::default())));
    let age = rng.chance(0.3).then_some(Duration::from_millis(15));
    let gateway = start_with(&upstream, |builder| {
        let builder = builder
            .max_connection_age(age)
            .ping(Duration::from_millis(10));
        match &log {
            Some(log) => builder.log(Arc::clone(log) as _),
            None => builder,
        }
    })
    .await;
    // Otherwise the gateway would rightly conclude that the provider ignores `n`.
    let is_native = rng.chance(0.5) || !script.shows_support_of_n();
    let fan_out = if is_native { "native" } else { "auto" };
    let post = gateway.post(request(script.n));
    let post = send(post.header("x-stream-fan-out", fan_out)).await;
    assert_eq!(post.status(), 200);
    let id = post.headers()["x-stream-id"].to_str().unwrap().to_owned();
    let cancels = cancel(&gateway, &id, &script, Rng::new(rng.next_u64()));
    let readers = readers(&gateway, &id, post, &script, &mut rng);
    let (clients, is_cancelled) = futures::future::join(readers, cancels).await;
    gateway.ended(&id).await;
    let log = match &log {
        Some(log) => Some(Log::read(&**log, &id).await),
        None => None,
    };
    for client in clients {
        let expected = match &log {
            Some(log) => log.project(&client.target),
            None => whole(&gateway, &id, &client.target).await,
        };
        client.check(&expected);
    }
    if !is_cancelled {
        check_upstream(&whole(&gateway, &id, &Target::COMBINED).await, &script);
    }
    if is_native || !is_cancelled {
        assert_eq!(upstream.seen().len(), 1, "a read starts nothing");
    }
}

/// The POST, and readers of other views that arrive at any time, all of them at once.
async fn readers(
    gateway: &TestGateway,
    id: &str,
    post: reqwest::Response,
    script: &Script,
    rng: &mut Rng,
) -> Vec<Client> {
    let begins = [Begin::Start, Begin::Start, Begin::Snapshot, Begin::Tail];
    let mut clients = vec![Client::new(Target::COMBINED, Begin::Start, rng)];
    for _ in 0..5 {
        let begin = begins[rng.below(begins.len())];
        clients.push(Client::new(Target::random(rng, script.n), begin, rng));
    }
    let mut first = Some(Reader::new(post));
    let running = clients.into_iter().map(|mut client| {
        let post = first.take();
        async move {
            client.run(gateway, id, post).await;
            client
        }
    });
    futures::future::join_all(running).await
}

/// Cancels some choices, or all. Returns whether any choice was cancelled.
async fn cancel(gateway: &TestGateway, id: &str, script: &Script, mut rng: Rng) -> bool {
    let mut has_cancelled = false;
    if rng.chance(0.4) {
        tokio::time::sleep(Duration::from_millis(rng.below(30) as u64)).await;
        let path = format!("/v1/streams/{id}/choices/{}", rng.below(script.n as usize));
        let response = send(gateway.method(Method::DELETE, &path)).await;
        assert_eq!(response.status(), 200);
        has_cancelled = true;
    }
    if script.close == Close::Hang || rng.chance(0.1) {
        tokio::time::sleep(Duration::from_millis(20 + rng.below(60) as u64)).await;
        let path = format!("/v1/streams/{id}/cancel");
        let response = send(gateway.method(Method::POST, &path)).await;
        assert_eq!(response.status(), 200);
        has_cancelled = true;
    }
    has_cancelled
}

/// Everything that a view has, read in one piece after the end.
async fn whole(gateway: &TestGateway, id: &str, target: &Target) -> Vec<Shown> {
    let mut client = Client::undisturbed(target.clone());
    client.run(gateway, id, None).await;
    client.shown
}

/// The combined view has the upstream's own events, and one terminal event.
fn check_upstream(shown: &[Shown], script: &Script) {
    let sent = script.events.iter();
    let sent: Vec<_> = sent
        .map(|(name, data)| (name.clone(), projection::value(data)))
        .collect();
    let mut shown = shown.iter();
    if script.close != Close::Error {
        let (_, name, data) = shown.next_back().unwrap();
        assert!(
            name.is_none() && (data == "[DONE]" || data["error"].is_string()),
            "{data}"
        );
    }
    let shown: Vec<_> = shown
        .map(|(_, name, data)| (name.clone(), data.clone()))
        .collect();
    assert_eq!(shown, sent);
}
