use std::time::Duration;

use super::total_pause;
use crate::limits::MAX_RETRY_AFTER;

#[test]
fn a_requested_pause_is_respected_up_to_the_limit() {
    let (none, backoff) = (Duration::ZERO, Duration::from_millis(250));
    assert_eq!(total_pause(none, backoff), Some(backoff));
    assert_eq!(
        total_pause(MAX_RETRY_AFTER, backoff),
        Some(MAX_RETRY_AFTER + backoff)
    );
    let too_long = MAX_RETRY_AFTER + Duration::from_nanos(1);
    assert_eq!(total_pause(too_long, backoff), None);
    assert_eq!(total_pause(Duration::MAX, backoff), None);
}
