//! What a provider has no counterpart for is an error with the name of the field.

use serde_json::{Value, json};

use super::answer;
use crate::{
    Provider::{self, Anthropic, Cohere, Gemini, Ollama, Responses},
    Request, RequestError,
};

const ALL: [Provider; 5] = [Responses, Anthropic, Gemini, Ollama, Cohere];

/// These providers refuse the field at this place; the others accept it.
#[track_caller]
fn check(fields: Value, expected: &str, refused_by: &[Provider]) {
    let mut request = Request::from_value(json!({ "model": "m", "messages": [] })).unwrap();
    for (name, value) in fields.as_object().unwrap() {
        request.set(name, value.clone());
    }
    for provider in ALL {
        match request.body_for(provider) {
            Ok(body) => assert!(!refused_by.contains(&provider), "{provider}: {body}"),
            Err(RequestError::Unsupported {
                provider: by,
                field,
                ..
            }) => {
                assert_eq!((by, field.as_str()), (provider, expected));
                assert!(
                    refused_by.contains(&provider),
                    "{provider} refuses {expected}"
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn fields_without_a_counterpart() {
    for (name, value, refused_by) in [
        ("seed", json!(7), &[Responses, Anthropic][..]),
        ("stop", json!("END"), &[Responses]),
        ("logit_bias", json!({ "1": 2 }), &ALL),
        ("frequency_penalty", json!(1), &[Responses, Anthropic]),
        ("presence_penalty", json!(1), &[Responses, Anthropic]),
        ("logprobs", json!(true), &[Anthropic]),
        ("top_logprobs", json!(2), &[Anthropic, Cohere]),
        (
            "parallel_tool_calls",
            json!(false),
            &[Gemini, Ollama, Cohere],
        ),
        ("tool_choice", json!("required"), &[Ollama]),
        ("n", json!(2), &[Responses, Anthropic, Ollama, Cohere]),
        ("user", json!("u"), &[Gemini, Ollama, Cohere]),
        ("store", json!(true), &[Anthropic, Gemini, Ollama, Cohere]),
        ("service_tier", json!("auto"), &[Gemini, Ollama, Cohere]),
        ("modalities", json!(["audio"]), &ALL),
        ("prediction", json!({ "type": "content" }), &ALL),
        ("functions", json!([]), &ALL),
        ("function_call", json!("auto"), &ALL),
        (
            "thinking",
            json!({ "type": "enabled" }),
            &[Responses, Gemini, Ollama],
        ),
        (
            "safetySettings",
            json!([]),
            &[Responses, Anthropic, Ollama, Cohere],
        ),
        ("no_such_field", json!(1), &ALL),
    ] {
        check(json!({ name: value }), name, refused_by);
    }
    check(
        json!({ "metadata": { "user_id": "u" } }),
        "metadata",
        &[Gemini, Ollama, Cohere],
    );
}

#[test]
fn values_without_a_counterpart() {
    check(
        json!({ "response_format": { "type": "json_object" } }),
        "response_format",
        &[Anthropic],
    );
    check(
        json!({ "response_format": { "type": "xml" } }),
        "response_format.type",
        &ALL,
    );
    check(
        json!({ "response_format": { "type": "json_schema", "json_schema": {} } }),
        "response_format.json_schema.schema",
        &ALL,
    );
    check(
        json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": {}, "description": "a" } } }),
        "response_format.json_schema.description",
        &[Anthropic, Gemini, Ollama, Cohere],
    );
    check(
        json!({ "reasoning_effort": "high" }),
        "reasoning_effort",
        &[Cohere],
    );
    check(
        json!({ "reasoning_effort": "none" }),
        "reasoning_effort",
        &[Anthropic, Gemini],
    );
    check(
        json!({ "max_tokens": 1, "max_completion_tokens": 2 }),
        "max_tokens",
        &ALL,
    );
    check(json!({ "tools": "f" }), "tools", &ALL);
    check(
        json!({ "tools": [{ "type": "function" }] }),
        "tools[0].type",
        &[Anthropic, Gemini, Ollama, Cohere],
    );
    check(
        json!({ "tools": [{ "type": "custom", "custom": { "name": "f" } }] }),
        "tools[0].custom",
        &[Anthropic, Gemini, Ollama, Cohere],
    );
    check(
        json!({ "tools": [{ "type": "function", "function": { "name": "f", "strict": true } }] }),
        "tools[0].function.strict",
        &[Ollama],
    );
    let named = json!({ "type": "function", "function": { "name": "f" } });
    check(
        json!({ "tool_choice": named }),
        "tool_choice",
        &[Ollama, Cohere],
    );
    check(json!({ "tool_choice": "sometimes" }), "tool_choice", &ALL);
    check(
        json!({ "tool_choice": { "type": "allowed_tools" } }),
        "tool_choice.type",
        &ALL,
    );
}

#[test]
fn messages_without_a_counterpart() {
    let check = |message: Value, place: &str, refused_by: &[Provider]| {
        let messages = json!([{ "role": "user", "content": "a" }, message]);
        let expected = format!("messages[1]{place}");
        check(json!({ "messages": messages }), &expected, refused_by);
    };
    let user = |part: Value| json!({ "role": "user", "content": [part] });
    check(
        json!({ "role": "system", "content": "a" }),
        "",
        &[Anthropic, Gemini],
    );
    check(
        json!({ "role": "function", "name": "f", "content": "a" }),
        ".role",
        &ALL,
    );
    check(json!({ "content": "a" }), ".role", &ALL);
    check(
        json!({ "role": "user", "name": "Ann", "content": "a" }),
        ".name",
        &ALL,
    );
    check(
        user(json!({ "type": "input_audio", "input_audio": {} })),
        ".content[0]",
        &[Anthropic, Gemini, Ollama, Cohere],
    );
    check(
        user(json!({ "type": "text", "text": "a", "cache_control": {} })),
        ".content[0].cache_control",
        &[Responses, Gemini, Ollama, Cohere],
    );
    check(
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "a", "cache_control": {} }] }),
        ".content[0].cache_control",
        &[Responses, Gemini, Ollama, Cohere],
    );
    check(user(json!({ "text": "a" })), ".content[0].type", &ALL);
    check(user(json!("a")), ".content[0]", &ALL);
    let image = |url: &str, detail: Value| {
        user(json!({ "type": "image_url", "image_url": { "url": url, "detail": detail } }))
    };
    check(
        image("https://a/b.png", json!(null)),
        ".content[0].image_url.url",
        &[Ollama],
    );
    check(
        image("data:image/png;base64,AA==", json!("high")),
        ".content[0].image_url.detail",
        &[Anthropic, Gemini, Ollama],
    );
    check(
        image("data:image/svg+xml,%3Csvg", json!(null)),
        ".content[0].image_url.url",
        &ALL,
    );
    check(
        json!({ "role": "assistant", "refusal": "a" }),
        ".refusal",
        &[Anthropic, Gemini, Ollama, Cohere],
    );
    check(
        json!({ "role": "assistant", "audio": { "id": "a1" } }),
        ".audio",
        &ALL,
    );
    check(
        json!({ "role": "assistant", "function_call": { "name": "f" } }),
        ".function_call",
        &ALL,
    );
    check(
        json!({ "role": "tool", "content": "a" }),
        ".tool_call_id",
        &[Responses, Anthropic, Gemini, Cohere],
    );
    check(
        json!({ "role": "tool", "tool_call_id": "c9", "content": "a" }),
        ".tool_call_id",
        &[Gemini],
    );
}

#[test]
fn calls_without_a_counterpart() {
    let check = |call: Value, place: &str, refused_by: &[Provider]| {
        let messages = json!([{ "role": "assistant", "tool_calls": [call] }]);
        let expected = format!("messages[0].tool_calls[0]{place}");
        check(json!({ "messages": messages }), &expected, refused_by);
    };
    let call = |arguments: &str| json!({ "id": "c1", "type": "function", "function": { "name": "f", "arguments": arguments } });
    for arguments in ["{\"a\":", "[1]", "7"] {
        check(
            call(arguments),
            ".function.arguments",
            &[Anthropic, Gemini, Ollama],
        );
    }
    check(
        json!({ "function": { "name": "f" } }),
        ".id",
        &[Responses, Anthropic, Cohere],
    );
    check(
        json!({ "id": "c1", "type": "custom", "custom": { "name": "f" } }),
        ".custom",
        &[Anthropic, Gemini, Ollama, Cohere],
    );
    check(json!({ "id": "c1", "type": "odd" }), ".type", &ALL);
    let mut odd = call("{}");
    odd["odd"] = json!(1);
    check(odd, ".odd", &ALL);
}

#[test]
fn the_state_of_another_provider() {
    let check = |field: &str, entry: Value, refused_by: &[Provider]| {
        let messages = json!([answer(json!({ field: [entry] }))]);
        check(
            json!({ "messages": messages }),
            &format!("messages[0].{field}"),
            refused_by,
        );
    };
    let others = |own: Provider| -> Vec<Provider> {
        ALL.into_iter().filter(|other| *other != own).collect()
    };
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" });
    check("reasoning_details", thinking, &others(Anthropic));
    let item =
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" });
    check("reasoning_details", item, &others(Responses));
    check(
        "reasoning_details",
        json!({ "text": "", "thoughtSignature": "s" }),
        &others(Gemini),
    );
    check(
        "reasoning_details",
        json!({ "type": "reasoning.encrypted", "data": "e" }),
        &ALL,
    );
    check(
        "content_parts",
        json!({ "type": "server_tool_use" }),
        &others(Anthropic),
    );
    check(
        "content_parts",
        json!({ "type": "web_search_call" }),
        &others(Responses),
    );
    check(
        "content_parts",
        json!({ "executableCode": {} }),
        &others(Gemini),
    );
    check("content_parts", json!({ "type": "odd" }), &ALL);
}

#[test]
fn the_plan_of_cohere() {
    let messages = json!([answer(json!({ "tool_plan": "Hm." }))]);
    let others = [Responses, Anthropic, Gemini, Ollama];
    check(
        json!({ "messages": messages }),
        "messages[0].tool_plan",
        &others,
    );
}

#[test]
fn a_field_beside_its_counterpart() {
    for (provider, fields, expected) in [
        (
            Gemini,
            json!({ "seed": 1, "generationConfig": { "seed": 2 } }),
            "seed",
        ),
        (
            Gemini,
            json!({ "tool_choice": "none", "toolConfig": { "functionCallingConfig": {} } }),
            "tool_choice",
        ),
        (
            Anthropic,
            json!({ "reasoning_effort": "low", "output_config": { "effort": "high" } }),
            "reasoning_effort",
        ),
        (
            Anthropic,
            json!({ "user": "a", "safety_identifier": "b" }),
            "safety_identifier",
        ),
        (Anthropic, json!({ "metadata": { "a": "b" } }), "metadata.a"),
        (
            Responses,
            json!({ "reasoning_effort": "low", "reasoning": { "effort": "high" } }),
            "reasoning_effort",
        ),
        (
            Ollama,
            json!({ "max_tokens": 1, "options": { "num_predict": 2 } }),
            "max_tokens",
        ),
        (Cohere, json!({ "top_p": 0.5, "p": 0.6 }), "top_p"),
    ] {
        let mut request = Request::from_value(json!({ "model": "m", "messages": [] })).unwrap();
        request = request.fields(&fields).unwrap();
        let error = request.body_for(provider).unwrap_err();
        let RequestError::Unsupported { field, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(field, expected, "{provider}");
    }
}

#[test]
fn text_completions_and_requests_without_a_model() {
    for provider in ALL {
        let error = Request::text("m", "Once").body_for(provider).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the field `prompt` cannot be sent to "),
            "{error}"
        );
    }
    let error = Request::from_value(json!({ "messages": [] }))
        .unwrap()
        .body_for(Gemini)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the field `model` cannot be sent to gemini: its address contains the model, which is missing"
    );
}

#[test]
fn errors_contain_no_value() {
    let request = Request::from_value(json!({
        "model": "SECRET",
        "messages": [{ "role": "assistant", "tool_calls": [
            { "id": "SECRET", "function": { "name": "SECRET", "arguments": "SECRET" } },
        ] }],
    }));
    let error = request.unwrap().body_for(Anthropic).unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("SECRET"),
        "{error:?}"
    );
}
