//! The second turn: tools, an answer with calls as each provider streams it, and the request that follows.

use serde_json::{Value, json};
use unbraid_http::{Provider, ReplyPolicy, ReplyReasoning, Request};

use super::{answer, client, recorded};
use crate::server::{Reply, Server, full};

fn tools() -> Value {
    json!([{ "type": "function", "function": { "name": "weather", "description": "Returns the weather." } }])
}

fn first() -> Request {
    Request::chat("m").user("Is it warm?").tools(tools())
}

/// Sends a request, answers its calls, and returns the conversation that the server receives then.
async fn second_turn(
    provider: Provider,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
    first: Request,
) -> Value {
    let server = Server::start(move |ordinal| match ordinal {
        0 => reply(),
        _ => answer(provider, "Yes."),
    })
    .await;
    let client = client(provider, &server);
    let completions = client.send(&first).await.unwrap();
    let outcome = completions.first().await.unwrap().finished().await.unwrap();
    let mut next = first.reply(&outcome);
    for call in &outcome.message.tool_calls {
        next = next.call_result(call, format!("21 C by {}", call.name));
    }
    let completions = client.send(&next).await.unwrap();
    assert_eq!(
        completions.first().await.unwrap().text().await.unwrap(),
        "Yes."
    );
    let [_, seen] = server.requests().try_into().unwrap();
    let mut body: Value = serde_json::from_slice(seen.body()).unwrap();
    let place = match provider {
        Provider::Gemini => "contents",
        Provider::Responses => "input",
        _ => "messages",
    };
    body[place].take()
}

fn events(values: &[Value]) -> Reply {
    let events = values.iter().map(|value| format!("data: {value}\n\n"));
    full(200, "text/event-stream", events.collect::<String>())
}

#[tokio::test]
async fn signed_thinking_returns_to_anthropic() {
    let name = "anthropic/anthropic-a02-a05-a15-thinking-text-call";
    assert_eq!(
        second_turn(Provider::Anthropic, move || recorded(name), first()).await,
        json!([
            { "role": "user", "content": "Is it warm?" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "A brief thought.", "signature": "c2ln" },
                { "type": "text", "text": "It rains here." },
                { "type": "tool_use", "id": "toolu_1", "name": "weather", "input": { "city": "Oslo" }, "caller": { "type": "direct" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": "21 C by weather" },
            ] },
        ])
    );
}

#[tokio::test]
async fn a14_omitted_thinking_and_redacted_thinking_return_in_order() {
    let block = |index: u32, block: Value| {
        [
            json!({ "type": "content_block_start", "index": index, "content_block": block }),
            json!({ "type": "content_block_stop", "index": index }),
        ]
    };
    let thinking =
        |signature: &str| json!({ "type": "thinking", "thinking": "", "signature": signature });
    let redacted = json!({ "type": "redacted_thinking", "data": "ZGF0YQ==" });
    let call = json!({ "type": "tool_use", "id": "t1", "name": "weather", "input": {} });
    let blocks = [thinking("a"), thinking("b"), redacted.clone(), call.clone()];
    let mut stream = vec![json!({ "type": "message_start", "message": { "role": "assistant" } })];
    stream.extend(
        (0..)
            .zip(blocks)
            .flat_map(|(index, value)| block(index, value)),
    );
    stream.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }));
    stream.push(json!({ "type": "message_stop" }));
    let turn = second_turn(Provider::Anthropic, move || events(&stream), first()).await;
    assert_eq!(
        turn[1],
        json!({ "role": "assistant", "content": [thinking("a"), thinking("b"), redacted, call] })
    );
}

#[tokio::test]
async fn a13_calls_of_the_providers_own_tools_return_with_their_results() {
    let name = "anthropic/anthropic-a13-a25-server-tools";
    let turn = second_turn(Provider::Anthropic, move || recorded(name), first()).await;
    let blocks = turn[1]["content"].as_array().unwrap();
    let kinds: Vec<&str> = blocks
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    let position = |kind: &str| kinds.iter().position(|known| *known == kind);
    assert!(
        position("server_tool_use").unwrap() < position("web_search_tool_result").unwrap(),
        "{kinds:?}"
    );
}

#[tokio::test]
async fn encrypted_reasoning_returns_to_responses() {
    let reasoning = json!({ "id": "rs_0", "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Hm." }], "encrypted_content": "bmV3" });
    let call = json!({ "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}", "status": "completed" });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "phase": "commentary", "content": [{ "type": "output_text", "text": "Wait." }] });
    let done = |index: u32, item: &Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let stream = [
        json!({ "type": "response.created", "response": { "id": "r", "model": "m" } }),
        done(0, &reasoning),
        done(1, &message),
        done(2, &call),
        json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } }),
    ];
    let request = first().reasoning_effort("low");
    assert_eq!(
        second_turn(Provider::Responses, move || events(&stream), request).await,
        json!([
            { "role": "user", "content": "Is it warm?" },
            reasoning,
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Wait." }], "phase": "commentary" },
            { "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "21 C by weather" },
        ])
    );
}

