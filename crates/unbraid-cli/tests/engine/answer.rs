//! What counts of an answer: the choices by index. Ids, times and the order of chunks differ from run to run.

use std::collections::BTreeMap;

use serde_json::Value;
use unbraid::{Choice, Completions};

/// The choices by index.
pub(crate) type Answer = BTreeMap<u64, Said>;

/// One choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Name and arguments of each.
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) finish: Option<String>,
}

/// A whole response: from a server, from `unbraid collect`, or from another client.
#[track_caller]
pub(crate) fn of_response(response: &Value) -> Answer {
    let choices = response["choices"].as_array();
    let choices = choices.unwrap_or_else(|| panic!("no choices: {response}"));
    let index = |choice: &Value| choice["index"].as_u64().unwrap();
    choices
        .iter()
        .map(|choice| (index(choice), said(choice)))
        .collect()
}

fn said(choice: &Value) -> Said {
    let message = match &choice["message"] {
        Value::Null => choice,
        message => message,
    };
    let first = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| message[*name].as_str());
        found.unwrap_or_default().to_owned()
    };
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let mut said = Said {
        text: first(["content", "text"]),
        reasoning: first(["reasoning_content", "reasoning"]),
        calls: calls.map(call).collect(),
        finish: choice["finish_reason"].as_str().map(str::to_owned),
    };
    if said.finish.as_deref() == Some("length") {
        // Half a character at the cut: the engine streams nothing of it, but puts this into a whole response.
        let whole = said.text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        said.text.truncate(whole.len());
    }
    said
}

fn call(call: &Value) -> (String, String) {
    let part = |name: &str| call["function"][name].as_str().unwrap().to_owned();
    (part("name"), part("arguments"))
}

/// What the handles tell while the stream runs, each choice read by itself.
pub(crate) async fn of_handles(completions: &Completions) -> Answer {
    let mut choices = completions.choices();
    let mut readers = Vec::new();
    while let Some(choice) = choices.next().await {
        readers.push(tokio::spawn(of_choice(choice.unwrap())));
    }
    let mut answer = Answer::new();
    for reader in readers {
        let (index, said) = reader.await.unwrap();
        let twice = answer.insert(index, said);
        assert_eq!(twice, None, "choice {index} came twice");
    }
    answer
}

async fn of_choice(choice: Choice) -> (u64, Said) {
    let mut said = Said::default();
    let mut content = choice.content();
    while let Some(piece) = content.next().await {
        said.text.push_str(&piece.unwrap());
    }
    let mut reasoning = choice.reasoning();
    while let Some(piece) = reasoning.next().await {
        said.reasoning.push_str(&piece.unwrap());
    }
    let mut calls = choice.tool_calls();
    while let Some(call) = calls.next().await {
        let call = call.unwrap();
        let mut arguments = String::new();
        let mut pieces = call.arguments();
        while let Some(piece) = pieces.next().await {
            arguments.push_str(&piece.unwrap());
        }
        said.calls.push((call.name().to_string(), arguments));
    }
    let finished = choice.finished().await.unwrap();
    assert_eq!(said.text, finished.message.content);
    assert_eq!(said.reasoning, finished.message.reasoning);
    said.finish = finished
        .finish_reason
        .map(|reason| reason.as_str().to_owned());
    (u64::from(choice.index().0), said)
}
