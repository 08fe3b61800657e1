//! Sources in different dialects: each choice is what `Demux` reads from its source, and knows its provider.

use std::time::Duration;

use unbraid_testkit::{
    fixture::Fixture,
    script::{Script, Step, bytes},
};

use super::super::{all_choices, outcome, soon};
use crate::{
    ChoiceIndex, ChoiceOutcome, Completions, Config, Demux, Dialect, Event, Metadata, Source, Usage,
};

const OPENAI: &str = "openai_chat/azure-three-choices";
const ANTHROPIC: &str = "anthropic/anthropic-a02-a05-a15-thinking-text-call";
const GEMINI: &str = "gemini/gemini-g04-g05-candidates";
const OLLAMA: &str = "ollama/ollama-o03-o15-chat";
const BEDROCK: &str = "bedrock/bedrock-b01-b08-b09-converse";

/// A stream in reads of seven bytes.
fn source(name: &str) -> Source {
    Source::from_byte_stream(Script::new(reads(name)))
}

fn reads(name: &str) -> Vec<Step> {
    let stream = Fixture::named(name).bytes;
    let reads = stream.chunks(7);
    reads.map(bytes).collect()
}

fn demux(name: &str) -> Demux {
    let mut demux = Demux::new(Config::default());
    demux.feed(&Fixture::named(name).bytes);
    demux.finish();
    demux
}

/// What a source brings by itself, with its choices numbered from `first`.
struct Expected {
    choices: Vec<ChoiceOutcome>,
    metadata: Metadata,
    usage: Usage,
}

fn expected(name: &str, first: u32) -> Expected {
    let demux = demux(name);
    let renumbered = |mut choice: ChoiceOutcome| {
        choice.choice = ChoiceIndex(choice.choice.0 + first);
        for warning in &mut choice.warnings {
            warning.choice = Some(choice.choice);
        }
        choice
    };
    let outcomes = demux.choices().filter_map(crate::Transcript::outcome);
    Expected {
        choices: outcomes.map(renumbered).collect(),
        metadata: demux.metadata().clone(),
        usage: demux.usage(),
    }
}

/// Compares everything that a merge says about each choice with what its source says by itself.
async fn check(completions: &Completions, sources: &[(&str, u32)]) {
    let (choices, error) = all_choices(completions).await;
    assert!(error.is_none(), "{error:?}");
    let mut checked = 0;
    for (name, first) in sources {
        let expected = expected(name, *first);
        for wanted in expected.choices {
            let choice = choices
                .iter()
                .find(|choice| choice.index() == wanted.choice);
            let choice = choice.unwrap_or_else(|| panic!("{name}: no choice {}", wanted.choice));
            let found = outcome(choice).await;
            assert_eq!(found.message, wanted.message, "{name}");
            assert_eq!(found.end.as_str(), wanted.end.as_str(), "{name}");
            assert_eq!(found.finish_reasons, wanted.finish_reasons, "{name}");
            let metadata = completions.choice_metadata(wanted.choice).unwrap();
            assert_eq!(metadata, expected.metadata, "{name}");
            let usage = soon(completions.choice_usage(wanted.choice)).await.unwrap();
            assert_eq!(usage.raw, expected.usage.raw, "{name}");
            assert_eq!(
                usage.completion_tokens, expected.usage.completion_tokens,
                "{name}"
            );
            checked += 1;
        }
    }
    assert_eq!(checked, choices.len(), "there is no other choice");
}

