//! The contenders. Each one turns a request into the texts of eight consumers.

use std::{fmt::Display, io, net::SocketAddr};

use async_openai::{
    Client,
    config::OpenAIConfig,
    types::chat::{
        ChatCompletionRequestUserMessage, CreateChatCompletionRequest,
        CreateChatCompletionRequestArgs, CreateChatCompletionStreamResponse,
    },
};
use futures::StreamExt;
use unbraid_http::Request;

use crate::{
    body::{Answer, BRAIDED},
    contender::{Item, ManualDemux, Record, actors},
};

const MODEL: &str = "gpt-4o";
const PROMPT: &str = "Explain streams.";
const KEY: &str = "sk-loopback";
const N: u8 = BRAIDED.choices as u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// Reads the body with the HTTP client of both peers and drops it: the minimum cost of both.
    Reqwest,
    AsyncOpenai,
    Unbraid,
}

impl Peer {
    pub(super) const ALL: [Self; 3] = [Self::Reqwest, Self::AsyncOpenai, Self::Unbraid];

    /// Those that separate the choices.
    pub(super) const READERS: [Self; 2] = [Self::AsyncOpenai, Self::Unbraid];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reqwest => "reqwest",
            Self::AsyncOpenai => "async-openai",
            Self::Unbraid => "unbraid",
        }
    }
}

/// A client for each peer, created once and used for all requests.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    base: String,
    reqwest: reqwest::Client,
    async_openai: Client<OpenAIConfig>,
    unbraid: unbraid_http::Client,
}

impl Clients {
    pub(super) fn new(server: SocketAddr) -> io::Result<Self> {
        // reqwest requires a TLS provider, although nothing is encrypted here.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let base = format!("http://{server}/v1");
        let config = OpenAIConfig::new().with_api_base(&base).with_api_key(KEY);
        // The same as `with_config`, but without the proxies of the environment.
        let reqwest = || reqwest::Client::builder().no_proxy().build();
        let unbraid = unbraid_http::Client::builder().proxy_from_env(false);
        Ok(Self {
            reqwest: reqwest().map_err(io::Error::other)?,
            async_openai: Client::build(reqwest().map_err(io::Error::other)?, config),
            unbraid: unbraid
                .base_url(&base)
                .api_key(KEY)
                .build()
                .map_err(io::Error::other)?,
            base,
        })
    }

    /// Sends the request and reads the answer to its end. Returns `None` for the peer that does not separate the choices.
    pub(super) async fn run(self, peer: Peer, tally: impl Record) -> io::Result<Option<Answer>> {
        match peer {
            Peer::Reqwest => return self.floor().await.map(|()| None),
            Peer::AsyncOpenai => self.by_async_openai(tally).await,
            Peer::Unbraid => self.by_unbraid(tally).await,
        }
        .map(Some)
    }

    async fn floor(self) -> io::Result<()> {
        let url = format!("{}/chat/completions", self.base);
        let answer = self.reqwest.post(url).body("{}").send().await;
        let mut reads = answer.map_err(io::Error::other)?.bytes_stream();
        while let Some(read) = reads.next().await {
            std::hint::black_box(read.map_err(io::Error::other)?);
        }
        Ok(())
    }

    async fn by_async_openai(self, tally: impl Record) -> io::Result<Answer> {
        let chat = self.async_openai.chat();
        let stream = chat.create_stream(request()?).await;
        let mut chunks = stream.map_err(io::Error::other)?;
        let mut demux = ManualDemux::new(tally);
        while let Some(chunk) = chunks.next().await {
            send(chunk.map_err(io::Error::other)?, &mut demux);
        }
        Ok(demux.finish().await)
    }

    async fn by_unbraid(self, tally: impl Record) -> io::Result<Answer> {
        let request = Request::chat(MODEL).user(PROMPT).n(N.into());
        let completions = self.unbraid.send(&request).await;
        Ok(actors::read(completions.map_err(io::Error::other)?, tally).await)
    }
}

fn request() -> io::Result<CreateChatCompletionRequest> {
    CreateChatCompletionRequestArgs::default()
        .model(MODEL)
        .n(N)
        .messages([ChatCompletionRequestUserMessage::from(PROMPT).into()])
        .build()
        .map_err(io::Error::other)
}

fn send(chunk: CreateChatCompletionStreamResponse, demux: &mut ManualDemux<impl Record>) {
    for choice in chunk.choices {
        if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
            demux.send(choice.index, Item::Text(text));
        }
        for call in choice.delta.tool_calls.into_iter().flatten() {
            let arguments = call.function.and_then(|function| function.arguments);
            if let Some(text) = arguments.filter(|text| !text.is_empty()) {
                demux.send(choice.index, Item::Arguments(text));
            }
        }
    }
}

/// An error with the name of the peer.
pub(super) fn peer_error(peer: Peer, error: impl Display) -> io::Error {
    io::Error::other(format!("{}: {error}", peer.name()))
}
