//! The request that the command line describes.

use std::{
    io::{self, IsTerminal, Read},
    path::PathBuf,
};

use clap::{ValueHint, builder::PathBufValueParser};
use serde_json::{Map, Value, json};
use unbraid_core::limits::MAX_CHOICES;
use unbraid_http::{Provider, Request};

use super::{model::ModelArg, tools::read_tools};
use crate::{
    args::{self, number},
    exit::Failure,
    input::Input,
};

/// A question, or a whole request with changes.
#[derive(Debug, clap::Args)]
pub(super) struct QuestionArgs {
    /// The question; with `-`, or without a question in a pipe, it is read from the standard input
    question: Option<String>,
    /// How many answers to request; without it, as many as `--request` says, or else one
    #[arg(short = 'n', long = "choices", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_CHOICES as i64))]
    n: Option<u32>,
    #[command(flatten)]
    model: ModelArg,
    /// The system message before the question
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The sampling temperature
    #[arg(long, value_name = "T", value_parser = temperature)]
    temperature: Option<f64>,
    /// The maximum number of tokens of each choice
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// The tools that the model may call: a file with the API's JSON array, or an array of functions
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new(), value_hint = ValueHint::FilePath)]
    tools: Option<PathBuf>,
    /// A whole request as JSON, or `-` for the standard input; other options override its fields
    #[arg(long, value_name = "FILE", value_parser = args::input(), value_hint = ValueHint::FilePath)]
    request: Option<Input>,
}

/// The two names of the limit of tokens.
pub(super) const MAX_TOKENS: &str = "max_tokens";
pub(super) const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";

/// The fields of a request.
type Body = Map<String, Value>;

impl QuestionArgs {
    /// The model that the command line names.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.explicit()
    }

    /// Builds the request from the arguments, files, the standard input and the environment. A model of `--to` takes precedence.
    /// `limit` is the name of the limit of tokens in a new chat.
    pub(super) fn request(
        &self,
        provider: Provider,
        model: Option<&str>,
        limit: &'static str,
    ) -> Result<Request, Failure> {
        if self.request == Some(Input::Stdin) && self.question.as_deref() == Some("-") {
            return Err(usage(
                &"the standard input cannot be the request and the question",
            ));
        }
        let mut body = match &self.request {
            Some(input) => read_request(input)?,
            None => self.new_body(provider, model)?,
        };
        if let Some(model) = model.or_else(|| self.model.explicit()) {
            body.insert("model".into(), json!(model));
        }
        self.add_messages(&mut body)?;
        if let Some(path) = &self.tools {
            body.insert("tools".into(), read_tools(path)?);
        }
        if let Some(n) = self.n {
            body.insert("n".into(), json!(n));
        }
        if let Some(temperature) = self.temperature {
            body.insert("temperature".into(), json!(temperature));
        }
        if let Some(tokens) = self.max_tokens {
            body.insert(limit_name(&body, limit).into(), json!(tokens));
        }
        Request::from_value(Value::Object(body)).map_err(|error| usage(&error))
    }

    /// A new request, with its model only.
    fn new_body(&self, provider: Provider, model: Option<&str>) -> Result<Body, Failure> {
        let is_openai = matches!(provider, Provider::OpenAi | Provider::Responses);
        let own = if is_openai {
            self.model.name()
        } else {
            self.model.explicit() // the variable names a model of OpenAI
        };
        let model = model.or(own).ok_or_else(|| match is_openai {
            true => usage(&"no model: name one with -m, or in OPENAI_MODEL"),
            false => usage(&"no model: name one with -m"),
        })?;
        Ok(Body::from_iter([("model".into(), model.into())]))
    }

    /// Adds the question after the messages, and the system message before them.
    fn add_messages(&self, body: &mut Body) -> Result<(), Failure> {
        let question = self.question_text()?;
        if body.contains_key("prompt") && !body.contains_key("messages") {
            if self.system.is_some() {
                return Err(usage(
                    &"--system is for chats, but the request has a prompt",
                ));
            }
            if let Some(question) = question {
                body.insert("prompt".into(), question.into());
            }
            return Ok(());
        }
        if question.is_none() && self.system.is_none() {
            return Ok(());
        }
        let messages = body.entry("messages").or_insert_with(|| json!([]));
        let Value::Array(messages) = messages else {
            return Err(usage(&"the request's messages are not an array"));
        };
        if let Some(system) = &self.system {
            let message = json!({ "role": "system", "content": system });
            match messages.first_mut() {
                Some(first) if first.get("role") == message.get("role") => *first = message,
                _ => messages.insert(0, message),
            }
        }
        messages.extend(question.map(|text| json!({ "role": "user", "content": text })));
        Ok(())
    }

    /// The text of the question, or `None` if a whole request already contains it.
    fn question_text(&self) -> Result<Option<String>, Failure> {
        let text = match &self.question {
            Some(text) if text != "-" => text.clone(),
            None if self.request.is_some() => return Ok(None),
            None if io::stdin().is_terminal() => {
                return Err(usage(
                    &"no question: write it after the options, or pipe it in",
                ));
            }
            Some(_) | None => {
                let mut text = String::new();
                let read = io::stdin().read_to_string(&mut text);
                read.map_err(|error| Input::Stdin.failure(error))?;
                text.trim_end().to_owned()
            }
        };
        if text.trim().is_empty() {
            return Err(usage(&"the question is empty"));
        }
        Ok(Some(text))
    }
}

/// The name of the limit of tokens. Both names set the same limit, and servers reject a request with both, so that the name in
/// the request is kept. Text completions have only the older one.
fn limit_name(body: &Body, of_chats: &'static str) -> &'static str {
    const NAMES: [&str; 2] = [MAX_COMPLETION_TOKENS, MAX_TOKENS];
    let given = NAMES.into_iter().find(|name| body.contains_key(*name));
    let is_text = body.contains_key("prompt") && !body.contains_key("messages");
    given.unwrap_or(if is_text { MAX_TOKENS } else { of_chats })
}

/// How many choices a body requests: `n` for each prompt.
pub(super) fn requested_choices(body: &Value) -> u32 {
    let n = body.get("n").and_then(Value::as_u64).unwrap_or(1);
    // An array of numbers is one prompt, in tokens.
    let prompts = match body.get("prompt") {
        Some(Value::Array(prompts)) if !prompts.iter().all(Value::is_number) => prompts.len(),
        _ => 1,
    };
    u32::try_from(n.saturating_mul(prompts as u64)).unwrap_or(u32::MAX)
}

/// The first line of the question: of the last message, or of the prompt.
pub(super) fn title(body: &Value) -> String {
    let messages = body.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last()?.get("content")?.as_str());
    let text = last.or_else(|| body.get("prompt")?.as_str());
    let line = text.and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    line.unwrap_or("chat").trim().to_owned()
}

fn read_request(input: &Input) -> Result<Body, Failure> {
    let bytes = input.read_to_end()?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(usage(&format_args!("{input}: a request is a JSON object"))),
        Err(error) => Err(usage(&format_args!(
            "{input}: a request is a JSON object: {error}"
        ))),
    }
}

fn temperature(text: &str) -> Result<f64, String> {
    number(text, 0.0..=100.0)
}

fn usage(message: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(message.to_string())
}