#[tokio::test(start_paused = true)]
async fn each_choice_is_that_of_its_source() {
    let completions = Completions::merge([
        source(OPENAI).expect_choices(3),
        source(ANTHROPIC),
        source(GEMINI).expect_choices(3),
        source(OLLAMA),
        source(BEDROCK),
    ]);
    let sources = [
        (OPENAI, 0),
        (ANTHROPIC, 3),
        (GEMINI, 4),
        (OLLAMA, 7),
        (BEDROCK, 8),
    ];
    check(&completions, &sources).await;
    assert!(soon(completions.closed()).await.is_ok());
    let dialect = |choice: u32| completions.choice_metadata(choice).unwrap().dialect();
    assert_eq!(dialect(2), Some(Dialect::Chat));
    assert_eq!(dialect(3), Some(Dialect::Anthropic));
    assert_eq!(dialect(6), Some(Dialect::Gemini));
    assert_eq!(dialect(7), Some(Dialect::Ollama));
    assert_eq!(dialect(8), Some(Dialect::Bedrock));
    assert!(completions.choice_metadata(9).is_none());
    assert!(soon(completions.choice_usage(9)).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_whole_has_what_its_sources_share_and_the_sums() {
    let completions = Completions::merge([source(ANTHROPIC), source(BEDROCK)]);
    soon(completions.closed()).await.unwrap();
    let metadata = completions.metadata();
    assert_eq!(metadata.dialect(), None, "they differ");
    assert_eq!((metadata.id, metadata.model), (None, None));
    let [anthropic, bedrock] = [ANTHROPIC, BEDROCK].map(|name| demux(name).usage());
    let usage = soon(completions.usage()).await;
    let sum = |count: fn(&Usage) -> Option<u64>| Some(count(&anthropic)? + count(&bedrock)?);
    let prompt = sum(|usage| usage.prompt_tokens).unwrap();
    let completion = sum(|usage| usage.completion_tokens).unwrap();
    assert_eq!(usage.raw["prompt_tokens"], prompt);
    assert_eq!(usage.raw["completion_tokens"], completion);
    assert_eq!(usage.raw["total_tokens"], prompt + completion);
    assert_eq!(usage.raw.as_object().unwrap().len(), 3, "{}", usage.raw);
    let response = soon(completions.aggregate()).await;
    assert_eq!(response["usage"], usage.raw);
    assert!(response["model"].is_null());
    let mut events = completions.events();
    let mut reported = Vec::new();
    while let Some(Ok(event)) = soon(events.next()).await {
        if let Event::Usage(usage) = event.event {
            reported.push(usage.raw);
        }
    }
    assert_eq!(reported, [usage.raw], "once, for the whole");
}

#[tokio::test(start_paused = true)]
async fn one_dialect_keeps_the_metadata_of_the_first() {
    let completions = Completions::merge([source(ANTHROPIC), source(ANTHROPIC)]);
    soon(completions.closed()).await.unwrap();
    let metadata = completions.metadata();
    assert_eq!(metadata, demux(ANTHROPIC).metadata().clone());
    let usage = soon(completions.usage()).await;
    let one = demux(ANTHROPIC).usage();
    assert_eq!(
        usage.completion_tokens,
        one.completion_tokens.map(|n| 2 * n)
    );
    assert!(usage.raw.get("output_tokens").is_some(), "{}", usage.raw);
}

#[tokio::test(start_paused = true)]
async fn the_first_two_of_three_providers_win_and_the_third_is_closed() {
    let slow: Vec<Step> = reads(GEMINI)
        .into_iter()
        .flat_map(|read| [read, Step::Pause(Duration::from_secs(1))])
        .collect();
    let slow = Script::new(slow);
    let probe = slow.probe();
    let completions = Completions::merge([
        Source::from_byte_stream(slow),
        source(ANTHROPIC),
        source("openai_chat/openai-m04-refusal"),
    ]);
    let first = soon(completions.first_finished(2)).await;
    let dialects = first.iter().map(|outcome| {
        let metadata = completions.choice_metadata(outcome.choice);
        metadata.and_then(|metadata| metadata.dialect())
    });
    let mut dialects: Vec<_> = dialects.flatten().map(Dialect::as_str).collect();
    dialects.sort_unstable();
    assert_eq!(dialects, ["anthropic", "chat"]);
    assert!(soon(completions.closed()).await.is_ok());
    let (choices, _) = all_choices(&completions).await;
    let cut = choices.iter().find(|choice| choice.index().0 == 0);
    assert_eq!(outcome(cut.unwrap()).await.end.as_str(), "cancelled");
    assert!(probe.closed());
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_is_the_end_of_its_own_choice() {
    let refused = Source::from_byte_stream(Script::new([Step::Fail]));
    let completions = Completions::merge([
        source(ANTHROPIC),
        refused,
        source("anthropic/anthropic-a19-error-mid-stream"),
    ]);
    let (choices, _) = all_choices(&completions).await;
    let mut ends = Vec::new();
    for choice in &choices {
        ends.push((choice.index().0, outcome(choice).await.end.as_str()));
    }
    ends.sort_unstable();
    assert_eq!(
        ends,
        [(0, "finished"), (1, "transport"), (2, "server_error")]
    );
    assert!(soon(completions.closed()).await.is_ok());
    let unknown = completions.choice_metadata(1).unwrap();
    assert_eq!((unknown.dialect(), unknown.model), (None, None));
    let metadata = completions.metadata();
    assert_eq!(metadata.dialect(), Some(Dialect::Anthropic));
}
