//! Estimates of usage that is missing in part.

use serde_json::json;

use super::*;

const P: Option<u64> = Some(10);

/// `prompt completion total [choices] source`, where `~` marks an estimated number.
fn summary(usage: &Usage) -> String {
    let mark = |estimated| if estimated { "~" } else { "" };
    let show = |figure: Option<u64>, estimated| {
        figure.map_or_else(
            || "-".to_owned(),
            |figure| format!("{}{figure}", mark(estimated)),
        )
    };
    let estimated = &usage.estimated;
    let choices: Vec<String> = usage
        .per_choice
        .iter()
        .map(|(index, tokens)| {
            let estimated = mark(estimated.choices.contains(index));
            format!("{index}:{estimated}{tokens}")
        })
        .collect();
    format!(
        "{} {} {} {choices:?} {:?}",
        show(usage.prompt_tokens, estimated.prompt),
        show(usage.completion_tokens, estimated.completion),
        show(usage.total_tokens, estimated.total),
        usage.source
    )
    .replace('"', "")
}

fn reported(prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) -> Usage {
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: total,
        source: UsageSource::Reported,
        raw: json!({}),
        ..Usage::default()
    }
}

#[track_caller]
fn check(reported: &Usage, prompt: Option<u64>, choices: &[u64], expected: &str) {
    let choices: Vec<_> = choices
        .iter()
        .zip(0..)
        .map(|(tokens, index)| (ChoiceIndex(index), *tokens))
        .collect();
    assert_eq!(summary(&estimate(reported, prompt, &choices)), expected);
}

#[test]
fn u12_missing_numbers_are_estimated() {
    let none = Usage::default();
    check(&none, P, &[3, 4], "~10 ~7 ~17 [0:~3, 1:~4] Estimated");
    check(&none, None, &[3, 4], "- ~7 - [0:~3, 1:~4] Estimated");
    check(&none, P, &[], "~10 - - [] Estimated");
    check(&none, None, &[], "- - - [] Absent");
    check(&none, None, &[0], "- ~0 - [0:~0] Estimated");
}

#[test]
fn reported_numbers_are_kept() {
    let all = reported(Some(5), Some(6), Some(11));
    check(&all, P, &[3], "5 6 11 [0:6] Reported");
    check(&all, P, &[3, 4], "5 6 11 [0:~3, 1:~4] Mixed");
    check(&all, P, &[], "5 6 11 [] Reported");
    let inconsistent = reported(Some(5), Some(6), Some(99));
    check(&inconsistent, P, &[3], "5 6 99 [0:6] Reported");
}

#[test]
fn u05_missing_parts_are_added() {
    check(
        &reported(None, None, Some(5)),
        P,
        &[3],
        "~10 ~3 5 [0:~3] Mixed",
    );
    check(
        &reported(None, None, Some(5)),
        None,
        &[],
        "- - 5 [] Reported",
    );
    check(
        &reported(Some(5), Some(6), None),
        P,
        &[3],
        "5 6 11 [0:6] Reported",
    );
    check(
        &reported(Some(5), None, None),
        None,
        &[3],
        "5 ~3 ~8 [0:~3] Mixed",
    );
    check(
        &reported(None, Some(6), None),
        P,
        &[3],
        "~10 6 ~16 [0:6] Mixed",
    );
    check(
        &reported(None, Some(6), None),
        None,
        &[3],
        "- 6 - [0:6] Reported",
    );
}

#[test]
fn u07_a_choice_with_its_own_report_keeps_its_number() {
    let mut apart = reported(Some(5), None, None);
    apart.per_choice = vec![(ChoiceIndex(1), 8)];
    check(&apart, None, &[3, 4], "5 ~11 ~16 [0:~3, 1:8] Mixed");
    apart.per_choice = vec![(ChoiceIndex(1), 8), (ChoiceIndex(0), 2)];
    apart.completion_tokens = Some(10);
    check(&apart, None, &[3, 4], "5 10 15 [0:2, 1:8] Reported");
}

#[test]
fn u12_counts_of_choices_without_a_report_are_added() {
    let mut apart = reported(Some(5), Some(8), Some(13));
    apart.per_choice = vec![(ChoiceIndex(1), 8)];
    apart.by_choice = true;
    check(
        &apart,
        None,
        &[3, 4, 2],
        "5 ~13 ~18 [0:~3, 1:8, 2:~2] Mixed",
    );
    apart.by_choice = false;
    check(&apart, None, &[3, 4], "5 8 13 [0:~3, 1:8] Mixed");
    apart.by_choice = true;
    apart.total_tokens = None;
    check(&apart, None, &[3, 4], "5 ~11 ~16 [0:~3, 1:8] Mixed");
}

#[test]
fn u15_a_report_below_what_was_received_has_an_estimate_beside_it() {
    let mut below = reported(Some(5), Some(6), Some(11));
    below.below_received = true;
    let choices = |counts: &[u64]| -> Vec<(ChoiceIndex, u64)> {
        (0..).map(ChoiceIndex).zip(counts.iter().copied()).collect()
    };
    let usage = estimate(&below, P, &choices(&[70, 80]));
    assert_eq!(summary(&usage), "5 6 11 [0:~70, 1:~80] Mixed");
    assert_eq!(usage.counted, Some(150));
    let usage = estimate(&below, P, &choices(&[70]));
    assert_eq!(summary(&usage), "5 6 11 [0:6] Mixed");
    assert_eq!(usage.counted, Some(70));
    below.per_choice = vec![(ChoiceIndex(1), 6)];
    let usage = estimate(&below, P, &choices(&[70, 80]));
    assert_eq!(summary(&usage), "5 6 11 [0:~70, 1:6] Mixed");
    assert_eq!(usage.counted, Some(150));
    assert_eq!(estimate(&below, P, &[]).counted, None);
}

#[test]
fn a_discarded_choice_is_estimated_from_its_bytes() {
    let mut log = Transcript::new(ChoiceIndex(0), crate::CompletionKind::Chat);
    let mut machine = crate::choice::ChoiceMachine::new(crate::Config::default());
    let mut say = |text: &'static str, log: &mut Transcript| {
        let update = crate::Update {
            content: Some(text.into()),
            ..crate::Update::default()
        };
        machine.apply(
            crate::text_delta::Delta::Update(&update),
            crate::Position::default(),
            log,
        );
    };
    let never = |_: &str| -> u64 { panic!("no text is left") };
    say("12345", &mut log);
    log.discard();
    assert_eq!(log.tokens(&never), 2);
    say("6789", &mut log);
    assert_eq!(log.tokens(&never), 3, "nine bytes");
    log.discard();
    assert_eq!(log.tokens(&never), 3, "once is enough");
}
