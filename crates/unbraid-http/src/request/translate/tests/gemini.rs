use serde_json::{Value, json};

use super::{answer, check, check_messages, common, schema};
use crate::Provider::Gemini;

#[test]
fn the_common_part() {
    check(
        Gemini,
        common(),
        json!({
            "systemInstruction": { "parts": [{ "text": "Be brief." }] },
            "contents": [
                { "role": "user", "parts": [
                    { "text": "Where is this?" },
                    { "inlineData": { "mimeType": "image/png", "data": "iVBORw0=" } },
                ] },
                { "role": "model", "parts": [
                    { "text": "Let me ask." },
                    { "functionCall": { "id": "c1", "name": "locate", "args": { "zoom": 2 } } },
                    { "functionCall": { "id": "c2", "name": "now", "args": {} } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "c2", "name": "now", "response": { "result": "12:00" } } },
                    { "functionResponse": { "id": "c1", "name": "locate", "response": { "city": "Oslo" } } },
                ] },
                { "role": "user", "parts": [{ "text": "Thanks. And this?" }] },
            ],
            "tools": [{ "functionDeclarations": [
                { "name": "locate", "description": "Finds a place.", "parametersJsonSchema": schema() },
                { "name": "now" },
            ] }],
            "toolConfig": { "functionCallingConfig": { "mode": "AUTO" } },
            "generationConfig": {
                "maxOutputTokens": 64,
                "temperature": 0.5,
                "responseMimeType": "application/json",
                "responseJsonSchema": schema(),
            },
        }),
    );
}

#[test]
fn everything_else() {
    check(
        Gemini,
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": [
                { "type": "image_url", "image_url": { "url": "https://a/b.JPG?c=.png" } },
                { "type": "image_url", "image_url": { "url": "https://a/files/7" } },
            ] }],
            "tools": [
                { "type": "function", "function": { "name": "f", "strict": true } },
                { "googleSearch": {} },
            ],
            "tool_choice": { "type": "function", "function": { "name": "f" } },
            "n": 3,
            "top_p": 0.9,
            "top_k": 5,
            "seed": 7,
            "stop": ["a", "b"],
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
            "logprobs": true,
            "top_logprobs": 2,
            "response_format": { "type": "json_object" },
            "reasoning_effort": "low",
            "generationConfig": { "responseModalities": ["TEXT"] },
            "safetySettings": [],
            "cachedContent": "cachedContents/1",
        }),
        json!({
            "contents": [{ "role": "user", "parts": [
                { "fileData": { "mimeType": "image/jpeg", "fileUri": "https://a/b.JPG?c=.png" } },
                { "fileData": { "fileUri": "https://a/files/7" } },
            ] }],
            "tools": [{ "functionDeclarations": [{ "name": "f" }] }, { "googleSearch": {} }],
            "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["f"] } },
            "generationConfig": {
                "responseModalities": ["TEXT"],
                "candidateCount": 3,
                "topP": 0.9,
                "topK": 5,
                "seed": 7,
                "presencePenalty": 0.1,
                "frequencyPenalty": 0.2,
                "responseLogprobs": true,
                "logprobs": 2,
                "stopSequences": ["a", "b"],
                "responseMimeType": "application/json",
                "thinkingConfig": { "thinkingLevel": "low" },
            },
            "safetySettings": [],
            "cachedContent": "cachedContents/1",
        }),
    );
}

#[test]
fn strict_arguments_are_a_mode() {
    for (choice, mode) in [
        (json!(null), "VALIDATED"),
        (json!("auto"), "VALIDATED"),
        (json!("none"), "NONE"),
        (json!("required"), "ANY"),
    ] {
        let tools = json!([{ "type": "function", "function": { "name": "f", "strict": true } }]);
        check(
            Gemini,
            json!({ "model": "m", "messages": [], "tools": tools, "tool_choice": choice }),
            json!({
                "contents": [],
                "tools": [{ "functionDeclarations": [{ "name": "f" }] }],
                "toolConfig": { "functionCallingConfig": { "mode": mode } },
            }),
        );
    }
}

#[test]
fn g08_calls_without_ids_have_their_results_in_their_order() {
    let call =
        |name: &str| json!({ "type": "function", "function": { "name": name, "arguments": "{}" } });
    let result = |text: &str| json!({ "role": "tool", "content": text });
    let response = |name: &str, text: &str| json!({ "functionResponse": { "name": name, "response": { "result": text } } });
    check_messages(
        Gemini,
        json!([
            { "role": "assistant", "tool_calls": [call("f"), call("g")] },
            result("1"),
            result("2"),
            { "role": "assistant", "tool_calls": [call("h")] },
            result("3"),
        ]),
        json!([
            { "role": "model", "parts": [
                { "functionCall": { "name": "f", "args": {} } },
                { "functionCall": { "name": "g", "args": {} } },
            ] },
            { "role": "user", "parts": [response("f", "1"), response("g", "2")] },
            { "role": "model", "parts": [{ "functionCall": { "name": "h", "args": {} } }] },
            { "role": "user", "parts": [response("h", "3")] },
        ]),
    );
}

