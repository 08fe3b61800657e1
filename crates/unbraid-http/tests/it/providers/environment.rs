//! The variables of each provider, in processes of their own: those of this one are shared by all tests.

use std::{env, process::Command};

use unbraid_http::{Client, Provider};

use super::{OTHERS, answer, question};
use crate::server::Server;

const NAME: &str = "UNBRAID_TEST_PROVIDER";

/// Run by the test below.
#[tokio::test]
#[ignore = "the test below runs it in a process of its own"]
async fn sends_by_the_environment() {
    let provider: Provider = env::var(NAME).unwrap().parse().unwrap();
    let client = Client::builder_for(provider).env().build().unwrap();
    let completions = client.send(&question()).await.unwrap();
    let text = completions.first().await.unwrap().text().await.unwrap();
    assert_eq!(text, "Hi");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_variables_of_each_provider_are_read() {
    for provider in OTHERS {
        for key_variable in provider.key_variables() {
            let server = Server::start(move |_| answer(provider, "Hi")).await;
            let mut process = Command::new(env::current_exe().unwrap());
            let test = "providers::environment::sends_by_the_environment";
            process.args(["--exact", test, "--ignored"]);
            for other in OTHERS {
                process.env_remove(other.base_url_variable());
                other.key_variables().iter().for_each(|name| {
                    process.env_remove(name);
                });
            }
            let base = match provider {
                Provider::Ollama => server.address().to_string(), // as Ollama itself has it
                _ => format!("http://{}", server.address()),
            };
            process
                .env(NAME, provider.as_str())
                .env(provider.base_url_variable(), base)
                .env(provider.key_variables()[0], "")
                .env(key_variable, "a-key\n")
                .env("NO_PROXY", "*");
            let output = tokio::task::spawn_blocking(move || process.output());
            let output = output.await.unwrap().unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(stdout.contains("1 passed"), "{provider}: {stdout}");
            let [seen] = server.requests().try_into().unwrap();
            let header = match provider {
                Provider::Anthropic => "x-api-key",
                Provider::Gemini => "x-goog-api-key",
                _ => "authorization",
            };
            let value = seen.headers()[header].to_str().unwrap();
            assert_eq!(value.trim_start_matches("Bearer "), "a-key", "{provider}");
        }
    }
}
