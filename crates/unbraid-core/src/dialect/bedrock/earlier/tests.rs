//! Deltas of several calls at one index.

use crate::{CallStatus, ChoiceIndex, Config, Demux};

/// The id, the arguments and the status of each call of a stream: its starts and deltas at index 0, then the end.
fn read(events: &[&str]) -> Vec<(String, String, CallStatus)> {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"{\"messageStart\":{\"role\":\"assistant\"}}\n");
    for event in events {
        demux.feed(&line(event));
    }
    demux.feed(b"{\"messageStop\":{\"stopReason\":\"tool_use\"}}\n");
    demux.finish();
    let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    let calls = message.tool_calls.iter().map(|call| {
        let id = call.id.clone().unwrap_or_default();
        (id.to_string(), call.arguments.clone(), call.status.unwrap())
    });
    calls.collect()
}

/// `start ID`, `server ID`, `stop`, or the members of a delta.
fn line(event: &str) -> Vec<u8> {
    const AT: &str = r#""contentBlockIndex":0"#;
    let start = |tool: String| {
        format!("{{\"contentBlockStart\":{{{AT},\"start\":{{\"toolUse\":{{{tool}}}}}}}}}\n")
    };
    let line = match event.split_once(' ') {
        Some(("start", id)) => start(format!(r#""toolUseId":"{id}","name":"look""#)),
        Some(("server", id)) => start(format!(
            r#""toolUseId":"{id}","name":"web","type":"server_tool_use""#
        )),
        _ if event == "stop" => format!("{{\"contentBlockStop\":{{{AT}}}}}\n"),
        _ => format!("{{\"contentBlockDelta\":{{{AT},\"delta\":{{\"toolUse\":{{{event}}}}}}}}}\n"),
    };
    line.into_bytes()
}

const ONE: [&str; 3] = [
    r#""toolUseId":"t1","name":"look","input":"{\"x\":""#,
    r#""toolUseId":"t1","name":"look","input":"1}""#,
    r#""toolUseId":"t1","input":"1}""#,
];
const TWO: [&str; 3] = [
    r#""toolUseId":"t2","name":"look","input":"{\"y\":""#,
    r#""toolUseId":"t2","name":"look","input":"2}""#,
    r#""toolUseId":"t2","input":"2}""#,
];

#[test]
fn t28_a_delta_continues_the_call_of_its_id_whatever_the_order() {
    let expected = [("t1", r#"{"x":1}"#), ("t2", r#"{"y":2}"#)];
    let expected =
        expected.map(|(id, arguments)| (id.to_owned(), arguments.to_owned(), CallStatus::Complete));
    let unnamed = [r#""toolUseId":"t1""#, r#""input":"1}""#];
    let streams: [&[&str]; 9] = [
        &[ONE[0], TWO[0], ONE[1], TWO[1]],
        &[ONE[0], TWO[0], ONE[2], TWO[2]],
        &[ONE[0], TWO[0], TWO[2], ONE[2]],
        // The delta after an id belongs to the same call.
        &[ONE[0], TWO[0], TWO[1], unnamed[0], unnamed[1]],
        // The starts overlap.
        &[
            "start t1", "start t2", ONE[0], TWO[0], ONE[2], TWO[2], "stop",
        ],
        // After the stop of either.
        &[ONE[0], "stop", TWO[0], "stop", ONE[2], TWO[2]],
        &[ONE[0], TWO[0], "stop", ONE[1], "stop", TWO[1], "stop"],
        // After a tool of the server, and after starts that have stopped.
        &[ONE[0], TWO[0], "server s", "stop", ONE[2], TWO[2]],
        &[
            "start t1", "start t2", "stop", ONE[0], TWO[0], ONE[1], TWO[1],
        ],
    ];
    for events in streams {
        assert_eq!(read(events), expected, "{events:?}");
    }
}

#[test]
fn d14_calls_that_come_without_arguments_have_an_empty_object_once() {
    let start = [
        r#""toolUseId":"t1","name":"look""#,
        r#""toolUseId":"t2","name":"look""#,
    ];
    let calls = read(&[start[0], start[1], start[0], start[1], ONE[0], ONE[2]]);
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].1, r#"{"x":1}"#);
    assert_eq!(calls[1].1, "{}");
}

#[test]
fn t07_an_id_that_is_unknown_opens_a_call_only_with_a_name() {
    let calls = read(&[ONE[0], TWO[0], r#""toolUseId":"t3","input":"2}""#]);
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].1, r#"{"y":2}"#);
    let calls = read(&[
        ONE[0],
        TWO[0],
        r#""toolUseId":"t3","name":"look","input":"{}""#,
        TWO[2],
    ]);
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[1].1, r#"{"y":2}"#);
    assert_eq!(calls[2].1, "{}");
}
