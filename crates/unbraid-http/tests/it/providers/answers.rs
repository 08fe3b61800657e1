//! Answers in each dialect, with the content types that servers declare.

use futures::TryStreamExt;
use unbraid::{Completions, Config, Demux, Dialect, StreamError};
use unbraid_http::Provider;
use unbraid_testkit::fixture::Fixture;

use super::{OTHERS, answer, client, question, recorded};
use crate::{
    responses::texts,
    server::{Reply, Server, full},
};

/// Reads a recorded answer through a client of the provider, and compares it with `Demux`.
async fn check(provider: Provider, name: &'static str) {
    let server = Server::start(move |_| recorded(name)).await;
    let completions = client(provider, &server).send(&question()).await.unwrap();
    let mut demux = Demux::new(Config::default());
    demux.feed(&Fixture::named(name).bytes);
    demux.finish();
    assert_eq!(
        completions.aggregate_json().await,
        demux.aggregate_json(),
        "{name}"
    );
    assert_eq!(
        completions.metadata().dialect(),
        provider.dialect(),
        "{name}"
    );
}

#[tokio::test]
async fn recorded_answers_of_each_dialect() {
    for (provider, name) in [
        (
            Provider::Anthropic,
            "anthropic/anthropic-a02-a05-a15-thinking-text-call",
        ),
        (Provider::Anthropic, "anthropic/anthropic-body"),
        (
            Provider::Responses,
            "responses/openai-p22-p23-parallel-calls",
        ),
        (Provider::Responses, "responses/openai-body"),
        (Provider::Gemini, "gemini/gemini-g08-equal-calls"),
        (Provider::Gemini, "gemini/gemini-g02-array"),
        (Provider::Ollama, "ollama/ollama-o04-o05-o06-parallel-calls"),
        (Provider::Ollama, "ollama/ollama-o13-not-streamed"),
        (Provider::Cohere, "cohere/cohere-h02-h03-h04-plan-and-calls"),
        (Provider::Cohere, "cohere/cohere-body"),
    ] {
        check(provider, name).await;
    }
}

#[tokio::test]
async fn d05_the_content_type_of_bedrock_decides() {
    // A gateway with the address of Anthropic, in front of Bedrock.
    let server = Server::start(|_| recorded("bedrock/bedrock-b10-anthropic")).await;
    let client = client(Provider::Anthropic, &server);
    let completions = client.send(&question()).await.unwrap();
    assert!(completions.closed().await.is_ok());
    assert_eq!(completions.metadata().dialect(), Some(Dialect::Bedrock));
}

#[tokio::test]
async fn a_gateway_may_answer_in_another_dialect() {
    for provider in OTHERS {
        let server = Server::start(|_| answer(Provider::Anthropic, "Hi")).await;
        let completions = client(provider, &server).send(&question()).await.unwrap();
        assert_eq!(texts(&completions).await, ["Hi"]);
        assert_eq!(completions.metadata().dialect(), Some(Dialect::Anthropic));
    }
}

#[tokio::test]
async fn the_dialect_of_the_caller_takes_precedence() {
    let server = Server::start(|_| recorded("bedrock/bedrock-b10-anthropic")).await;
    let config = Completions::builder().dialect(Dialect::Anthropic);
    let builder = super::builder(Provider::Anthropic, &server).stream_config(config);
    let completions = builder.build().unwrap().send(&question()).await.unwrap();
    assert!(completions.closed().await.is_err());
    let server = Server::start(|_| answer(Provider::Anthropic, "Hi")).await;
    let config = Completions::builder().dialect(Dialect::Gemini);
    let builder = super::builder(Provider::Gemini, &server).stream_config(config);
    let completions = builder.build().unwrap().send(&question()).await.unwrap();
    let error = completions.closed().await.unwrap_err();
    assert!(matches!(error, StreamError::Empty { .. }), "{error:?}");
}

#[tokio::test]
async fn the_body_can_be_recorded_and_read() {
    for provider in OTHERS {
        let server = Server::start(move |_| answer(provider, "Hi")).await;
        let body = client(provider, &server).open(&question()).await.unwrap();
        let config = body.stream_config();
        let bytes: Vec<_> = body.try_collect().await.unwrap();
        let reads = futures::stream::iter(bytes.into_iter().map(Ok::<_, std::io::Error>));
        let completions = config.from_byte_stream(reads);
        assert_eq!(texts(&completions).await, ["Hi"]);
        assert_eq!(completions.metadata().dialect(), provider.dialect());
    }
}

#[tokio::test]
async fn a_page_is_an_error_for_every_provider() {
    for provider in OTHERS {
        let server = Server::start(|_| -> Reply {
            full(200, "text/html", "<html><title>Log in</title></html>")
        })
        .await;
        let error = client(provider, &server)
            .send(&question())
            .await
            .unwrap_err();
        assert_eq!(error.as_str(), "page");
    }
}
