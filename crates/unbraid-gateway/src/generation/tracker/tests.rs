use unbraid_core::ChoiceIndex;
use unbraid_log::{End, Event, RecordBuilder, Seq};

use super::{Identity, Role, Tracker};

fn identity() -> Identity {
    Identity::new("/v1/chat/completions", 5, Some("requested".into()))
}

/// What the log gets of a body that is cut like this: one line for each event.
fn trace<'b>(role: Role, reads: impl IntoIterator<Item = &'b [u8]>) -> Vec<String> {
    let (mut tracker, mut identity) = (Tracker::new(role, 8), identity());
    let mut log = RecordBuilder::new(Seq(1));
    for read in reads {
        tracker.feed(read, &mut identity, &mut log);
    }
    tracker.open_single();
    tracker.finish(None, &mut identity, &mut log);
    tracker.write_late_ends(&identity, &mut log);
    entries(log)
}

fn entries(mut log: RecordBuilder) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(record) = log.take() {
        for (_, event) in record.events() {
            let choices: Vec<u32> = event.choices().iter().map(|choice| choice.0).collect();
            let payload = String::from_utf8_lossy(event.payload().unwrap_or_default()).into_owned();
            lines.push(match event {
                Event::ChoiceEnd {
                    choice,
                    end,
                    finish_reason,
                } => {
                    format!("end {} {end} {finish_reason:?}", choice.0)
                }
                Event::Error { .. } => format!("error {payload}"),
                Event::Synthetic { .. } => format!("synthetic {choices:?}"),
                _ => format!("{choices:?} {payload}"),
            });
        }
    }
    lines
}

const BODY: &str = concat!(
    ": comment\n\n",
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{}},{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n",
    "data: {\"choices\":[],\"usage\":{}}\n\n",
    "data: [DONE]\n\n",
    "data: {\"late\":1}\n\n",
);

fn expected() -> [&'static str; 6] {
    [
        "[1] {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"a\"}}]}",
        "[0, 1] {\"choices\":[{\"index\":0,\"delta\":{}},{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}]}",
        "[0] {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}",
        "end 1 finished Some(\"stop\")",
        "[] {\"choices\":[],\"usage\":{}}",
        "end 0 done_without_finish None",
    ]
}

#[test]
fn a_choice_ends_with_the_first_event_that_brings_nothing_for_it() {
    assert_eq!(trace(Role::Whole, [BODY.as_bytes()]), expected());
}

#[test]
fn the_log_is_the_same_at_every_cut() {
    for cut in 0..BODY.len() {
        let (first, second) = BODY.as_bytes().split_at(cut);
        assert_eq!(trace(Role::Whole, [first, second]), expected(), "{cut}");
    }
    assert_eq!(trace(Role::Whole, BODY.as_bytes().chunks(1)), expected());
}

#[test]
fn an_event_without_its_blank_line_counts_if_its_json_is_complete() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}";
    assert_eq!(trace(Role::Whole, [body.as_bytes()]).len(), 2);
    let half = body.as_bytes().get(..30).unwrap();
    assert_eq!(trace(Role::Whole, [half]), Vec::<String>::new());
}

#[test]
fn each_part_of_an_event_has_its_name() {
    let body = concat!(
        "event: e\ndata: {\"a\":1}\ndata: {\"b\":2}\ndata: text\n\n",
        "data: {\"c\":3}\ndata: {\"d\":4}\n\n",
        "event: ping\ndata: {}\ndata: {\"e\":5}\n\n",
        "event: f\ndata: {\"f\":6}\ndata: {\"g\":7}",
    );
    let expected = [
        "e {\"a\":1}",
        "e {\"b\":2}",
        "e text",
        " {\"c\":3}",
        " {\"d\":4}",
        "ping {}",
        " {\"e\":5}",
        "f {\"f\":6}",
        "f {\"g\":7}",
    ];
    for size in [1, 5, body.len()] {
        let (mut tracker, mut identity) = (Tracker::new(Role::Whole, 8), identity());
        let mut log = RecordBuilder::new(Seq(1));
        for read in body.as_bytes().chunks(size) {
            tracker.feed(read, &mut identity, &mut log);
        }
        tracker.finish(None, &mut identity, &mut log);
        let record = log.take().unwrap();
        let events = record.events().map(|(_, event)| {
            let payload = String::from_utf8_lossy(event.payload().unwrap_or_default());
            format!("{} {payload}", event.name().unwrap_or_default())
        });
        assert_eq!(events.collect::<Vec<_>>(), expected, "{size}");
    }
}

#[test]
fn a_body_of_a_fan_out_gives_its_own_choice_and_says_that_it_failed() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n";
    assert_eq!(
        trace(Role::Single(ChoiceIndex(3)), [body.as_bytes()]),
        [
            "[3] {\"choices\":[{\"index\":3,\"delta\":{}}]}",
            "synthetic [3]",
            "end 3 interrupted None"
        ]
    );
}