#[test]
fn signatures_of_calls_return_from_both_interfaces() {
    for (name, value) in [
        ("thoughtSignature", json!("c2ln")),
        (
            "extra_content",
            json!({ "google": { "thought_signature": "c2ln" } }),
        ),
    ] {
        let mut message = answer(json!({}));
        message["tool_calls"][0][name] = value;
        let call = json!({ "id": "c1", "name": "now", "args": {} });
        check_messages(
            Gemini,
            json!([message]),
            json!([{ "role": "model", "parts": [{ "functionCall": call, "thoughtSignature": "c2ln" }] }]),
        );
    }
}

#[test]
fn g13_signatures_of_texts_stand_where_they_were() {
    let signed = |text: &str| json!({ "text": text, "thoughtSignature": "s" });
    let thought = json!({ "text": "Hm.", "thought": true, "thoughtSignature": "t" });
    let text_part = |text: &str| json!({ "text": text });
    let check = |content: &str, details: Vec<Value>, expected: Vec<Value>| {
        check_messages(
            Gemini,
            json!([{ "role": "assistant", "content": content, "reasoning_details": details }]),
            json!([{ "role": "model", "parts": expected }]),
        );
    };
    check(
        "Hello",
        vec![signed("")],
        vec![text_part("Hello"), signed("")],
    );
    check(
        "Hello",
        vec![signed("lo")],
        vec![text_part("Hel"), signed("lo")],
    );
    check("Hello", vec![signed("Hello")], vec![signed("Hello")]);
    check(
        "abcabc",
        vec![signed("b"), signed("bc")],
        vec![text_part("a"), signed("b"), text_part("ca"), signed("bc")],
    );
    check(
        "Hello",
        vec![thought.clone(), signed("")],
        vec![thought, text_part("Hello"), signed("")],
    );
    // A text that the answer does not have is kept beside it.
    check(
        "Hello",
        vec![signed("x")],
        vec![signed("x"), text_part("Hello")],
    );
    check("", vec![signed("")], vec![signed("")]);
    check(
        "ab",
        vec![signed("x"), signed("a"), signed("")],
        vec![signed("x"), signed("a"), text_part("ab"), signed("")],
    );
    check("", vec![], vec![text_part("")]);
}

#[test]
fn thoughts_parts_and_images_return() {
    let code = json!({ "executableCode": { "language": "PYTHON", "code": "1" } });
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw0=" } });
    check_messages(
        Gemini,
        json!([answer(json!({
            "content": "a", "reasoning_content": "Hm.", "content_parts": [code], "images": [image],
        }))]),
        json!([{ "role": "model", "parts": [
            { "text": "Hm.", "thought": true },
            code,
            { "text": "a" },
            image,
            { "functionCall": { "id": "c1", "name": "now", "args": {} } },
        ] }]),
    );
}

#[test]
fn gemini_2_5_has_a_budget_in_place_of_a_level() {
    let check = |model: &str, effort: &str, expected: Value| {
        let request = crate::Request::chat(model).reasoning_effort(effort);
        let body = request.body_for(Gemini).unwrap();
        assert_eq!(
            body["generationConfig"]["thinkingConfig"], expected,
            "{model} {effort}"
        );
    };
    for (effort, budget) in [
        ("none", 0),
        ("minimal", 1024),
        ("low", 1024),
        ("medium", 8192),
        ("high", 24576),
    ] {
        let expected = json!({ "thinkingBudget": budget });
        check("gemini-2.5-flash", effort, expected.clone());
        check("models/gemini-2.5-pro", effort, expected.clone());
        check(
            "publishers/google/models/gemini-2.5-flash-lite",
            effort,
            expected,
        );
    }
    for model in [
        "gemini-3-pro-preview",
        "gemini-3.1-flash",
        "gemini-flash-latest",
    ] {
        check(model, "low", json!({ "thinkingLevel": "low" }));
    }
    for (model, effort) in [("gemini-2.5-pro", "xhigh"), ("gemini-3-pro", "none")] {
        let request = crate::Request::chat(model).reasoning_effort(effort);
        let error = request.body_for(Gemini).unwrap_err().to_string();
        assert!(error.contains("reasoning_effort"), "{error}");
    }
}
