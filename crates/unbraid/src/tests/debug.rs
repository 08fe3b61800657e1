//! `Debug` of every public type, for a completion that is full of a marker: no type shows it.

use std::{fmt::Debug, time::Duration};

use unbraid_testkit::script::{DONE, Script, Step, bytes};

use super::soon;
use crate::{
    Choice, Completions, CompletionsBuilder, Config, Demux, Prompt, Source, StreamError, Update,
    json::{self, Repair},
};

/// It is part of every text that a server, a model or a user can write, and of none of our names.
const MARKER: &str = "xyzzy";

/// Checks that no form of the value holds the marker.
#[track_caller]
fn check(value: &(impl Debug + ?Sized)) {
    for shown in [format!("{value:?}"), format!("{value:#?}")] {
        assert!(!shown.to_lowercase().contains(MARKER), "{shown}");
        // Bytes are printed as numbers: `x`, `y`, `z`.
        assert!(!shown.contains("120, 121, 122"), "{shown}");
    }
}

fn chunk(choice: &str) -> String {
    format!(
        "data: {{\"id\":\"{MARKER}\",\"created\":1,\"model\":\"{MARKER}\",\"system_fingerprint\":\"{MARKER}\",\"{MARKER}\":[\"{MARKER}\"],\"choices\":[{choice}]}}\n\n"
    )
}

/// Everything that a choice can bring, twice, so that templates and caches are filled.
fn body(reason: &str) -> String {
    let m = MARKER;
    let texts = [
        "content",
        "reasoning_content",
        "refusal",
        "role",
        "unknown_field",
    ];
    let mut body = String::new();
    for index in 0..2 {
        let mut choice = |delta: &str| {
            body += &chunk(&format!(
                "{{\"index\":{index},\"delta\":{delta},\"logprobs\":{{\"content\":[{{\"token\":\"{m}\"}}]}},\"{m}\":\"{m}\"}}"
            ));
            body += &chunk(&format!("{{\"index\":{index},\"delta\":{delta}}}"));
        };
        for text in texts {
            choice(&format!("{{\"{text}\":\"{m}\"}}"));
        }
        choice(&format!(
            "{{\"tool_calls\":[{{\"index\":0,\"id\":\"{m}\",\"type\":\"{m}\",\"{m}\":\"{m}\",\"function\":{{\"name\":\"{m}\",\"arguments\":\"{{\\\"{m}\\\":\\\"{m}\"}}}}]}}"
        ));
        choice(&format!(
            "{{\"function_call\":{{\"name\":\"{m}\",\"arguments\":\"{m}\"}}}}"
        ));
        choice(&format!(
            "{{\"audio\":{{\"id\":\"{m}\",\"data\":\"eHl6enk=\",\"transcript\":\"{m}\"}}}}"
        ));
        choice(&format!("{{\"audio\":{{\"data\":\"{m}!\"}}}}"));
        choice(&format!("{{\"annotations\":[{{\"url\":\"{m}\"}}]}}"));
        choice(&format!(
            "{{\"content\":[{{\"type\":\"image\",\"url\":\"{m}\"}},{{\"type\":\"text\",\"text\":\"{m}\"}}]}}"
        ));
        body += "data: xyzzy\n\n: xyzzy\nxyzzy: xyzzy\nevent: xyzzy\ndata: {\"xyzzy\":1}\n\n";
        body += &chunk(&format!(
            "{{\"index\":{index},\"delta\":{{}},\"finish_reason\":{reason}}}"
        ));
    }
    body + &format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"{m}\":\"{m}\"}}}}\n\n"
    )
}

/// Completions with every kind of end.
fn streams() -> Vec<(CompletionsBuilder, Vec<Step>)> {
    let builder = Completions::builder;
    let error = format!(
        "data: {{\"error\":{{\"message\":\"{MARKER}\",\"type\":\"server_error\",\"param\":\"{MARKER}\"}}}}\n\n"
    );
    let reason = format!("\"{MARKER}\"");
    let mut limited = builder();
    limited = limited.limits(crate::Limits::default().with_completion_bytes(4096));
    vec![
        (builder(), vec![bytes(body(&reason) + DONE)]),
        (builder(), vec![bytes(body("null"))]),
        (builder(), vec![bytes(body("null") + &error)]),
        (builder(), vec![bytes(body("null")), Step::Fail]),
        (builder().strict(true), vec![bytes(body("null"))]),
        (limited, vec![bytes(body("null"))]),
        (
            builder().idle_timeout(Duration::from_secs(1)),
            vec![bytes(body("null")), Step::Stall],
        ),
        (builder(), vec![bytes(format!("<html>{MARKER}"))]),
        (builder(), vec![bytes(format!("data: {error}"))]),
    ]
}

