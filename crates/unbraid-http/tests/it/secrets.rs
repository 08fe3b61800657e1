//! The key appears in no `Debug` output, no error and no log line.

use std::{
    error::Error,
    fmt::{self, Write},
    sync::Mutex,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use unbraid_http::{
    Client, ClientBuilder, HttpError, Request, ResponseExt, StatusError,
    limits::MAX_ERROR_BODY_BYTES,
};

use crate::{
    responses::{request, texts},
    server::{self, Server, full, two_choices, two_choices_reply},
};

/// A key with every character that JSON, addresses or HTML escape.
pub(crate) const KEY: &str = r#"sk-never/to+be="seen\zq9f3axw`1"#;

/// The part of the key that no format escapes.
pub(crate) const CORE: &str = "zq9f3axw";

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The key as it is escaped in an address.
pub(crate) fn in_address() -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    KEY.bytes().map(byte).collect()
}

/// The forms in which a server may repeat the key.
pub(crate) fn forms() -> Vec<String> {
    let json_in_json = json(&json(KEY).replace('/', "\\/"));
    let html = KEY.replace('"', "&quot;").replace('`', "&#96;");
    vec![
        json(KEY),
        json(KEY).replace('/', "\\/"),
        json(KEY).replace('s', "\\u0073"),
        json_in_json,
        json(&html),
        in_address(),
    ]
}

/// Everything that was logged, through `log` or `tracing`.
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

/// Checks an error and all its causes.
#[track_caller]
fn check(error: &dyn Error) {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains(CORE), "{shown}");
        cause = error.source();
    }
}

/// Clients with the key in each place where a user may put it.
pub(crate) fn with_key(builder: ClientBuilder) -> [ClientBuilder; 6] {
    [
        builder.clone().api_key(KEY),
        builder.clone().api_key(KEY).key_header("x-key"),
        builder
            .clone()
            .header("authorization", format!("Bearer {KEY}")),
        builder.clone().header("API-KEY", KEY),
        builder
            .clone()
            .header("x-whatever-name", format!("Token {KEY}")),
        builder.header("cookie", format!("a=b; session={KEY}")),
    ]
}

