//! The format of records: golden files, properties, and bytes that are not records.

use std::{fs, path::PathBuf};

use bytes::Bytes;
use proptest::prelude::*;
use unbraid_core::ChoiceIndex;

use super::{MAX_PAYLOAD_BYTES, Record, RecordBuilder};
use crate::{End, Event, LogError, Meta, Seq, StreamEnd};

/// The events of the golden record: each kind, and each optional field.
fn golden_events() -> Vec<Event<'static>> {
    const TWO: &[ChoiceIndex] = &[ChoiceIndex(0), ChoiceIndex(300)];
    vec![
        Event::chunk(&[], b"{\"choices\":[]}"),
        Event::Chunk {
            choices: TWO.into(),
            name: Some("note"),
            payload: b"{}",
        },
        Event::ChoiceEnd {
            choice: ChoiceIndex(0),
            end: End::ProducerLost,
            finish_reason: None,
        },
        Event::ChoiceEnd {
            choice: ChoiceIndex(300),
            end: End::Finished,
            finish_reason: Some("stop"),
        },
        Event::Synthetic {
            choices: TWO.into(),
            payload: "é".as_bytes(),
        },
        Event::Error {
            name: None,
            payload: b"{\"error\":1}",
        },
        Event::Error {
            name: Some("error"),
            payload: b"",
        },
        Event::Part { payload: b"a" },
    ]
}

fn record_of(first: u64, events: &[Event<'_>]) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for event in events {
        builder.push(event);
    }
    builder.take().expect("there are events")
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.join(" ") + "\n"
    });
    lines.collect()
}

/// A change of a golden file is a new version of the format, or a log of an earlier release cannot be read.
#[track_caller]
fn check_golden(name: &str, bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let given = hex(bytes);
    if std::env::var_os("UNBRAID_BLESS").is_some() {
        fs::write(&path, &given).expect("a golden file");
    }
    assert_eq!(given, fs::read_to_string(path).expect("a golden file"));
}

#[test]
fn golden_files_pin_the_format() {
    check_golden("record.v1.hex", record_of(127, &golden_events()).encoded());
    check_golden("seal.v1.hex", &StreamEnd::new(End::Finished).encode());
    let full = StreamEnd::new(End::Refused)
        .with_error("{\"status\":429}".to_owned())
        .with_usage("{}".to_owned());
    check_golden("seal-with-error.v1.hex", &full.encode());
    let meta = Meta::new("/v1/chat/completions", 1_790_000_000)
        .with_owner("alice".to_owned())
        .with_model("m".to_owned())
        .with_n(2);
    check_golden("meta.v1.hex", &meta.encode());
}

#[test]
fn the_golden_record_is_read_as_it_was_written() {
    let record = record_of(127, &golden_events());
    let read = Record::decode(record.encoded().clone()).unwrap();
    let events: Vec<Event<'_>> = read.events().map(|(_, event)| event).collect();
    assert_eq!(events, golden_events());
    assert_eq!((read.first(), read.last()), (Seq(127), Seq(134)));
    assert_eq!(read, record);
}

