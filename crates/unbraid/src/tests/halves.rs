//! The flat view returns complete characters, however the server cut them (C14).

use std::{collections::BTreeMap, io};

use futures::{StreamExt, stream};
use unbraid_testkit::script::{DONE, Script, Step, bytes, finish};

use super::soon;
use crate::{Completions, Fragment, Update, Updates};

/// A chunk of one choice with this delta.
fn delta(choice: u32, delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":{choice},\"delta\":{delta}}}]}}\n\n")
}

/// A chunk of one choice with this content, as JSON source.
fn content(choice: u32, text: &str) -> String {
    delta(choice, &format!("{{\"content\":\"{text}\"}}"))
}

const HIGH: &str = "\\ud83d";
const LOW: &str = "\\ude00";

async fn read(body: String) -> Vec<Update<'static>> {
    let source = stream::iter([Ok::<_, io::Error>(body)]);
    let items: Vec<_> = soon(Updates::from_byte_stream(source).collect()).await;
    items.into_iter().map(Result::unwrap).collect()
}

/// The text of each choice and kind, concatenated as a user would.
fn concatenate<'u>(updates: impl IntoIterator<Item = &'u Update<'static>>) -> Vec<String> {
    let mut texts: BTreeMap<(u32, String), String> = BTreeMap::new();
    for update in updates {
        let mut add = |kind: String, piece: &Option<Fragment<'static>>| {
            let Some(piece) = piece else { return };
            assert_eq!((piece.low, piece.high), (None, None), "no half is visible");
            let choice = update.choice.unwrap().0;
            *texts.entry((choice, kind)).or_default() += &piece.text;
        };
        add("content".into(), &update.content);
        add("reasoning".into(), &update.reasoning);
        add("refusal".into(), &update.refusal);
        add("function".into(), &update.function_arguments);
        let audio = update.metadata.iter().filter(|(key, _)| key == "audio");
        for (_, raw) in audio {
            let audio: serde_json::Value = serde_json::from_str(raw).expect("no half is visible");
            let transcript = audio["transcript"]
                .as_str()
                .map(|text| text.to_owned().into());
            add("audio".into(), &transcript);
        }
        for call in &update.tool_calls {
            let index = call.wire_index.unwrap_or(-1);
            add(format!("call {index}"), &call.arguments);
        }
    }
    let line = |((choice, kind), text)| format!("{choice} {kind}: {text}");
    texts.into_iter().map(line).collect()
}

