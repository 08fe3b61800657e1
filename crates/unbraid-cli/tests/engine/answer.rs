//! The comparable part of an answer: its choices by index. Ids, times and the order of chunks differ from run to run.

use std::collections::BTreeMap;

use serde_json::Value;
use unbraid::{Choice, Completions};

/// The choices by index.
pub(crate) type Answer = BTreeMap<u64, ChoiceContent>;

/// The content of one choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChoiceContent {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// The name and the arguments of each call.
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) finish: Option<String>,
}

/// Reads a response that is not streamed: of a server, of `unbraid collect`, or of another client.
#[track_caller]
pub(crate) fn from_response(response: &Value) -> Answer {
    let choices = response["choices"].as_array();
    let choices = choices.unwrap_or_else(|| panic!("no choices: {response}"));
    let index = |choice: &Value| choice["index"].as_u64().unwrap();
    choices
        .iter()
        .map(|choice| (index(choice), content(choice)))
        .collect()
}

fn content(choice: &Value) -> ChoiceContent {
    let message = match &choice["message"] {
        Value::Null => choice,
        message => message,
    };
    let first = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| message[*name].as_str());
        found.unwrap_or_default().to_owned()
    };
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let mut content = ChoiceContent {
        text: first(["content", "text"]),
        reasoning: first(["reasoning_content", "reasoning"]),
        calls: calls.map(call).collect(),
        finish: choice["finish_reason"].as_str().map(str::to_owned),
    };
    if content.finish.as_deref() == Some("length") {
        // The engine replaces half a character at the cut in this response, but does not stream it.
        let kept = content.text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        content.text.truncate(kept.len());
    }
    content
}

fn call(call: &Value) -> (String, String) {
    let part = |name: &str| call["function"][name].as_str().unwrap().to_owned();
    (part("name"), part("arguments"))
}

/// Reads the handles while the stream runs, each choice in its own task.
pub(crate) async fn from_handles(completions: &Completions) -> Answer {
    let mut choices = completions.choices();
    let mut readers = Vec::new();
    while let Some(choice) = choices.next().await {
        readers.push(tokio::spawn(from_choice(choice.unwrap())));
    }
    let mut answer = Answer::new();
    for reader in readers {
        let (index, content) = reader.await.unwrap();
        let duplicate = answer.insert(index, content);
        assert_eq!(duplicate, None, "choice {index} appeared twice");
    }
    answer
}

async fn from_choice(choice: Choice) -> (u64, ChoiceContent) {
    let mut content = ChoiceContent::default();
    let mut text = choice.content();
    while let Some(delta) = text.next().await {
        content.text.push_str(&delta.unwrap());
    }
    let mut reasoning = choice.reasoning();
    while let Some(delta) = reasoning.next().await {
        content.reasoning.push_str(&delta.unwrap());
    }
    let mut calls = choice.tool_calls();
    while let Some(call) = calls.next().await {
        let call = call.unwrap();
        let mut arguments = String::new();
        let mut fragments = call.arguments();
        while let Some(fragment) = fragments.next().await {
            arguments.push_str(&fragment.unwrap());
        }
        content.calls.push((call.name().to_string(), arguments));
    }
    let finished = choice.finished().await.unwrap();
    assert_eq!(content.text, finished.message.content);
    assert_eq!(content.reasoning, finished.message.reasoning);
    content.finish = finished
        .finish_reason
        .map(|reason| reason.as_str().to_owned());
    (u64::from(choice.index().0), content)
}