#[tokio::test]
async fn the_key_is_in_no_log() {
    log::set_logger(&Recorder).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    tracing::subscriber::set_global_default(Recorder).unwrap();

    let server = Server::start(|request| match request % 2 {
        0 => full(503, "text/plain", format!("wrong key: {KEY}")),
        _ => two_choices_reply(),
    })
    .await;
    for http2 in [false, true] {
        for client in with_key(server.builder().http2_prior_knowledge(http2)) {
            let client = client.build().unwrap();
            let completions = client.send(&request()).await.unwrap();
            assert_eq!(texts(&completions).await, ["one", "two"]);
        }
        let base = format!("{}?key={}", server.base_url(), in_address());
        let client = server.builder().base_url(base).build().unwrap();
        let completions = client.send(&request()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"]);
    }
    let logged = LOGGED.lock().unwrap();
    // Both `log` and `tracing` were recorded.
    for target in ["unbraid_http", "hyper_util", "reqwest"] {
        assert!(logged.contains(target), "no line of {target}:\n{logged}");
    }
    let line = logged.lines().find(|line| line.contains(CORE));
    assert_eq!(line, None);
    for payload in ["Count.", "wrong key"] {
        let is_own = |line: &&str| line.starts_with("unbraid") && line.contains(payload);
        assert_eq!(logged.lines().find(is_own), None);
    }
}

#[tokio::test]
async fn the_key_is_in_no_debug_output() {
    let server = Server::start(|_| two_choices_reply()).await;
    let key = in_address();
    let base = format!("http://user:{key}@{}/v1?key={key}", server.address());
    for builder in with_key(server.builder().base_url(base)) {
        let shown = format!("{builder:?} {builder:#?}");
        assert!(!shown.contains(CORE), "{shown}");
        let client = builder.build().unwrap();
        let shown = format!("{client:?} {client:#?}");
        assert!(!shown.contains(CORE), "{shown}");
    }
}

#[tokio::test]
async fn the_key_is_in_no_error() {
    // A server that repeats the headers that it received.
    let server = Server::start(|request| match request % 3 {
        0 => full(401, "text/plain", format!("wrong key: Bearer {KEY}!")),
        1 => full(200, "text/html", format!("<title>{KEY}</title>")),
        _ => full(
            404,
            "application/json",
            format!(r#"{{"error":"no {}"}}"#, json(KEY)),
        ),
    })
    .await;
    for builder in with_key(server.builder()) {
        let client = builder.build().unwrap();
        for _ in 0..3 {
            let error = client.send(&request()).await.unwrap_err();
            check(&error);
            let status = error.status_error().unwrap();
            check_response(status);
        }
    }
}

/// No text of the response contains the key, and its message contained it.
#[track_caller]
fn check_response(status: &StatusError) {
    let message = status.message().unwrap();
    for text in [
        message,
        status.body_head(),
        status.kind().unwrap_or_default(),
        status.code().unwrap_or_default(),
        status.param().unwrap_or_default(),
        status.request_id().unwrap_or_default(),
        status.address(),
    ] {
        assert!(!text.contains(CORE), "{text}");
        assert!(!text.contains("seen"), "{text}");
    }
    assert!(message.contains("[key]"), "{message}");
}

#[tokio::test]
async fn the_key_is_in_no_error_however_it_is_escaped() {
    for form in forms() {
        let server = Server::start(move |_| {
            let error = format!(
                r#"{{"error":{{"message":"no {form}!","type":"{form}","code":"{form}","param":"{form}"}}}}"#
            );
            let mut reply = full(401, "application/json", error);
            if let Ok(id) = form.parse() {
                reply.headers_mut().insert("x-request-id", id);
            }
            reply
        })
        .await;
        let key = in_address();
        let query = format!("{}?key={key}", server.base_url());
        let user = server.base_url().replace("://", &format!("://user:{key}@"));
        let path = format!("{}/{key}", server.base_url());
        let mut builders = with_key(server.builder()).to_vec();
        builders.push(server.builder().base_url(query));
        builders.push(server.builder().base_url(user));
        builders.push(server.builder().base_url(path).api_key(KEY));
        for builder in builders {
            let error = builder.build().unwrap().send(&request()).await.unwrap_err();
            check(&error);
            check_response(error.status_error().unwrap());
            assert_eq!(error.status_error().unwrap().message(), Some("no [key]!"));
        }
    }
}

#[tokio::test]
async fn base64_credentials_are_in_no_error() {
    let encoded = BASE64_STANDARD.encode(format!("somebody:{KEY}"));
    let repeated = encoded.clone();
    let server =
        Server::start(move |_| full(401, "text/plain", format!("no: Basic {repeated}, {KEY}")))
            .await;
    let credentials = format!("://somebody:{}@", in_address());
    let base = server.base_url().replace("://", &credentials);
    let by_address = server.builder().base_url(base);
    let by_header = server
        .builder()
        .header("authorization", format!("Basic {encoded}"));
    for builder in [by_address, by_header] {
        let error = builder.build().unwrap().send(&request()).await.unwrap_err();
        let status = error.status_error().unwrap();
        assert!(
            !status.body_head().contains(&encoded),
            "{}",
            status.body_head()
        );
        check_response(status);
        let sent = server.requests().pop().unwrap();
        assert_eq!(sent.headers()["authorization"], format!("Basic {encoded}"));
    }
}

#[tokio::test]
async fn the_key_in_the_address_of_another_client_is_in_no_error() {
    let server = Server::start(|_| full(401, "text/plain", format!("no {KEY}"))).await;
    let address = format!("{}?key={}", server.base_url(), in_address());
    let response = server::own_client().get(address).send().await.unwrap();
    let error = response.into_completions().await.unwrap_err();
    check(&error);
    check_response(error.status_error().unwrap());
}

#[tokio::test]
async fn a_key_that_is_truncated_by_the_bound_of_an_error_body_is_replaced() {
    for missing in [1, 2, 9] {
        let server = Server::start(move |_| {
            let kept = KEY.len() - missing;
            let filler = "x".repeat(MAX_ERROR_BODY_BYTES - kept - 1);
            full(401, "text/plain", format!("{filler} {KEY} and so on"))
        })
        .await;
        let client = server.builder().api_key(KEY).build().unwrap();
        let error = client.send(&request()).await.unwrap_err();
        check_response(error.status_error().unwrap());
    }
}

#[tokio::test]
async fn the_key_is_in_no_error_without_a_response() {
    let http_server = Server::raw(|_| async {}).await;
    let key = in_address();
    for base in [
        format!("https://user:{key}@{}/v1?key={key}", http_server.address()),
        format!("http://{}/v1?key={key}", http_server.address()),
        format!("http://127.0.0.1:1/v1?key={key}"),
    ] {
        let builder = Client::builder().base_url(&base).proxy_from_env(false);
        let client = builder.retries(0).api_key(KEY).build().unwrap();
        let error = client.send(&request()).await.unwrap_err();
        check(&error);
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
async fn the_key_is_in_no_error_of_a_stream() {
    let server = Server::start(|_| {
        let mut cut = two_choices();
        cut.truncate(cut.len() / 2);
        let mut reply = full(200, "text/event-stream", cut);
        let length = "10000".parse().unwrap();
        reply.headers_mut().insert("x-length", length);
        reply
            .headers_mut()
            .insert("content-encoding", "gzip".parse().unwrap());
        reply
    })
    .await;
    let base = format!("{}?key={}", server.base_url(), in_address());
    let client = server
        .builder()
        .base_url(base)
        .api_key(KEY)
        .build()
        .unwrap();
    let completions = client.send(&request()).await.unwrap();
    check(&completions.closed().await.unwrap_err());
}

#[test]
fn the_prompt_is_in_no_debug_output() {
    let request = Request::chat("m").user("private words");
    assert!(!format!("{request:?}").contains("private"));
    let error: HttpError = Request::from_value("private".into()).unwrap_err().into();
    assert!(!format!("{error} {error:?}").contains("private"));
}

#[tokio::test]
async fn a_key_in_the_path_of_the_base_url_is_in_no_error() {
    const PATH_KEY: &str = "7Gq2mX0pL9vRtY3k";
    let server = Server::start(|_| {
        let text = format!("Cannot POST /{PATH_KEY}/v1/chat/completions");
        full(404, "text/plain", text)
    })
    .await;
    let base = format!("http://{}/{PATH_KEY}/v1", server.address());
    let client = Client::builder().base_url(base).proxy_from_env(false);
    let error = client.build().unwrap().send(&request()).await.unwrap_err();
    let status = error.status_error().unwrap();
    let expected = format!("{}/[key]/v1/chat/completions", server.address());
    assert_eq!(status.address(), expected);
    assert!(status.to_string().contains(&expected), "{status}");
    assert_eq!(
        status.message(),
        Some("Cannot POST /[key]/v1/chat/completions")
    );
    for shown in [format!("{error:?} {error}"), status.body_head().to_owned()] {
        assert!(!shown.contains(PATH_KEY), "{shown}");
    }
}