#[test]
fn a_body_of_a_fan_out_without_a_chunk_ends_its_choice_all_the_same() {
    let single = Role::Single(ChoiceIndex(3));
    let error = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
    for (body, end) in [(error, "server_error"), ("", "interrupted")] {
        let lines = trace(single, [body.as_bytes()]);
        assert_eq!(lines, ["synthetic [3]", &format!("end 3 {end} None")]);
    }
    let lines = trace(single, [&b"data: [DONE]\n\n"[..]]);
    assert_eq!(lines, ["end 3 done_without_finish None"]);
}

/// It ended like one that is complete.
#[test]
fn a_body_of_a_fan_out_that_exceeds_a_limit_before_its_first_chunk_says_so() {
    let piece = vec![b'x'; 1 << 20];
    for start in ["data: ", ": ", "{\"choices\":"] {
        let pieces = std::iter::once(start.as_bytes()).chain((0..33).map(|_| &*piece));
        let lines = trace(Role::Single(ChoiceIndex(3)), pieces);
        assert_eq!(
            lines,
            ["synthetic [3]", "end 3 limit_exceeded None"],
            "{start}"
        );
    }
}

/// No answer is mixed with another one, whatever their indices are.
#[test]
fn of_several_choices_for_one_request_the_first_counts() {
    let both = concat!(
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"y\"}},",
        "{\"index\":7,\"delta\":{\"content\":\"b\"}}]}\n\n"
    );
    let finish = "data: {\"choices\":[{\"index\":7,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let done = "data: [DONE]\n\n";
    let body = [&text(7), &text(1), both, &text(0), finish, &text(1), done].concat();
    let expected = [
        "[3] {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"a\"}}]}",
        "[3] {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"b\"}}]}",
        "[3] {\"choices\":[{\"index\":3,\"delta\":{},\"finish_reason\":\"stop\"}]}",
        "end 3 finished Some(\"stop\")",
    ];
    let single = Role::Single(ChoiceIndex(3));
    assert_eq!(trace(single, [body.as_bytes()]), expected);
    // A body without an end mark, too.
    let body = body.replace(done, "");
    assert_eq!(trace(single, [body.as_bytes()]), expected);
}

#[test]
fn a_cancelled_choice_that_has_not_appeared_ends_and_stays_ended() {
    let (mut tracker, mut identity) = (Tracker::new(Role::Whole, 8), identity());
    let mut log = RecordBuilder::new(Seq(1));
    assert!(tracker.cancel(ChoiceIndex(1), &identity, &mut log));
    assert!(!tracker.cancel(ChoiceIndex(1), &identity, &mut log));
    tracker.feed(BODY.as_bytes(), &mut identity, &mut log);
    let lines = entries(log);
    assert_eq!(lines[..2], ["synthetic [1]", "end 1 cancelled None"]);
    assert_eq!(lines[2], "[0] {\"choices\":[{\"index\":0,\"delta\":{}}]}");
    assert_eq!(tracker.choices()[0].end, Some(End::Cancelled));
}

fn usage(total: u32) -> String {
    format!("data: {{\"choices\":[],\"usage\":{{\"total_tokens\":{total}}}}}\n\n")
}

fn text(index: u32) -> String {
    format!("data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"a\"}}}}]}}\n\n")
}

/// Events stay in their order, also those with the usage so far, which some servers send with every chunk.
#[test]
fn usage_is_held_back_only_until_another_event_follows() {
    let body = [
        text(1),
        usage(1),
        text(1),
        usage(2),
        text(0),
        usage(3),
        text(1),
    ]
    .concat();
    let whole = trace(Role::Whole, [body.as_bytes()]);
    assert_eq!(trace(Role::MaybeWhole, [body.as_bytes()]), whole);
    let usages = whole.iter().filter(|line| line.contains("usage"));
    assert_eq!(usages.count(), 3);
}

/// Readers end at the error, so nothing may follow it.
#[test]
fn usage_that_is_held_back_comes_before_an_error_of_the_provider() {
    let error = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n".to_owned();
    let body = [text(0), usage(1), error].concat();
    let whole = trace(Role::Whole, [body.as_bytes()]);
    assert_eq!(trace(Role::MaybeWhole, [body.as_bytes()]), whole);
    assert!(whole[1].contains("usage") && whole[2].starts_with("error"));
}

#[test]
fn usage_of_a_body_with_one_choice_is_held_back_and_counted() {
    let (mut tracker, mut identity) = (Tracker::new(Role::MaybeWhole, 8), identity());
    let mut log = RecordBuilder::new(Seq(1));
    let body = [text(0), usage(1), usage(2)].concat();
    tracker.feed(body.as_bytes(), &mut identity, &mut log);
    assert!(tracker.held_bytes() > 60, "{}", tracker.held_bytes());
    tracker.resolve_held(false, &mut log);
    assert_eq!(tracker.held_bytes(), 0);
    assert!(entries(log).iter().all(|line| !line.contains("usage")));
}