#[track_caller]
fn check_refused(bytes: &[u8], expected: &str) {
    let refused = Record::decode(Bytes::copy_from_slice(bytes)).unwrap_err();
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn bytes_that_are_not_a_record_are_refused() {
    check_refused(b"", "invalid record: the version at byte 0");
    check_refused(
        &[2, 1, 1],
        "the record has version 2, which this version of unbraid cannot read",
    );
    check_refused(
        &[1, 0, 1, 8, 0],
        "invalid record: the numbers of the events at byte 3",
    );
    check_refused(
        &[1, 1, 0],
        "invalid record: the numbers of the events at byte 3",
    );
    check_refused(&[1, 1, 2, 8, 0], "invalid record: an event at byte 5");
    check_refused(
        &[1, 1, 1, 8, 0, 0],
        "invalid record: bytes after the last event at byte 5",
    );
    check_refused(
        &[1, 1, 1, 9],
        "invalid record: the kind of an event at byte 4",
    );
    check_refused(&[1, 1, 1, 8, 5, 0], "invalid record: a payload at byte 5");
    check_refused(&[1, 1, 1, 3, 0, 99], "invalid record: an end at byte 6");
    check_refused(
        &[1, 1, 1, 7, 1, b'\n', 0],
        "invalid record: a name at byte 6",
    );
    check_refused(
        &[1, 1, 1, 7, 1, 0xff, 0],
        "invalid record: a name at byte 6",
    );
    check_refused(
        &[1, 1, 1, 3, 0xff, 0xff, 0xff, 0xff, 0x1f, 1],
        "invalid record: a choice at byte 9",
    );
    // A record cannot reach beyond the greatest cursor.
    let mut far = vec![1];
    crate::varint::write(Seq::MAX.0, &mut far);
    far.extend([1, 8, 0]);
    check_refused(&far, "invalid record: the numbers of the events at byte 11");
}

#[test]
fn a_name_that_an_event_stream_cannot_carry_is_left_out() {
    for name in ["a\nb", "a\rb", "a\0", &"x".repeat(5000)] {
        let event = Event::Error {
            name: Some(name),
            payload: b"{}",
        };
        let record = record_of(1, &[event]);
        assert_eq!(
            record.events().next().unwrap().1,
            Event::Error {
                name: None,
                payload: b"{}"
            }
        );
    }
}

#[test]
fn of_more_choices_than_an_event_can_have_the_first_are_kept() {
    let choices: Vec<ChoiceIndex> = (0..1025).map(ChoiceIndex).collect();
    let record = record_of(1, &[Event::chunk(&choices, b"{}")]);
    assert_eq!(
        record.events().next().unwrap().1,
        Event::chunk(&choices[..1024], b"{}")
    );
    let mut bytes = vec![1, 1, 1, 1];
    crate::varint::write(1025, &mut bytes);
    bytes.extend([0; 1026]);
    check_refused(&bytes, "invalid record: the choices at byte 6");
}

#[test]
fn a_payload_at_the_limit_is_one_event_and_one_past_it_is_two() {
    for (length, count) in [
        (MAX_PAYLOAD_BYTES, 1),
        (MAX_PAYLOAD_BYTES + 1, 2),
        (3 * MAX_PAYLOAD_BYTES, 3),
    ] {
        let payload = vec![b'x'; length];
        let mut builder = RecordBuilder::new(Seq(1));
        builder.push(&Event::chunk(&[ChoiceIndex(1)], b"{}"));
        assert_eq!(
            builder.push(&Event::chunk(&[ChoiceIndex(1)], &payload)),
            Seq(count + 1)
        );
        let bytes = builder.bytes();
        let mut taken = 0;
        let mut joined = Vec::new();
        let mut next = Seq(1);
        while let Some(record) = builder.take() {
            assert!(record.encoded().len() <= MAX_PAYLOAD_BYTES + 64);
            assert_eq!(record.first(), next);
            next = record.last().next();
            taken += record.body().len();
            for (seq, event) in record.events().filter(|(seq, _)| *seq > Seq(1)) {
                joined.extend_from_slice(event.payload().unwrap());
                assert_eq!(matches!(event, Event::Part { .. }), seq < Seq(count + 1));
            }
        }
        assert_eq!((joined.len(), taken), (length, bytes));
        assert!(builder.is_empty() && builder.bytes() == 0);
    }
}

#[test]
fn no_debug_output_contains_payload() {
    let record = record_of(1, &[Event::chunk(&[ChoiceIndex(3)], b"SECRET")]);
    let end = StreamEnd::new(End::Refused).with_error("SECRET".to_owned());
    let claim = crate::ClaimKey::new("SECRET", "SECRET", "SECRET", [0; 32]);
    let event = record.events().next();
    assert!(!format!("{record:?} {end:?} {claim:?} {event:?}").contains("SECRET"));
}

#[derive(Debug, Clone)]
struct Owned {
    kind: u8,
    choices: Vec<ChoiceIndex>,
    name: Option<String>,
    payload: Vec<u8>,
    end: End,
}

impl Owned {
    fn event(&self) -> Event<'_> {
        let (choices, payload) = (self.choices[..].into(), &self.payload[..]);
        let name = self.name.as_deref();
        match self.kind {
            0 => Event::Chunk {
                choices,
                name,
                payload,
            },
            1 => Event::ChoiceEnd {
                choice: self.choices.first().copied().unwrap_or_default(),
                end: self.end,
                finish_reason: name,
            },
            2 => Event::Synthetic { choices, payload },
            3 => Event::Error { name, payload },
            _ => Event::Part { payload },
        }
    }
}

