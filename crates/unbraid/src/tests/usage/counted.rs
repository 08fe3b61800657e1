//! The feature `tokens`: what was not reported is counted on a blocking thread. `~` marks a number that was counted.

use std::time::Duration;

use futures::{FutureExt, executor::block_on};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::*;
use crate::{
    Tokenizer, Usage,
    tokens::{Counter, Encoding},
};

/// Six tokens in every encoding.
const SIX: &str = "tiktoken is great!";

/// Eight tokens in `o200k_base`, nine in `cl100k_base`.
const EIGHT_OR_NINE: &str = "お誕生日おめでとう";

/// `prompt completion total index:choice.. source`.
fn summary(usage: &Usage) -> String {
    let counted = &usage.estimated;
    let show = |tokens: Option<u64>, counted: bool| match tokens {
        Some(tokens) => format!("{}{tokens}", if counted { "~" } else { "" }),
        None => "-".to_owned(),
    };
    let mut parts = vec![
        show(usage.prompt_tokens, counted.prompt),
        show(usage.completion_tokens, counted.completion),
        show(usage.total_tokens, counted.total),
    ];
    parts.extend(usage.per_choice.iter().map(|(index, tokens)| {
        let counted = counted.choices.contains(index);
        format!("{index}:{}", show(Some(*tokens), counted))
    }));
    parts.push(usage.source.as_str().to_owned());
    parts.join(" ")
}

async fn check(completions: &Completions, expected: &str) {
    assert_eq!(summary(&soon(completions.usage()).await), expected);
}

fn for_model(model: &str, text: &str) -> Step {
    let chunk =
        json!({ "model": model, "choices": [{ "index": 0, "delta": { "content": text } }] });
    bytes(format!("data: {chunk}\n\n"))
}

fn builder() -> CompletionsBuilder {
    Completions::builder().tokenizer_for(Counter::for_response)
}

fn read(steps: impl IntoIterator<Item = Step>) -> Completions {
    read_with(builder(), steps)
}

async fn cancelled(text: &str) -> Completions {
    super::cancelled(builder(), text).await
}

fn with_request(model: &str) -> CompletionsBuilder {
    let messages = json!([{ "role": "user", "content": SIX }]);
    let request = json!({ "model": model, "messages": messages });
    builder().request(&request)
}

#[tokio::test(start_paused = true)]
async fn u12_a_cancelled_stream_is_counted_as_far_as_it_arrived() {
    check(&cancelled(SIX).await, "- ~6 - 0:~6 estimated").await;
}