async fn check_choice(choice: &Choice) {
    check(choice);
    let mut events = choice.events();
    while let Some(event) = soon(events.next()).await {
        check(&event);
    }
    check(&events);
    let (mut content, mut reasoning) = (choice.content(), choice.reasoning());
    let (mut refusal, mut logprobs) = (choice.refusal(), choice.logprobs());
    check(&soon(content.next()).await);
    check(&content);
    check(&soon(reasoning.next()).await);
    check(&reasoning);
    check(&soon(refusal.next()).await);
    check(&refusal);
    soon(logprobs.next()).await; // the item is a value of serde_json, which shows its content
    check(&logprobs);
    let mut coalesced = choice.content().coalesced();
    check(&soon(coalesced.next()).await);
    check(&coalesced);
    let mut messages = choice.messages();
    while let Some(message) = soon(messages.next()).await {
        check(&message);
    }
    check(&messages);
    let json = choice.content_json();
    let mut field = json.field("/a");
    check(&soon(field.next()).await);
    check(&field);
    assert!(json.partial().is_none_or(|value| !value.is_null()));
    check(&json);
    check(&soon(json.parse::<u8>()).await);
    check(&choice.snapshot());
    check(&soon(choice.finished()).await);
    check(&soon(choice.outcome()).await);
    check(&soon(choice.outcome()).await.derived_reason());
    check(&soon(choice.text()).await.map(|_| ()));
    check(&choice.timing());
    let mut calls = choice.tool_calls();
    while let Some(call) = soon(calls.next()).await {
        check(&call);
        let Ok(call) = call else { break };
        let (mut arguments, mut field) = (call.arguments(), call.field("/a"));
        check(&soon(arguments.next()).await);
        check(&arguments);
        check(&soon(field.next()).await);
        check(&field);
        assert!(call.partial().is_none_or(|value| !value.is_null()));
        check(&call.snapshot());
        check(&call.name());
        check(&soon(call.finished()).await);
        check(&call.snapshot().and_then(|call| call.problem()));
        check(&soon(call.parse::<Vec<u8>>()).await);
        check(&soon(call.parse_repaired::<Vec<u8>>(Repair::CLOSE)).await);
    }
    check(&calls);
}

async fn check_all(completions: &Completions) {
    check(completions);
    let mut choices = completions.choices();
    check(&choices);
    while let Some(choice) = soon(choices.next()).await {
        check(&choice);
        if let Ok(choice) = choice {
            check_choice(&choice).await;
        }
    }
    check(&choices);
    let mut events = completions.events();
    check(&events);
    while let Some(event) = soon(events.next()).await {
        check(&event);
    }
    check(&events);
    let closed = soon(completions.closed()).await;
    check(&closed);
    check(&closed.map_err(crate::Error::from));
    check(&completions.metadata());
    check(&completions.warnings());
    check(&soon(completions.usage()).await);
    check(&soon(completions.first_finished(1)).await);
    check(completions);
}

#[tokio::test(start_paused = true)]
async fn no_public_type_shows_payload_in_its_debug_text() {
    let request = serde_json::json!({ "messages": [{ "role": "user", "content": MARKER }] });
    for (builder, steps) in streams() {
        let builder = builder.request(&request);
        check(&builder);
        let source = Script::new(steps.clone());
        check_all(&builder.clone().from_byte_stream(source)).await;

        let (completions, source_set) = builder.source_set();
        let source = Source::from_byte_stream(Script::new(steps));
        check(&source);
        let joined = source_set.add(source, 0..2);
        check(&joined);
        check(&source_set);
        check(&soon(joined.unwrap().closed()).await);
        check(&source_set);
        drop(source_set);
        check_all(&completions).await;
    }
    check(&Prompt::from_request(&request));
}

#[tokio::test(start_paused = true)]
async fn no_public_type_of_the_flat_view_or_the_core_shows_payload() {
    for (_, mut steps) in streams() {
        steps.retain(|step| *step != Step::Stall); // this view has no timeouts
        let mut updates = crate::Updates::from_byte_stream(Script::new(steps.clone()));
        while let Some(update) = soon(updates.next()).await {
            check(&update);
            let update: Update<'_> = update.unwrap_or_default();
            check(&update.content);
            check(&update.tool_calls);
        }
        check(&updates);
        let read: Vec<u8> = steps
            .iter()
            .flat_map(|step| match step {
                Step::Bytes(bytes) => bytes.clone(),
                _ => Vec::new(),
            })
            .collect();
        let mut demux = Demux::new(Config::default());
        for bytes in read.chunks(7) {
            demux.feed(bytes);
            check(&demux);
        }
        demux.finish();
        check(&demux);
        for choice in demux.choices() {
            check(choice);
            for seq in 0..choice.event_count() {
                check(&choice.event(seq)); // its texts are `&str`
            }
        }
        while let Some(event) = demux.next_event() {
            check(&event);
        }
        check(&demux.closed());
    }
    let typed = format!("[\"{MARKER}");
    check(&json::repair(&typed, Repair::CLOSE));
    let mut partial = json::Partial::default();
    partial.feed(&typed);
    check(&partial);
    let mut field = json::Field::new(json::Pointer::parse("/0").unwrap());
    field.feed(&typed, &mut |_| {});
    check(&field);
    check(&StreamError::Server(std::sync::Arc::new(
        crate::ServerError::new(&typed, 0),
    )));
}

#[tokio::test]
async fn debug_shows_counts() {
    let completions =
        Completions::from_byte_stream(futures::stream::iter([Ok::<_, std::io::Error>(
            unbraid_testkit::script::content(3, "four") + DONE,
        )]));
    let choice = completions.first().await.unwrap();
    let finished = choice.outcome().await;
    completions.closed().await.unwrap();
    let shown = [
        format!("{completions:?}"),
        format!("{choice:?}"),
        format!("{:?}", choice.content().next().await),
        format!("{:?}", finished.message),
    ];
    let expected = [
        "Completions(Stream { choices: 1, warnings: 0, closed: Some(Ok(())) })",
        "Choice { index: ChoiceIndex(3), events: 4, end: Some(\"done_without_finish\") }",
        "Some(Ok(Text(4 bytes)))",
        "Message { role: Some(9 bytes), content: 4 bytes, reasoning: 0 bytes, reasoning_source: None, refusal: 0 bytes, tool_calls: [], audio: None, extra: 0 }",
    ];
    assert_eq!(shown, expected);
}