#[tokio::test]
async fn thought_signatures_return_to_gemini() {
    let chunk = |parts: Value| json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }] });
    let call = |name: &str| json!({ "name": name, "args": { "city": "Oslo" } });
    let signed = json!({ "functionCall": call("weather"), "thoughtSignature": "c2ln" });
    let unsigned = json!({ "functionCall": call("now") });
    let stream = [
        chunk(json!([{ "text": "Hm.", "thought": true }])),
        chunk(json!([{ "text": "Wait." }])),
        chunk(json!([signed, unsigned])),
        chunk(json!([{ "text": "", "thoughtSignature": "bGFzdA==" }])),
        json!({ "candidates": [{ "finishReason": "STOP" }] }),
    ];
    let response = |name: &str| {
        let text = format!("21 C by {name}");
        json!({ "functionResponse": { "name": name, "response": { "result": text } } })
    };
    assert_eq!(
        second_turn(Provider::Gemini, move || events(&stream), first()).await,
        json!([
            { "role": "user", "parts": [{ "text": "Is it warm?" }] },
            { "role": "model", "parts": [
                { "text": "Wait." },
                { "text": "", "thoughtSignature": "bGFzdA==" },
                signed,
                unsigned,
            ] },
            { "role": "user", "parts": [response("weather"), response("now")] },
        ])
    );
}

#[tokio::test]
async fn thinking_returns_to_ollama() {
    let lines = [
        json!({ "message": { "role": "assistant", "content": "", "thinking": "Hm." }, "done": false }),
        json!({ "message": { "role": "assistant", "content": "", "tool_calls": [
            { "function": { "name": "weather", "arguments": { "city": "Oslo" } } },
            { "id": "c2", "function": { "index": 1, "name": "now", "arguments": {} } },
        ] }, "done": false }),
        json!({ "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop" }),
    ];
    let body = lines.map(|line| format!("{line}\n")).concat();
    let reply = move || full(200, "application/x-ndjson", body.clone());
    assert_eq!(
        second_turn(Provider::Ollama, reply, first()).await,
        json!([
            { "role": "user", "content": "Is it warm?" },
            { "role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [
                { "function": { "name": "weather", "arguments": { "city": "Oslo" } } },
                { "id": "c2", "function": { "name": "now", "arguments": {} } },
            ] },
            { "role": "tool", "content": "21 C by weather", "tool_name": "weather" },
            { "role": "tool", "content": "21 C by now", "tool_name": "now", "tool_call_id": "c2" },
        ])
    );
}

#[tokio::test]
async fn h04_the_plan_returns_to_cohere() {
    let name = "cohere/cohere-h02-h03-h04-plan-and-calls";
    let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let result = |id: &str, name: &str| json!({ "role": "tool", "tool_call_id": id, "content": format!("21 C by {name}") });
    assert_eq!(
        second_turn(Provider::Cohere, move || recorded(name), first()).await,
        json!([
            { "role": "user", "content": "Is it warm?" },
            {
                "role": "assistant",
                "content": "x",
                "tool_plan": "I will add.",
                "tool_calls": [call("add_0", "add", "{\"a\":1}"), call("now_1", "now", "{}")],
            },
            result("add_0", "add"),
            result("now_1", "now"),
        ])
    );
}

/// A conversation that began at one provider continues at every other one, without the state that only the first understands.
#[tokio::test]
async fn a_conversation_can_move_to_another_provider() {
    let name = "anthropic/anthropic-a02-a05-a15-thinking-text-call";
    let server = Server::start(move |_| recorded(name)).await;
    let policy = ReplyPolicy::default().with_reasoning(ReplyReasoning::Never);
    let request = first().reply_policy(policy);
    let completions = client(Provider::Anthropic, &server)
        .send(&request)
        .await
        .unwrap();
    let outcome = completions.first().await.unwrap().finished().await.unwrap();
    let call = &outcome.message.tool_calls[0];
    let next = request.clone().reply(&outcome).call_result(call, "21 C");
    for provider in super::OTHERS {
        let body = next.body_for(provider).unwrap().to_string();
        assert!(body.contains("Oslo") && body.contains("21 C"), "{body}");
        assert!(
            !body.contains("c2ln") && !body.contains("A brief thought"),
            "{body}"
        );
    }
    // With its thinking it can only go back.
    let next = first().reply(&outcome).call_result(call, "21 C");
    for provider in super::OTHERS {
        assert_eq!(
            next.body_for(provider).is_ok(),
            provider == Provider::Anthropic
        );
    }
}
