//! What the streams return, and when they may be taken.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, TryStreamExt};
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{all_choices, read, soon};
use crate::{
    AllEvents, Choice, Choices, Completions, Config, Content, Event, Events, FinishPolicy,
    Messages, Part, Sequenced, Updates,
};

#[test]
fn handles_have_the_traits_that_callers_rely_on() {
    fn handle<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    fn stream<T: futures::stream::FusedStream>() {}
    handle::<Completions>();
    handle::<Choices>();
    handle::<Choice>();
    handle::<Content>();
    handle::<Events>();
    handle::<AllEvents>();
    handle::<Messages>();
    stream::<Choices>();
    stream::<Content>();
    stream::<crate::Coalesced>();
    stream::<AllEvents>();
    stream::<Updates>();
    assert!(size_of::<Sequenced>() <= 256, "{}", size_of::<Sequenced>());
}

/// Eight choices, one after another in the stream: a consumer that could block the reader would hang.
fn eight() -> Vec<Step> {
    let mut steps = Vec::new();
    for round in 0..50 {
        steps.extend((0..8).map(|choice| bytes(content(choice, &format!("{round} ")))));
    }
    steps.extend((0..8).rev().map(|choice| bytes(finish(choice, "stop"))));
    steps.push(bytes(DONE));
    steps
}

fn numbers() -> String {
    (0..50).map(|round| format!("{round} ")).collect()
}

#[tokio::test(start_paused = true)]
async fn l11_eight_choices_one_after_another() {
    let completions = read(eight());
    let mut choices = completions.choices();
    let mut seen = 0;
    while let Some(choice) = soon(choices.next()).await {
        let choice = choice.unwrap();
        let deltas: Vec<_> = soon(choice.content().try_collect::<Vec<_>>())
            .await
            .unwrap();
        assert_eq!(deltas.len(), 50, "one item per wire delta");
        let text: String = deltas.into_iter().collect();
        assert_eq!(text, numbers());
        seen += 1;
    }
    assert_eq!(seen, 8);
}

#[tokio::test(start_paused = true)]
async fn l12_a_late_subscriber_misses_nothing() {
    let completions = read(eight());
    soon(completions.closed()).await.unwrap();
    let (choices, _) = all_choices(&completions).await;
    for choice in &choices {
        let early: String = soon(choice.content().try_collect()).await.unwrap();
        let again: String = soon(choice.content().try_collect()).await.unwrap();
        assert_eq!((early.as_str(), again), (numbers().as_str(), numbers()));
    }
    let order: Vec<u32> = choices.iter().map(|choice| choice.index().0).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test(start_paused = true)]
