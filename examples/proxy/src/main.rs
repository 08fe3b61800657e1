//! Serves a page that asks a question and shows the choices of the answer side by side, while they are written.
//!
//! `cargo run -p unbraid-proxy-example [-- PORT]` answers from a recording. With `OPENAI_API_KEY` or `OPENAI_BASE_URL` set
//! it asks that server, for the model of `OPENAI_MODEL`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error, net::Ipv4Addr, time::Duration};

use tokio::net::TcpListener;
use unbraid_http::Client;
use unbraid_proxy_example::{Proxy, Recording, demo};

const HAIKUS: &str = include_str!("../../streams/haikus.sse");

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = env::args().nth(1).map_or(Ok(8080), |port| port.parse())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    let has_provider = ["OPENAI_API_KEY", "OPENAI_BASE_URL"].map(env::var_os);
    let is_demo = has_provider.iter().all(Option::is_none);
    let client = if is_demo {
        let demo_url = format!("http://{address}/demo");
        Client::builder()
            .base_url(demo_url)
            .proxy_from_env(false)
            .build()?
    } else {
        Client::from_env()?
    };
    let model = env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-4o-mini".to_owned());
    let mut app = Proxy::new(client, model).router();
    if is_demo {
        app = app.merge(demo(Recording::new(HAIKUS, Duration::from_millis(80))));
    }
    println!("open http://{address}/ (ctrl-c ends the server)");
    axum::serve(listener, app).await?;
    Ok(())
}
