//! The part of a record that a log does not contain yet.

use unbraid_log::{Record, RecordBuilder, Seq};

/// The events after this number, as records. One, unless another program has written a record longer than ours.
pub(crate) fn events_after(record: &Record, seq: Seq) -> Vec<Record> {
    let first = seq.next().max(record.first());
    let mut builder = RecordBuilder::new(first);
    for (_, event) in record.events().filter(|(seq, _)| *seq >= first) {
        builder.push(&event);
    }
    std::iter::from_fn(|| builder.take()).collect()
}

#[cfg(test)]
mod tests {
    use unbraid_log::Event;

    use super::*;

    #[test]
    fn the_rest_of_a_record_has_the_same_numbers() {
        let mut builder = RecordBuilder::new(Seq(4));
        for payload in [b"4", b"5", b"6"] {
            builder.push(&Event::chunk(&[0.into()], payload));
        }
        builder.push(&Event::Part { payload: b"7" });
        let record = builder.take().unwrap();
        let [rest] = &events_after(&record, Seq(5))[..] else {
            panic!("one record");
        };
        assert_eq!((rest.first(), rest.last()), (Seq(6), Seq(7)));
        let expected: Vec<_> = record.events().skip(2).collect();
        assert_eq!(rest.events().collect::<Vec<_>>(), expected);
        assert_eq!(events_after(&record, Seq(2)), std::slice::from_ref(&record));
        assert!(events_after(&record, Seq(7)).is_empty());
    }
}