fn event() -> impl Strategy<Value = Owned> {
    let choices = prop::collection::vec(any::<u32>().prop_map(ChoiceIndex), 0..4);
    let name = prop::option::of("[a-zé ]{0,8}");
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    let end = prop::sample::select(End::ALL.to_vec());
    (0..5_u8, choices, name, payload, end).prop_map(|(kind, choices, name, payload, end)| Owned {
        kind,
        choices,
        name,
        payload,
        end,
    })
}

proptest! {
    #[test]
    fn every_event_is_read_as_it_was_written(
        events in prop::collection::vec(event(), 1..20),
        first in 1..1_u64 << 60,
        cut: prop::sample::Index,
    ) {
        let events: Vec<Event<'_>> = events.iter().map(Owned::event).collect();
        let record = record_of(first, &events);
        let read = Record::decode(record.encoded().clone()).unwrap();
        prop_assert!(read.events().map(|(_, event)| event).eq(events.iter().copied()));
        prop_assert!(read.events().map(|(seq, _)| seq.0).eq(first..first + events.len() as u64));
        // A record that is cut is refused at every byte.
        let length = cut.index(record.encoded().len());
        prop_assert!(Record::decode(record.encoded().slice(..length)).is_err());
        // The events after a number, and both halves as one.
        let last_of_half = Seq(first + cut.index(events.len()) as u64);
        let rest = record.after(last_of_half);
        prop_assert_eq!(rest.is_none(), last_of_half >= record.last());
        if let Some(rest) = rest {
            prop_assert!(rest.events().eq(record.events().filter(|(seq, _)| *seq > last_of_half)));
            let mut start = RecordBuilder::new(Seq(first));
            for (_, event) in record.events().take_while(|(seq, _)| *seq <= last_of_half) {
                start.push(&event);
            }
            prop_assert_eq!(Record::merge(&[start.take().unwrap(), rest]), Some(record));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), small in prop::collection::vec(0..10_u8, 0..60)) {
        for bytes in [bytes, small.clone(), [vec![1], small].concat()] {
            if let Ok(record) = Record::decode(bytes.clone().into()) {
                prop_assert_eq!(record.events().count() as u64, record.count);
            }
            let _any = StreamEnd::decode(&bytes);
            let _any = Meta::decode(&bytes);
        }
    }

    #[test]
    fn every_end_is_read_as_it_was_written(error in prop::option::of(".{0,40}"), usage in prop::option::of(".{0,40}")) {
        for end in End::ALL {
            let end = StreamEnd::new(end).with_error(error.clone()).with_usage(usage.clone());
            let bytes = end.encode();
            prop_assert_eq!(StreamEnd::decode(&bytes), Ok(end));
            prop_assert!((0..bytes.len()).all(|cut| StreamEnd::decode(&bytes[..cut]).is_err()));
        }
    }
}

#[test]
fn later_versions_of_a_seal_and_of_meta_data_are_typed_errors() {
    let version = Err(LogError::UnsupportedVersion { version: 2 });
    assert_eq!(
        StreamEnd::decode(&[2, 1, 0]),
        version.clone().map(|()| StreamEnd::new(End::Lost))
    );
    assert_eq!(Meta::decode(b"\x02{}"), version.map(|()| Meta::new("", 0)));
    let later_field = b"\x01{\"endpoint\":\"/v1/completions\",\"created\":1,\"later\":[]}";
    assert_eq!(
        Meta::decode(later_field),
        Ok(Meta::new("/v1/completions", 1))
    );
}
