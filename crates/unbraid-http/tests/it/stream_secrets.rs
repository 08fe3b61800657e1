//! The key is in no error that a server reports within a successful answer, whichever way that is read.

use unbraid::{Completions, Config, Demux, StreamError, Updates};
use unbraid_http::{ChoiceStrategy, Client, ResponseExt};

use crate::{
    answers::two,
    secrets::{CORE, KEY, forms, in_address, with_key},
    server::{self, Answer, Server, full},
};

/// Answers of status 200 that repeat a form of the key in an error.
fn answers(form: &str) -> Vec<String> {
    let object =
        format!(r#"{{"message":"no {form}!","type":"{form}","code":"{form}","param":"{form}"}}"#);
    let content = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let entry = format!(r#"{{"index":0,"delta":{{}},"error":{object},"note":"{form}"}}"#);
    vec![
        format!("data: {{\"error\":{object}}}\n\n"),
        format!("data: {content}\n\ndata: {{\"error\":{object},\"note\":\"{form}\"}}\n\n"),
        format!("data: {content}\n\nevent: error\ndata: {object}\n\n"),
        format!("data: {{\"choices\":[{entry}]}}\n\ndata: [DONE]\n\n"),
        format!("{{\"error\":{object}}}"),
        format!(r#"{{"object":"error","message":"no {form}!","code":401}}"#),
        format!(r#"{{"message":"no {form}!"}}"#),
    ]
}

fn answer(body: &str) -> Answer {
    let kind = match body.starts_with('{') {
        true => "application/json",
        false => "text/event-stream",
    };
    full(200, kind, body.to_owned())
}

/// All that is shown of a completion, however it ended.
async fn shown(completions: &Completions) -> String {
    let closed = completions.closed().await;
    let mut shown = vec![
        format!("{closed:?} {}", completions.aggregate_json().await),
        format!("{:?} {:?}", completions.metadata(), completions.warnings()),
    ];
    if let Err(error) = &closed {
        shown.push(format!("{error} {error:#?} {}", serde_json::json!(error)));
        if let StreamError::Server(server) = error {
            shown.push(format!("{:?} {:?}", server.kind(), server.code()));
            shown.push(format!("{:?} {}", server.message(), server.body()));
        }
    }
    let mut choices = completions.choices();
    while let Some(Ok(choice)) = choices.next().await {
        let ended = choice.outcome().await;
        let end = &ended.end;
        shown.push(format!(
            "{ended:?} {end:?} {}",
            serde_json::json!(end.cause())
        ));
    }
    let mut events = completions.events();
    while let Some(Ok(event)) = events.next().await {
        shown.push(serde_json::json!(event).to_string());
    }
    shown.concat()
}

#[track_caller]
fn check(shown: &str) {
    assert!(!shown.contains(CORE), "{shown}");
    assert!(!shown.contains("seen"), "{shown}");
    assert!(shown.contains("[key]"), "{shown}");
}

/// Sends one request to a server that gives this body, by each of the ways in which an answer is read.
async fn each_way(client: &Client) {
    for choices in [
        ChoiceStrategy::Native,
        ChoiceStrategy::FanOut,
        ChoiceStrategy::Auto,
    ] {
        let request = two().choice_strategy(choices);
        check(&shown(&client.send(&request).await.unwrap()).await);
    }
    check(&shown(&client.fan_out(&two(), 2)).await);
    let body = client.open(&two()).await.unwrap();
    check(&shown(&body.into_completions()).await);
    // The command sets all options anew.
    let body = client.open(&two()).await.unwrap();
    let settings = body.settings().config(Config::default());
    check(&shown(&settings.from_byte_stream(body)).await);
    let body = client.open(&two()).await.unwrap();
    let options = Config::default().with_redact(body.redact());
    let mut updates = Updates::with_config(body, &options);
    let (mut errors, mut demux) = (Vec::new(), Demux::new(Config::default()));
    while let Some(Ok(update)) = updates.next().await {
        errors.push(format!("{:?} {:?}", update.error, update.metadata));
        demux.feed_update(&update);
    }
    check(&errors.concat());
    demux.finish();
    let closed = demux.closed();
    assert!(!format!("{closed:?}{}", demux.aggregate_json()).contains(CORE));
}

#[tokio::test]
async fn it_is_in_no_error_within_a_successful_answer() {
    for form in forms() {
        for body in answers(&form) {
            let server = Server::start(move |_| answer(&body)).await;
            let client = server.builder().api_key(KEY).build().unwrap();
            each_way(&client).await;
        }
    }
}

#[tokio::test]
async fn wherever_the_key_stands_it_is_in_no_error_within_a_successful_answer() {
    let body = answers(&forms()[0])[1].clone();
    let server = Server::start(move |_| answer(&body)).await;
    let key = in_address();
    let query = format!("{}?key={key}", server.base_url());
    let user = server.base_url().replace("://", &format!("://user:{key}@"));
    let mut builders = with_key(server.builder()).to_vec();
    builders.push(server.builder().base_url(query));
    builders.push(server.builder().base_url(user));
    for builder in builders {
        each_way(&builder.build().unwrap()).await;
    }
}

#[tokio::test]
async fn a_client_of_ones_own_hides_what_stands_in_its_address() {
    let body = answers(&forms()[0])[1].clone();
    let server = Server::start(move |_| answer(&body)).await;
    let address = format!("{}?key={}", server.base_url(), in_address());
    let response = server::own_client().get(address).send().await.unwrap();
    check(&shown(&response.into_completions().await.unwrap()).await);
}
