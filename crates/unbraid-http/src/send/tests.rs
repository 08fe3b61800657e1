use std::time::Duration;

use super::both;
use crate::limits::MAX_RETRY_AFTER;

#[test]
fn a_requested_pause_is_kept_up_to_the_limit() {
    let (none, ours) = (Duration::ZERO, Duration::from_millis(250));
    assert_eq!(both(none, ours), Some(ours));
    assert_eq!(both(MAX_RETRY_AFTER, ours), Some(MAX_RETRY_AFTER + ours));
    assert_eq!(both(MAX_RETRY_AFTER + Duration::from_nanos(1), ours), None);
    assert_eq!(both(Duration::MAX, ours), None);
}