#[tokio::test(start_paused = true)]
async fn u12_a_cut_stream_is_counted_choice_by_choice() {
    let steps = || {
        [
            bytes(content(1, EIGHT_OR_NINE)),
            bytes(content(0, SIX)),
            Step::Fail,
        ]
    };
    let cut = read(steps().into_iter().take(2));
    check(&cut, "- ~14 - 0:~6 1:~8 estimated").await;
    check(&read(steps()), "- ~14 - 0:~6 1:~8 estimated").await;
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_was_cancelled_or_discarded_counts_too() {
    let completions = read([
        bytes(content(0, SIX)),
        bytes(content(1, SIX)),
        bytes(content(2, SIX)),
        Step::Pause(Duration::from_secs(1)),
        bytes(finish(2, "stop")),
        bytes(DONE),
    ]);
    soon(completions.choice(0)).await.unwrap().cancel();
    soon(completions.choice(1)).await.unwrap().discard();
    // Discarded text cannot be counted again: 18 bytes are estimated as 5 tokens.
    check(&completions, "- ~17 - 0:~6 1:~5 2:~6 estimated").await;
}

#[tokio::test(start_paused = true)]
async fn reasoning_names_and_arguments_count() {
    let call = json!({ "index": 0, "id": "c", "function": { "name": SIX, "arguments": SIX } });
    let delta = json!({ "reasoning": SIX, "content": SIX, "tool_calls": [call] });
    let chunk = json!({ "choices": [{ "index": 0, "delta": delta }] });
    let steps = || [bytes(format!("data: {chunk}\n\n"))];
    // Four texts, and six tokens around a call of an unknown model.
    check(&read(steps()), "- ~30 - 0:~30 estimated").await;
}

#[tokio::test(start_paused = true)]
async fn the_model_decides_the_encoding() {
    for (request, answer, tokens) in [
        (None, "gpt-4-0613", 9),
        (None, "gpt-4o", 8),
        (None, "qwen3-32b", 8),
        (Some("gpt-4"), "my-deployment", 9),
        (Some("gpt-4"), "gpt-4o-2024-08-06", 8),
    ] {
        let builder = request.map_or_else(builder, |model| {
            builder().request(&json!({ "model": model }))
        });
        let completions = read_with(builder, [for_model(answer, EIGHT_OR_NINE)]);
        check(
            &completions,
            &format!("- ~{tokens} - 0:~{tokens} estimated"),
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_makes_the_prompt_countable() {
    let steps = || [bytes(content(0, SIX))];
    // Three tokens for the message, one for its role, three that begin the reply.
    check(
        &read_with(with_request("gpt-4o"), steps()),
        "~13 ~6 ~19 0:~6 estimated",
    )
    .await;
    let empty = builder().request(&Value::Null);
    check(&read_with(empty, steps()), "- ~6 - 0:~6 estimated").await;
    check(&read_with(with_request("gpt-4o"), []), "~13 - - estimated").await;
}

#[tokio::test(start_paused = true)]
async fn reported_values_are_never_replaced() {
    let completions = read_with(
        with_request("gpt-4o"),
        [
            bytes(content(0, SIX)),
            bytes(content(1, SIX)),
            bytes(REPORT),
            bytes(DONE),
        ],
    );
    check(&completions, "3 4 7 0:~6 1:~6 mixed").await;
    let part = "data: {\"choices\":[],\"usage\":{\"total_tokens\":5}}\n\n";
    let completions = read([bytes(content(0, SIX)), bytes(part), bytes(DONE)]);
    check(&completions, "- ~6 5 0:~6 mixed").await;
}

/// llama.cpp reports each choice after its finish reason: the others are counted if they are cut.
#[tokio::test(start_paused = true)]
async fn u12_a_report_of_one_choice_is_not_mistaken_for_all() {
    let steps = |rest: [Step; 2]| {
        let head = [
            bytes(content(0, SIX)),
            bytes(content(1, SIX)),
            bytes(finish(1, "stop")),
            bytes(REPORT),
        ];
        head.into_iter().chain(rest)
    };
    let completions = read(steps([bytes(content(0, SIX)), Step::Stall]));
    let choice = soon(completions.choice(1)).await.unwrap();
    soon(choice.finished()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    completions.cancel();
    check(&completions, "3 ~16 ~19 0:~12 1:4 mixed").await;
    let cut = read(steps([bytes(content(0, SIX)), Step::Yield]));
    check(&cut, "3 ~16 ~19 0:~12 1:4 mixed").await;
    // Here the server only forgot a reason: its report covers all choices.
    let done = read(steps([bytes(DONE), Step::Yield]));
    check(&done, "3 4 7 0:~6 1:~6 mixed").await;
    let each = read(steps([bytes(finish(0, "stop")), bytes(REPORT)]));
    check(&each, "3 8 11 0:4 1:4 reported").await;
}

/// A fan-out sends each prompt of a list in requests of its own.
#[tokio::test(start_paused = true)]
async fn e15_each_of_several_sources_is_charged_for_the_prompts_that_it_answers() {
    let request = json!({ "model": "gpt-4o", "prompt": [SIX, EIGHT_OR_NINE] });
    let (completions, source_set) = builder().request(&request).source_set();
    for index in 0..2 {
        let body = futures::stream::iter([Ok::<_, std::io::Error>(content(0, SIX))]);
        source_set.add(crate::Source::from_byte_stream(body), index..index + 1);
    }
    drop(source_set);
    check(&completions, "~14 ~12 ~26 0:~6 1:~6 estimated").await;
}

#[tokio::test(start_paused = true)]
async fn u15_the_actors_count_beside_a_report_that_is_below_what_was_received() {
    let completions = read([
        bytes(content(0, "a")),
        bytes(content(0, " b")),
        bytes(finish(0, "stop")),
        bytes("data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n"),
        bytes(DONE),
    ]);
    let usage = soon(completions.usage()).await;
    assert_eq!(summary(&usage), "- 1 - 0:1 mixed");
    assert_eq!((usage.below_received, usage.counted), (true, Some(2)));
    assert!(completions.warnings().iter().any(|w| w.code == "U15"));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_usage_future_does_not_affect_other_callers() {
    let completions = cancelled(SIX).await;
    for _ in 0..3 {
        assert!(
            completions.usage().now_or_never().is_none(),
            "it is counted on another thread"
        );
    }
    let (one, other) = tokio::join!(completions.usage(), completions.usage());
    assert_eq!(summary(&one), "- ~6 - 0:~6 estimated");
    assert_eq!(one, other);
    let kept = completions.usage().now_or_never();
    assert_eq!(kept, Some(one), "it is counted once");
}

#[test]
fn without_a_runtime_nothing_is_counted_and_nothing_fails() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let completions = first.block_on(cancelled(SIX));
    drop(first);
    assert_eq!(block_on(completions.usage()).source, UsageSource::Absent);
    let usage = runtime().block_on(completions.usage());
    assert_eq!(usage.completion_tokens, Some(6), "a later call counts");
}

/// The only blocking thread waits for the very count that would need it.
#[test]
fn counting_does_not_need_a_thread_that_is_taken() {
    let (ended, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).build();
        let usage = runtime.unwrap().block_on(async {
            let completions = read([bytes(content(0, SIX)), bytes(DONE)]);
            completions.closed().await.unwrap();
            let handle = tokio::runtime::Handle::current();
            let waits = move || handle.block_on(completions.usage());
            tokio::task::spawn_blocking(waits).await.unwrap()
        });
        ended.send(summary(&usage))
    });
    let usage = result.recv_timeout(Duration::from_secs(60));
    assert_eq!(usage.as_deref(), Ok("- ~6 - 0:~6 estimated"));
}

#[test]
fn a_runtime_that_has_shut_down_counts_in_place() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    let completions = runtime.block_on(cancelled(SIX));
    runtime.shutdown_background();
    let _context = handle.enter();
    let usage = block_on(completions.usage());
    assert_eq!(summary(&usage), "- ~6 - 0:~6 estimated");
}

/// How late the latest tick of 1 ms was while usage was counted, and how many ticks there were.
async fn latest_tick(completions: Completions) -> (Duration, u32) {
    let counting = tokio::spawn(async move { completions.usage().await });
    let (mut latest, mut ticks) = (Duration::ZERO, 0);
    while !counting.is_finished() {
        let deadline = Instant::now() + Duration::from_millis(1);
        sleep_until(deadline).await;
        latest = latest.max(deadline.elapsed());
        ticks += 1;
    }
    assert!(counting.await.unwrap().completion_tokens > Some(100_000));
    (latest, ticks)
}

/// A busy machine delays a tick, too, so the best of several attempts counts.
#[tokio::test]
async fn a_megabyte_is_counted_off_the_async_threads() {
    const LATE: Duration = Duration::from_millis(20);
    assert_eq!(Encoding::default().count(SIX), 6); // the first call compiles the pattern
    let line = "It is 12 o'clock, said the clerk, and all is well: 雨. ";
    let deltas: Vec<Step> = (0..(1 << 20) / line.len() / 16)
        .map(|_| bytes(content(0, &line.repeat(17))))
        .collect();
    let mut attempts = Vec::new();
    for _ in 0..10 {
        let completions = read(deltas.iter().cloned());
        completions.closed().await.unwrap();
        let (latest, ticks) = latest_tick(completions).await;
        if latest <= LATE && ticks > 3 {
            return;
        }
        attempts.push((latest, ticks));
    }
    panic!("{attempts:?}");
}
