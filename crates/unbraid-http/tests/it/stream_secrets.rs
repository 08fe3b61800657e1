//! The key is in no error that a server reports within a successful response, however the response is read.

use unbraid::{Completions, Config, Demux, StreamError, Updates};
use unbraid_http::{ChoiceStrategy, Client, ResponseExt};

use crate::{
    responses::request,
    secrets::{CORE, KEY, forms, in_address, with_key},
    server::{self, Reply, Server, full},
};

/// Bodies that repeat a form of the key in an error.
fn bodies(form: &str) -> Vec<String> {
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

fn reply(body: &str) -> Reply {
    let kind = match body.starts_with('{') {
        true => "application/json",
        false => "text/event-stream",
    };
    full(200, kind, body.to_owned())
}

/// Everything that can be printed of a completion.
async fn printed(completions: &Completions) -> String {
    let closed = completions.closed().await;
    let mut printed = vec![
        format!("{closed:?} {}", completions.aggregate_json().await),
        format!("{:?} {:?}", completions.metadata(), completions.warnings()),
    ];
    if let Err(error) = &closed {
        printed.push(format!("{error} {error:#?} {}", serde_json::json!(error)));
        if let StreamError::Server(server) = error {
            printed.push(format!("{:?} {:?}", server.kind(), server.code()));
            printed.push(format!("{:?} {}", server.message(), server.body()));
        }
    }
    let mut choices = completions.choices();
    while let Some(Ok(choice)) = choices.next().await {
        let outcome = choice.outcome().await;
        let end = &outcome.end;
        printed.push(format!(
            "{outcome:?} {end:?} {}",
            serde_json::json!(end.cause())
        ));
    }
    let mut events = completions.events();
    while let Some(Ok(event)) = events.next().await {
        printed.push(serde_json::json!(event).to_string());
    }
    printed.concat()
}

#[track_caller]
fn check(printed: &str) {
    assert!(!printed.contains(CORE), "{printed}");
    assert!(!printed.contains("seen"), "{printed}");
    assert!(printed.contains("[key]"), "{printed}");
}

/// Sends one request by each method, and reads the response.
async fn check_every_method(client: &Client) {
    for choices in [
        ChoiceStrategy::Native,
        ChoiceStrategy::FanOut,
        ChoiceStrategy::Auto,
    ] {
        let request = request().choice_strategy(choices);
        check(&printed(&client.send(&request).await.unwrap()).await);
    }
    check(&printed(&client.fan_out(&request(), 2)).await);
    let body = client.open(&request()).await.unwrap();
    check(&printed(&body.into_completions()).await);
    // The command replaces the whole configuration.
    let body = client.open(&request()).await.unwrap();
    let config = body.stream_config().config(Config::default());
    check(&printed(&config.from_byte_stream(body)).await);
    let body = client.open(&request()).await.unwrap();
    let config = Config::default().with_redact(body.redact());
    let mut updates = Updates::with_config(body, &config);
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
async fn the_key_is_in_no_error_within_a_successful_response() {
    for form in forms() {
        for body in bodies(&form) {
            let server = Server::start(move |_| reply(&body)).await;
            let client = server.builder().api_key(KEY).build().unwrap();
            check_every_method(&client).await;
        }
    }
}

#[tokio::test]
async fn the_key_of_every_place_is_in_no_error_within_a_successful_response() {
    let body = bodies(&forms()[0])[1].clone();
    let server = Server::start(move |_| reply(&body)).await;
    let key = in_address();
    let query = format!("{}?key={key}", server.base_url());
    let user = server.base_url().replace("://", &format!("://user:{key}@"));
    let mut builders = with_key(server.builder()).to_vec();
    builders.push(server.builder().base_url(query));
    builders.push(server.builder().base_url(user));
    for builder in builders {
        check_every_method(&builder.build().unwrap()).await;
    }
}

#[tokio::test]
async fn another_client_replaces_the_secrets_of_its_address() {
    let body = bodies(&forms()[0])[1].clone();
    let server = Server::start(move |_| reply(&body)).await;
    let address = format!("{}?key={}", server.base_url(), in_address());
    let response = server::own_client().get(address).send().await.unwrap();
    check(&printed(&response.into_completions().await.unwrap()).await);
}
