use std::time::Duration;

use unbraid::Timeout;

use super::Timeouts;

#[test]
fn the_idle_timeout_applies_to_the_first_byte_unless_it_has_its_own() {
    let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
    for (first_byte, idle, expected) in [
        (None, None, (Timeout::FirstByte, 600)),
        (None, Some(5), (Timeout::Idle, 5)),
        (None, Some(1000), (Timeout::Idle, 1000)),
        (Some(60), Some(5), (Timeout::FirstByte, 60)),
        (Some(1), Some(5), (Timeout::FirstByte, 1)),
        (Some(7), None, (Timeout::FirstByte, 7)),
    ] {
        let timeouts = Timeouts {
            first_byte: seconds(first_byte),
            idle: seconds(idle),
            total: None,
        };
        let timed_out = timeouts.first_byte();
        assert_eq!((timed_out.timeout, timed_out.after.as_secs()), expected);
    }
}