/// Checks the texts of a stream, and those of the choices that are made from the flat view.
async fn check(chunks: &[String], expected: &[&str]) {
    for end in [DONE, ""] {
        let body = chunks.concat() + end;
        let flat = read(body.clone()).await;
        assert_eq!(concatenate(&flat), expected);
        let ats: Vec<u64> = flat.iter().map(|update| update.event_index.0).collect();
        assert!(ats.is_sorted(), "{ats:?}");
        let source = || Script::of([&body]);
        let direct = Completions::from_byte_stream(source());
        let through = Completions::from_updates(Updates::from_byte_stream(source()));
        let of = |completions: Completions| async move {
            let mut choices = completions.choices();
            let mut all = Vec::new();
            while let Some(Ok(choice)) = soon(choices.next()).await {
                let text: String = soon(
                    choice
                        .content()
                        .filter_map(|item| async { item.ok() })
                        .collect(),
                )
                .await;
                all.push((choice.index(), text, soon(choice.outcome()).await.message));
            }
            all
        };
        let (direct, through) = (of(direct).await, of(through).await);
        assert!(direct == through, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn c14_the_flat_view_joins_halves_of_each_choice_and_kind() {
    let a = content(0, &format!("A{HIGH}"));
    let b = content(0, &format!("{LOW}B"));
    let pair = [a.clone(), b.clone(), finish(0, "stop")];
    check(&pair, &["0 content: A😀B"]).await;
    let other = [
        content(1, &format!("x{HIGH}")),
        delta(0, &format!("{{\"reasoning_content\":\"r{HIGH}\"}}")),
        delta(0, &format!("{{\"refusal\":\"n{HIGH}\"}}")),
        content(1, &format!("{LOW}y")),
        delta(0, &format!("{{\"refusal\":\"{LOW}\"}}")),
        delta(0, &format!("{{\"reasoning_content\":\"{LOW}{HIGH}\"}}")),
        delta(0, &format!("{{\"reasoning_content\":\"{LOW}\"}}")),
    ];
    let between: Vec<String> = [vec![a], other.to_vec(), vec![b]].concat();
    let expected = [
        "0 content: A😀B",
        "0 reasoning: r😀😀",
        "0 refusal: n😀",
        "1 content: x😀y",
    ];
    check(&between, &expected).await;
}

#[tokio::test(start_paused = true)]
async fn c14_m11_the_flat_view_joins_halves_of_each_transcript() {
    let audio = |choice, text: &str| {
        let field = format!("{{\"audio\":{{\"transcript\":\"{text}\"}}}}");
        delta(choice, &field)
    };
    let two = [
        audio(0, &format!("A{HIGH}")),
        audio(1, HIGH),
        audio(0, &format!("{LOW}B")),
        audio(1, "?"),
        audio(1, HIGH),
        finish(1, "stop"),
    ];
    check(&two, &["0 audio: A😀B", "1 audio: \u{FFFD}?\u{FFFD}"]).await;
    let message = |text: &str| {
        let audio = format!("{{\"transcript\":\"{text}\"}}");
        format!("data: {{\"choices\":[{{\"index\":0,\"message\":{{\"audio\":{audio}}}}}]}}\n\n")
    };
    check(&[message(&format!("A{HIGH}"))], &["0 audio: A\u{FFFD}"]).await;
}

#[tokio::test(start_paused = true)]
async fn c14_the_flat_view_joins_halves_of_each_calls_arguments() {
    let call =
        |index: &str, rest: &str| delta(0, &format!("{{\"tool_calls\":[{{{index}{rest}}}]}}"));
    let header = |id: &str, text: &str| {
        format!("\"id\":\"{id}\",\"function\":{{\"name\":\"f\",\"arguments\":\"{text}\"}}")
    };
    let more = |text: &str| format!("\"function\":{{\"arguments\":\"{text}\"}}");
    let two = [
        call("\"index\":0,", &header("a", &format!("[{HIGH}"))),
        call("\"index\":1,", &header("b", &format!("({HIGH}"))),
        call("\"index\":0,", &more(&format!("{LOW}]"))),
        call("\"index\":1,", &more(&format!("{LOW})"))),
    ];
    check(&two, &["0 call 0: [😀]", "0 call 1: (😀)"]).await;
    let bare = [
        call("\"index\":3,", &header("a", &format!("[{HIGH}"))),
        call("", &more(&format!("{LOW}]"))),
    ];
    check(&bare, &["0 call -1: 😀]", "0 call 3: ["]).await;
    let late = [
        call("", &header("a", &format!("[{HIGH}"))),
        call("\"index\":0,", &more(&format!("{LOW}]"))),
    ];
    check(&late, &["0 call -1: [", "0 call 0: 😀]"]).await;
    let legacy = |text: &str| {
        delta(
            0,
            &format!("{{\"function_call\":{{\"name\":\"f\",\"arguments\":\"{text}\"}}}}"),
        )
    };
    check(&[legacy(HIGH), legacy(LOW)], &["0 function: 😀"]).await;
}

#[tokio::test(start_paused = true)]
async fn c14_a_half_that_stays_alone_is_a_replacement_character_in_the_flat_view() {
    let a = || content(0, &format!("A{HIGH}"));
    check(&[a()], &["0 content: A\u{FFFD}"]).await;
    check(&[a(), content(0, "B")], &["0 content: A\u{FFFD}B"]).await;
    check(&[a(), a()], &["0 content: A\u{FFFD}A\u{FFFD}"]).await;
    check(&[content(0, LOW)], &["0 content: \u{FFFD}"]).await;
    check(&[a(), finish(0, "stop")], &["0 content: A\u{FFFD}"]).await;
    let empty = [a(), content(0, ""), content(0, LOW)];
    check(&empty, &["0 content: A😀"]).await;
    // The choice has ended before the stream does.
    let past = [a(), finish(0, "stop"), content(1, "x"), content(1, "y")];
    check(&past, &["0 content: A\u{FFFD}", "1 content: xy"]).await;
    // A finish reason with each chunk ends nothing while more arrives.
    let each = |text: &str| {
        let choice = format!(
            "{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}"
        );
        format!("data: {{\"choices\":[{choice}]}}\n\n")
    };
    let pair = [each(&format!("A{HIGH}")), each(&format!("{LOW}B"))];
    check(&pair, &["0 content: A😀B"]).await;
}

#[tokio::test(start_paused = true)]
async fn c14_a_lone_half_is_returned_before_the_error_with_a_warning() {
    let source = Script::new([bytes(content(0, HIGH)), Step::Fail]);
    let items: Vec<_> = soon(Updates::from_byte_stream(source).collect()).await;
    let [Ok(_), Ok(lone), Err(_)] = items.as_slice() else {
        panic!("{items:?}");
    };
    assert_eq!(lone.content.as_ref().unwrap().text, "\u{FFFD}");
    assert_eq!(lone.warnings[0].code, "C14");
    assert_eq!(lone.warnings[0].choice, lone.choice);
}

#[tokio::test(start_paused = true)]
async fn halves_that_are_held_are_bounded() {
    let count = 3000;
    let mut body: String = (0..count).map(|choice| content(choice, HIGH)).collect();
    body.extend((0..count).map(|choice| content(choice, LOW)));
    let texts = concatenate(&read(body).await);
    let whole = texts.iter().filter(|text| text.ends_with('😀')).count();
    assert_eq!(whole, crate::limits::MAX_ENTRIES);
    let alone = texts
        .iter()
        .filter(|text| text.ends_with("\u{FFFD}\u{FFFD}"));
    assert_eq!(alone.count(), count as usize - whole);
}

#[tokio::test(start_paused = true)]
async fn a_source_of_empty_reads_does_not_hold_the_flat_views_thread() {
    let mut reads = 0;
    let source = stream::poll_fn(move |_| {
        reads += 1;
        std::task::Poll::Ready((reads < 1_000_000).then_some(Ok::<_, io::Error>("")))
    });
    let mut flat = Updates::from_byte_stream(source);
    let next = futures::poll!(std::pin::pin!(flat.next()));
    assert!(next.is_pending());
}

#[tokio::test(start_paused = true)]
async fn c14_halves_in_names_are_replaced_in_the_flat_view_as_in_a_choice() {
    let name = |rest: &str| delta(0, &format!("{{\"tool_calls\":[{{\"index\":0,{rest}}}]}}"));
    let body = [
        name(&format!(
            "\"id\":\"a\",\"function\":{{\"name\":\"f{HIGH}\"}}"
        )),
        name(&format!(
            "\"function\":{{\"name\":\"{LOW}g\",\"arguments\":\"{{}}\"}}"
        )),
    ];
    let flat = read(body.concat()).await;
    let names = flat.iter().flat_map(|update| &update.tool_calls);
    let names: Vec<_> = names.filter_map(|call| call.name.clone()).collect();
    assert_eq!(names, ["f\u{FFFD}", "\u{FFFD}g"].map(Fragment::from));
    assert_eq!(
        flat.iter()
            .map(|update| update.warnings.len())
            .sum::<usize>(),
        2
    );
    check(&body, &["0 call 0: {}"]).await;
}

/// Text after the end of its choice is part of the message only.
#[tokio::test(start_paused = true)]
async fn c14_f06_a_half_after_the_end_of_its_choice_is_the_same_through_the_flat_view() {
    let late = [
        content(0, "A"),
        finish(0, "stop"),
        content(1, "x"),
        content(0, &format!("L{HIGH}")),
        content(1, "y"),
    ];
    let body = late.concat() + DONE;
    for completions in [
        Completions::from_byte_stream(Script::of([&body])),
        Completions::from_updates(Updates::from_byte_stream(Script::of([&body]))),
    ] {
        soon(completions.closed()).await.unwrap();
        let choice = completions.choice(0).await.unwrap();
        assert_eq!(choice.snapshot().content, "AL\u{FFFD}");
    }
}
