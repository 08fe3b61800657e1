//! Reads an answer of Amazon Bedrock: the binary messages of `converse-stream`, from the body of any HTTP client.
//!
//! unbraid sends and signs no request to Bedrock. Send it with your own client, with a signature of AWS or a key of Bedrock,
//! and pass the body of the response on, as below, or the response itself to `ResponseExt::into_completions`.
//!
//! `cargo run --example bedrock`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io;

use futures::{Stream, stream};
use unbraid::{Completions, Error};
use unbraid_examples::CONVERSE;

/// The body of a response, in reads that end inside of messages. With reqwest it is `response.bytes_stream()`.
fn body() -> impl Stream<Item = io::Result<&'static [u8]>> + Send + 'static {
    stream::iter(CONVERSE.chunks(100).map(Ok))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let completions = Completions::from_byte_stream(body());
    let outcome = completions.first().await?.finished().await?;
    println!("{}", outcome.message.content);
    for call in &outcome.message.tool_calls {
        println!("{}({})", call.name, call.arguments);
    }
    if let Some(reason) = &outcome.finish_reason {
        println!("-- {reason}");
    }
    let usage = completions.usage().await;
    println!(
        "{:?} + {:?} tokens",
        usage.prompt_tokens, usage.completion_tokens
    );
    if let Some(dialect) = completions.metadata().dialect() {
        println!("read as {dialect}");
    }
    Ok(())
}
