//! The second turn: answers as a server streamed them, and the messages that it receives back.

use serde_json::{Value, json};
use unbraid::{ChoiceOutcome, Config, Demux};
use unbraid_http::Request;
use unbraid_testkit::fixture::{Corpus, Fixture, corpus};

use crate::server::{Server, full};

/// Sends a request, answers each choice with a second one, and returns the messages of those.
async fn second_turn(fixture: &'static str, n: u32) -> Vec<Value> {
    let server =
        Server::start(move |_| full(200, "text/event-stream", Fixture::named(fixture).bytes)).await;
    let client = server.client();
    let first = Request::chat("m").user("Heat the house.").n(n);
    let completions = client.send(&first).await.unwrap();
    let mut outcomes: Vec<ChoiceOutcome> = Vec::new();
    let mut choices = completions.choices();
    while let Some(choice) = choices.next().await {
        outcomes.push(choice.unwrap().outcome().await);
    }
    outcomes.sort_by_key(|outcome| outcome.choice);
    for outcome in &outcomes {
        let mut next = first.clone().n(1).reply(outcome);
        for call in &outcome.message.tool_calls {
            next = next.call_result(call, "done");
        }
        drop(client.send(&next).await.unwrap());
    }
    let requests = server.requests();
    let bodies = requests.iter().skip(1).map(|request| {
        let mut body: Value = serde_json::from_slice(request.body()).unwrap();
        body["messages"].take()
    });
    bodies.collect()
}

#[tokio::test]
async fn t40_thought_signatures_of_calls_return_to_the_server() {
    let turns = second_turn("openai_chat/gemini-t07-t40-parallel-calls", 1).await;
    assert_eq!(
        turns,
        [json!([
            { "role": "user", "content": "Heat the house." },
            { "role": "assistant", "tool_calls": [
                {
                    "id": "function-call-8811",
                    "type": "function",
                    "function": { "name": "heat", "arguments": "{\"room\":\"attic\"}" },
                    "extra_content": { "google": { "thought_signature": "CpcDAdHtim9x" } },
                },
                {
                    "id": "function-call-8812",
                    "type": "function",
                    "function": { "name": "heat", "arguments": "{\"room\":\"kitchen\"}" },
                },
            ] },
            { "role": "tool", "tool_call_id": "function-call-8811", "content": "done" },
            { "role": "tool", "tool_call_id": "function-call-8812", "content": "done" },
        ])]
    );
}

#[tokio::test]
async fn r04_r10_the_details_of_each_choice_return_to_the_server() {
    let turns = second_turn("openai_chat/openrouter-r04-r10-details-only", 2).await;
    assert_eq!(turns.len(), 2);
    for turn in turns {
        let message = turn[1].as_object().unwrap();
        assert!(message["reasoning_details"].is_array(), "{turn}");
        assert!(!message.contains_key("reasoning"), "{turn}");
    }
}

/// Checks the form of a reply: what every provider requires of an assistant's message.
fn check(name: &str, message: &Value) {
    let fields = message.as_object().unwrap();
    assert_eq!(message["role"], "assistant", "{name}");
    assert!(
        fields.values().all(|value| !value.is_null()),
        "{name}: {message}"
    );
    let calls = message
        .get("tool_calls")
        .map(|calls| calls.as_array().unwrap());
    assert!(calls.is_none_or(|calls| !calls.is_empty()), "{name}");
    let mut functions: Vec<&Value> = fields.get("function_call").into_iter().collect();
    for call in calls.into_iter().flatten() {
        assert!(call.get("index").is_none(), "{name}: {call}");
        assert!(
            call.as_object()
                .unwrap()
                .values()
                .all(|value| !value.is_null()),
            "{name}: {call}"
        );
        functions.extend(call.get("function"));
    }
    for function in &functions {
        let arguments = function["arguments"].as_str().unwrap();
        assert!(!arguments.trim().is_empty(), "{name}: {function}");
    }
    let has_other_content = ["tool_calls", "function_call", "audio"];
    let may_omit = has_other_content
        .iter()
        .any(|field| fields.contains_key(*field));
    assert!(
        may_omit || fields.contains_key("content"),
        "{name}: {message}"
    );
}

#[test]
fn replies_to_all_streams_have_the_form_that_providers_require() {
    let fixtures = Fixture::all()
        .into_iter()
        .map(|fixture| (fixture.name, fixture.bytes));
    let mut streams: Vec<(String, Vec<u8>)> = fixtures.collect();
    if let Corpus::Streams(recorded) = corpus() {
        let named = recorded.into_iter();
        streams.extend(named.map(|(path, bytes)| (path.display().to_string(), bytes)));
    }
    let mut with_calls = 0;
    for (name, bytes) in streams {
        let mut demux = Demux::new(Config::default());
        demux.feed(&bytes);
        demux.finish();
        for choice in demux.choices() {
            let message = choice.message();
            with_calls += usize::from(!message.tool_calls.is_empty());
            let request = Request::chat("m").reply(&message);
            check(&name, &request.get("messages").unwrap()[0]);
        }
    }
    assert!(with_calls > 50, "{with_calls} answers with calls");
}
