//! Sends a request built with async-openai's types. Only `stream` and `stream_options` are added to it.
//!
//! `cargo run --example typed_request`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use async_openai::types::chat::{
    ChatCompletionRequestSystemMessage, ChatCompletionRequestUserMessage,
    CreateChatCompletionRequestArgs,
};
use unbraid_examples::{ANSWER, serve};
use unbraid_http::{Client, Request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let typed = CreateChatCompletionRequestArgs::default()
        .model("gpt-4o-mini")
        .temperature(0.2)
        .messages([
            ChatCompletionRequestSystemMessage::from("Answer in one sentence.").into(),
            ChatCompletionRequestUserMessage::from("What is a tide table?").into(),
        ])
        .build()?;
    let request = Request::from_serialize(&typed)?;
    println!("{:#}\n", request.body());

    let client = Client::builder()
        .base_url(serve(ANSWER).await?)
        .proxy_from_env(false) // the server runs in this process
        .api_key("a key")
        .build()?;
    let completions = client.send(&request).await?;
    println!("{}", completions.first().await?.text().await?);
    println!(
        "{} tokens",
        completions.usage().await.total_tokens.unwrap_or(0)
    );
    Ok(())
}
