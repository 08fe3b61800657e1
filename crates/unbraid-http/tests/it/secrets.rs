//! The key is nowhere: in no `Debug`, in no error, in no line of a log.

use std::{
    error::Error,
    fmt::{self, Write},
    sync::Mutex,
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use unbraid_http::{Client, ClientBuilder, HttpError, Request};

use crate::{
    answers::{texts, two},
    server::{Server, full, two_choices, two_choices_answer},
};

const KEY: &str = "sk-never-to-be-seen-9f3a";

/// All that was logged, by whichever of the two ways.
static LOGGED: Mutex<String> = Mutex::new(String::new());

struct Recorder;

impl log::Log for Recorder {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut logged = LOGGED.lock().unwrap();
        writeln!(logged, "{}: {}", record.target(), record.args()).unwrap();
    }

    fn flush(&self) {}
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut logged = LOGGED.lock().unwrap();
        write!(logged, "{}: ", span.metadata().target()).unwrap();
        span.record(&mut Fields(&mut logged));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Fields(&mut LOGGED.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut logged = LOGGED.lock().unwrap();
        write!(logged, "\n{}: ", event.metadata().target()).unwrap();
        event.record(&mut Fields(&mut logged));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Fields<'s>(&'s mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

/// Looks through an error and all its causes.
#[track_caller]
fn check(error: &dyn Error) {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains(KEY), "{shown}");
        cause = error.source();
    }
}

/// The key wherever a user may put it.
fn with_key(builder: ClientBuilder) -> [ClientBuilder; 4] {
    [
        builder.clone().api_key(KEY),
        builder.clone().api_key(KEY).key_header("x-key"),
        builder
            .clone()
            .header("authorization", format!("Bearer {KEY}")),
        builder.header("API-KEY", KEY),
    ]
}

#[tokio::test]
async fn it_is_in_no_log() {
    log::set_logger(&Recorder).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    tracing::subscriber::set_global_default(Recorder).unwrap();

    let server = Server::start(|request| match request % 2 {
        0 => full(503, "text/plain", format!("wrong key: {KEY}")),
        _ => two_choices_answer(),
    })
    .await;
    for http2 in [false, true] {
        for client in with_key(server.builder().http2_prior_knowledge(http2)) {
            let client = client.build().unwrap();
            let completions = client.send(&two()).await.unwrap();
            assert_eq!(texts(&completions).await, ["one", "two"]);
        }
        let base = format!("{}?key={KEY}", server.base_url());
        let client = server.builder().base_url(base).build().unwrap();
        let completions = client.send(&two()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"]);
    }
    let logged = LOGGED.lock().unwrap();
    // Both ways were heard.
    for target in ["unbraid_http", "hyper_util", "reqwest"] {
        assert!(logged.contains(target), "nothing of {target}:\n{logged}");
    }
    let line = logged.lines().find(|line| line.contains(KEY));
    assert_eq!(line, None);
    for payload in ["Count.", "wrong key"] {
        let of_ours = |line: &&str| line.starts_with("unbraid") && line.contains(payload);
        assert_eq!(logged.lines().find(of_ours), None);
    }
}

#[tokio::test]
async fn it_is_in_no_debug() {
    let server = Server::start(|_| two_choices_answer()).await;
    let base = format!("http://user:{KEY}@{}/v1?key={KEY}", server.address());
    for builder in with_key(server.builder().base_url(base)) {
        let shown = format!("{builder:?} {builder:#?}");
        assert!(!shown.contains(KEY), "{shown}");
        let client = builder.build().unwrap();
        let shown = format!("{client:?} {client:#?}");
        assert!(!shown.contains(KEY), "{shown}");
    }
}

#[tokio::test]
async fn it_is_in_no_error() {
    // A server that repeats what it was sent.
    let server = Server::start(|request| match request % 3 {
        0 => full(401, "text/plain", format!("wrong key: Bearer {KEY}!")),
        1 => full(200, "text/html", format!("<title>{KEY}</title>")),
        _ => full(
            404,
            "application/json",
            format!(r#"{{"error":"no {KEY}"}}"#),
        ),
    })
    .await;
    for builder in with_key(server.builder()) {
        let client = builder.build().unwrap();
        for _ in 0..3 {
            let refused = client.send(&two()).await.unwrap_err();
            check(&refused);
            let answer = refused.answer().unwrap();
            assert!(!answer.body_head().contains(KEY));
            assert!(!answer.message().unwrap_or_default().contains(KEY));
            assert!(answer.message().unwrap().contains("[key]"));
        }
    }
}

#[tokio::test]
async fn it_is_in_no_error_without_an_answer() {
    let plain = Server::raw(|_| async {}).await;
    for base in [
        format!("https://user:{KEY}@{}/v1?key={KEY}", plain.address()),
        format!("http://{}/v1?key={KEY}", plain.address()),
        format!("http://127.0.0.1:1/v1?key={KEY}"),
    ] {
        let builder = Client::builder().base_url(&base).proxy_from_env(false);
        let client = builder.retries(0).api_key(KEY).build().unwrap();
        let refused = client.send(&two()).await.unwrap_err();
        check(&refused);
    }
    for builder in [
        Client::builder().base_url(KEY),
        Client::builder().base_url(format!("{KEY}://host")),
        Client::builder().api_key(format!("{KEY}\u{e9}\n1")),
        Client::builder().header("authorization", format!("{KEY}\n")),
    ] {
        check(&builder.build().unwrap_err());
    }
}

#[tokio::test]
async fn it_is_in_no_error_of_a_stream() {
    let server = Server::start(|_| {
        let mut cut = two_choices();
        cut.truncate(cut.len() / 2);
        let mut answer = full(200, "text/event-stream", cut);
        let length = "10000".parse().unwrap();
        answer.headers_mut().insert("x-length", length);
        answer
            .headers_mut()
            .insert("content-encoding", "gzip".parse().unwrap());
        answer
    })
    .await;
    let base = format!("{}?key={KEY}", server.base_url());
    let client = server
        .builder()
        .base_url(base)
        .api_key(KEY)
        .build()
        .unwrap();
    let completions = client.send(&two()).await.unwrap();
    check(&completions.closed().await.unwrap_err());
}

#[test]
fn the_prompt_is_in_no_debug() {
    let request = Request::chat("m").user("private words");
    assert!(!format!("{request:?}").contains("private"));
    let refused: HttpError = Request::from_value("private".into()).unwrap_err().into();
    assert!(!format!("{refused} {refused:?}").contains("private"));
}