async fn two_subscribers_and_a_clone_read_on_their_own() {
    let second = Duration::from_secs(1);
    let completions = read([
        bytes(content(0, "a")),
        bytes(content(0, "b")),
        Step::Pause(second),
        bytes(content(0, "c")),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let (mut one, mut two) = (choice.content(), choice.content());
    assert_eq!(soon(one.next()).await.unwrap().unwrap(), "a");
    let clone = one.clone();
    assert_eq!(soon(one.try_collect::<String>()).await.unwrap(), "bc");
    assert_eq!(soon(clone.try_collect::<String>()).await.unwrap(), "bc");
    assert_eq!(soon(two.next()).await.unwrap().unwrap(), "a");
    assert_eq!(
        soon(two.coalesced().try_collect::<Vec<_>>())
            .await
            .unwrap()
            .concat_all(),
        "bc"
    );
}

trait ConcatAll {
    fn concat_all(self) -> String;
}

impl ConcatAll for Vec<crate::Text> {
    fn concat_all(self) -> String {
        self.into_iter().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_stalls_neither_its_siblings_nor_the_source() {
    let source = Script::new(eight());
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    let slow = soon(completions.first()).await.unwrap();
    let mut slow_content = slow.content();
    soon(slow_content.next()).await.unwrap().unwrap();
    // It reads no further, and all the others reach their end.
    for index in 1..8 {
        let choice = soon(completions.choice(index)).await.unwrap();
        assert_eq!(soon(choice.text()).await.unwrap(), numbers());
    }
    soon(completions.closed()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(probe.closed());
    let rest: String = soon(slow_content.coalesced().try_collect()).await.unwrap();
    assert_eq!(format!("0 {rest}"), numbers());
}

#[tokio::test(start_paused = true)]
async fn r44_a_choice_appears_with_its_first_update_applied() {
    let completions = read([bytes(content(5, "first")), Step::Stall]);
    let choice = soon(completions.first()).await.unwrap();
    assert_eq!(choice.snapshot().content, "first");
    let delta = choice
        .content()
        .next()
        .now_or_never()
        .expect("the delta is there");
    assert_eq!(delta.unwrap().unwrap(), "first");
}

#[tokio::test(start_paused = true)]
async fn r53_messages_carry_the_role_and_separate_the_parts() {
    let chunk = |delta: &str| {
        bytes(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"
        ))
    };
    let completions = read([
        chunk(r#"{"content":"early"}"#),
        chunk(r#"{"role":"assistant"}"#),
        chunk(r#"{"content":" "}"#),
        chunk(
            r#"{"content":"both","tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{"}}]}"#,
        ),
        chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}"#),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let messages: Vec<_> = soon(choice.messages().try_collect()).await.unwrap();
    let lines: Vec<String> = messages
        .iter()
        .map(|message| match &message.part {
            Part::Text(text) => format!("{:?} text {:?}", message.role.as_deref(), &**text),
            Part::FunctionName {
                call_index,
                id,
                name,
            } => {
                assert_eq!(message.content(), "");
                format!(
                    "{:?} call {call_index} {:?} {:?}",
                    message.role.as_deref(),
                    id.as_deref(),
                    &**name
                )
            }
            Part::FunctionArguments {
                call_index,
                arguments,
            } => {
                format!(
                    "{:?} call {call_index} {:?}",
                    message.role.as_deref(),
                    &**arguments
                )
            }
        })
        .collect();
    assert_eq!(
        lines,
        [
            "None text \"early\"",
            "Some(\"assistant\") text \" \"",
            "Some(\"assistant\") text \"both\"",
            "Some(\"assistant\") call 0 Some(\"c1\") \"f\"",
            "Some(\"assistant\") call 0 \"{\"",
            "Some(\"assistant\") call 0 \"}\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn f06_late_text_is_in_the_snapshot_but_in_no_stream() {
    let completions = read([
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        bytes(content(1, "b")),
        bytes(content(0, " late")),
        bytes(DONE),
    ]);
    soon(completions.closed()).await.unwrap();
    let choice = soon(completions.choice(0)).await.unwrap();
    assert_eq!(
        soon(choice.content().try_collect::<String>())
            .await
            .unwrap(),
        "a"
    );
    assert_eq!(choice.snapshot().content, "a late");
    assert_eq!(
        soon(completions.aggregate()).await["choices"][0]["message"]["content"],
        "a late"
    );
    assert!(
        completions
            .warnings()
            .iter()
            .any(|warning| warning.code == "F6")
    );
}

#[tokio::test(start_paused = true)]
async fn each_finish_policy_ends_a_choice_at_its_point() {
    let steps = || {
        [
            bytes(content(0, "a")),
            bytes(finish(0, "stop")),
            bytes(content(0, "b")),
            bytes(": x\n\n"),
            Step::Stall,
        ]
    };
    for (policy, text) in [
        (FinishPolicy::AtFinish, Some("a")),
        (FinishPolicy::NextEvent, Some("ab")),
        (FinishPolicy::AtStreamEnd, None),
    ] {
        let completions = super::read_with(Completions::builder().finish_policy(policy), steps());
        let choice = soon(completions.first()).await.unwrap();
        let content = choice.content();
        let ended =
            tokio::time::timeout(Duration::from_secs(5), content.try_collect::<String>()).await;
        assert_eq!(ended.ok().map(Result::unwrap).as_deref(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn u14_usage_comes_after_the_choices_and_delays_none() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\n";
    let completions = read([
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        Step::Pause(Duration::from_secs(9)),
        bytes(usage),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let before = tokio::time::Instant::now();
    soon(choice.finished()).await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(1));
    let usage = soon(completions.usage()).await;
    assert_eq!(
        (
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.total_tokens
        ),
        (Some(3), Some(4), Some(7))
    );
    assert!(before.elapsed() >= Duration::from_secs(9) - Duration::from_millis(1));
    let mut events = completions.events();
    let mut names = Vec::new();
    while let Some(event) = soon(events.next()).await {
        names.push(event.unwrap().event.as_str());
    }
    assert_eq!(
        names,
        [
            "choice.start",
            "content.delta",
            "finish",
            "content.done",
            "end",
            "usage"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_replay_lets_other_tasks_run() {
    let mut steps: Vec<_> = (0..5000).map(|_| bytes(content(0, "x"))).collect();
    steps.push(bytes(DONE));
    let completions = read(steps);
    soon(completions.closed()).await.unwrap();
    let mut content = soon(completions.first()).await.unwrap().content();
    let ran = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = Arc::clone(&ran);
    let other = tokio::spawn(async move {
        loop {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut items = 0;
    while let Some(Ok(_)) = content.next().await {
        items += 1;
    }
    other.abort();
    assert_eq!(items, 5000);
    assert!(ran.load(std::sync::atomic::Ordering::Relaxed) >= 30);
}

#[tokio::test(start_paused = true)]
async fn r63_the_flat_view_and_the_choices_agree() {
    let reads: Vec<String> = vec![
        content(1, "b"),
        content(0, "a"),
        finish(1, "stop"),
        DONE.into(),
    ];
    let flat: Vec<_> =
        soon(Updates::from_byte_stream(Script::of(&reads)).collect::<Vec<_>>()).await;
    let indices: Vec<_> = flat
        .iter()
        .map(|update| update.as_ref().unwrap().choice.map(|index| index.0))
        .collect();
    assert_eq!(indices, [Some(1), Some(0), Some(1), None]);
    let direct = Completions::from_byte_stream(Script::of(&reads));
    let through = Completions::from_updates(Updates::from_byte_stream(Script::of(&reads)));
    assert_eq!(
        soon(direct.aggregate()).await,
        soon(through.aggregate()).await
    );
    let broken = Completions::from_updates(Updates::from_byte_stream(Script::new([
        bytes(content(0, "a")),
        Step::Fail,
    ])));
    assert_eq!(super::ends(&broken).await, ["0 transport \"a\""]);
}

#[tokio::test(start_paused = true)]
async fn s25_the_flat_view_ends_at_the_end_mark_although_the_connection_stays_open() {
    let after = content(0, "after");
    let steps = || {
        [
            bytes(content(0, "a")),
            bytes(format!("{DONE}{after}")),
            Step::Stall,
        ]
    };
    let updates = Updates::from_byte_stream(Script::new(steps()));
    let updates: Vec<_> = soon(updates.try_collect()).await.unwrap();
    assert_eq!(updates.len(), 2);
    assert!(updates[1].done);

    let config = Config::default().with_usage_after_done(true);
    let mut updates = Updates::with_config(Script::new(steps()), &config);
    for _ in 0..3 {
        soon(updates.next()).await.unwrap().unwrap();
    }
    assert!(updates.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn merged_events_sort_into_one_order() {
    let completions = read(eight());
    let mut events: Vec<Sequenced> = soon(completions.events().try_collect()).await.unwrap();
    assert_eq!(events.len(), 8 * (1 + 50 + 1 + 1 + 1));
    let mut per_choice = [0; 8];
    for event in &events {
        let choice = event.choice.unwrap().0 as usize;
        assert_eq!(event.seq, per_choice[choice], "in order within the choice");
        per_choice[choice] += 1;
    }
    events.sort_by_key(Sequenced::sort_key);
    assert!(matches!(events.last().unwrap().event, Event::End(_)));
}

#[tokio::test]
async fn r67_a_source_that_is_always_ready_hides_nothing_and_starves_nobody() {
    let chunk = content(0, "word");
    let reads =
        futures::stream::iter((0..50_000).map(move |_| Ok::<_, std::io::Error>(chunk.clone())));
    let turns = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let completions = Completions::from_byte_stream(reads);
    let seen = tokio::spawn({
        let completions = completions.clone();
        async move {
            let choice = completions.first().await.unwrap();
            let closed = completions.closed().now_or_never().is_some();
            (choice.snapshot().content.len(), closed)
        }
    });
    let (length, closed) = soon(seen).await.unwrap();
    assert!(
        !closed && length < 4 * 50_000 / 2,
        "the choice was seen after {length} bytes"
    );
    let _cut = soon(completions.closed()).await;
    other.abort();
    assert!(turns.load(std::sync::atomic::Ordering::Relaxed) > 20);
}
