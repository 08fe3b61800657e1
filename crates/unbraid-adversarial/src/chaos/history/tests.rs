//! Which faults excuse what.

use tokio::time::advance;

use super::*;

const LEASE: Duration = Duration::from_secs(5);
const PRODUCER: GatewayId = GatewayId {
    slot: 0,
    incarnation: 0,
};

async fn seconds(seconds: f64) {
    advance(Duration::from_secs_f64(seconds)).await;
}

fn generation() -> (History, Token) {
    let history = History::new(LEASE, true);
    let token = history.generation_started(1, PRODUCER);
    (history, token)
}

#[tokio::test(start_paused = true)]
async fn a_healthy_producer_excuses_nothing() {
    let (history, token) = generation();
    seconds(3.0).await;
    assert!(!history.is_over(1));
    history.generation_ended(1, token);
    assert!(history.is_over(1));
    let allowed = history.allowed(1);
    assert!(!allowed.producer_lost && !allowed.log_lost && !allowed.beyond_log);
}

#[tokio::test(start_paused = true)]
async fn a_kill_excuses_a_loss_only_before_the_seal() {
    let (history, token) = generation();
    seconds(3.0).await;
    history.generation_ended(1, token);
    seconds(2.0).await;
    history.killed(PRODUCER);
    assert!(!history.allowed(1).producer_lost);
    let (history, _) = generation();
    seconds(3.0).await;
    history.killed(PRODUCER);
    let allowed = history.allowed(1);
    assert!(allowed.producer_lost && !allowed.beyond_log && !allowed.log_lost);
    assert!(history.is_over(1));
}

#[tokio::test(start_paused = true)]
async fn a_short_suspension_excuses_nothing_and_a_long_one_does() {
    for (length, is_excused) in [(1.5, false), (6.0, true)] {
        let (history, _) = generation();
        seconds(1.0).await;
        let token = history.away(PRODUCER, Away::Suspended);
        assert!(!history.is_quiet(0) && history.is_quiet(1));
        seconds(length).await;
        history.back(token);
        assert!(history.is_quiet(0));
        let allowed = history.allowed(1);
        assert_eq!(
            (allowed.producer_lost, allowed.beyond_log),
            (is_excused, false)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_excuses_no_lost_producer() {
    let (history, _) = generation();
    seconds(1.0).await;
    let token = history.outage(Outage::Emptied);
    assert!(!history.is_quiet(0));
    seconds(20.0).await;
    history.outage_over(token);
    let allowed = history.allowed(1);
    assert!(!allowed.producer_lost && !allowed.log_lost && !allowed.beyond_log);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_was_emptied_between_two_requests_has_forgotten_the_first() {
    let (history, _) = generation();
    assert!(!history.has_forgotten_the_request(1));
    seconds(1.0).await;
    let _second = history.generation_started(1, PRODUCER);
    assert!(!history.has_forgotten_the_request(1));
    let token = history.outage(Outage::Emptied);
    history.outage_over(token);
    let _third = history.generation_started(1, PRODUCER);
    assert!(history.has_forgotten_the_request(1));
}

#[tokio::test(start_paused = true)]
async fn an_emptied_log_excuses_a_stream_that_had_ended() {
    let (history, token) = generation();
    seconds(1.0).await;
    history.generation_ended(1, token);
    seconds(5.0).await;
    let token = history.outage(Outage::Emptied);
    seconds(1.0).await;
    history.outage_over(token);
    assert!(history.allowed(1).log_lost);
}

#[tokio::test(start_paused = true)]
async fn an_outage_and_a_kill_excuse_readers_beyond_the_log() {
    let (history, _) = generation();
    let token = history.outage(Outage::Down);
    seconds(1.0).await;
    history.outage_over(token);
    history.killed(PRODUCER);
    let allowed = history.allowed(1);
    assert!(allowed.producer_lost && allowed.beyond_log && allowed.log_lost);
}

#[tokio::test(start_paused = true)]
async fn outages_that_follow_each_other_may_delay_the_first_write() {
    for (pause, is_excused) in [(2.0, true), (10.0, false)] {
        let first = History::new(LEASE, true);
        let down = first.outage(Outage::Down);
        let _running = first.generation_started(1, PRODUCER);
        seconds(1.0).await;
        first.outage_over(down);
        seconds(pause).await;
        let down = first.outage(Outage::Down);
        seconds(1.0).await;
        first.outage_over(down);
        first.killed(PRODUCER);
        assert_eq!(first.allowed(1).log_lost, is_excused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_log_dies_with_its_gateway() {
    let history = History::new(LEASE, false);
    let token = history.generation_started(1, PRODUCER);
    history.generation_ended(1, token);
    seconds(60.0).await;
    history.killed(PRODUCER);
    let allowed = history.allowed(1);
    assert!(allowed.log_lost && !allowed.producer_lost);
}

#[tokio::test(start_paused = true)]
async fn a_second_request_is_excused_by_a_death_before_the_stream_is_in_the_log() {
    let second = GatewayId {
        slot: 1,
        incarnation: 0,
    };
    let (history, _) = generation();
    assert!(history.was_taken_over(1), "there is one");
    history.generation_started(1, second);
    assert!(!history.was_taken_over(1), "its gateway lives");
    // The gateway dies at once, or when the log has had the stream for long, or after the second request.
    for (death, next, is_excused) in [(0.1_f64, 6.0, true), (5.0, 11.0, false), (6.5, 6.0, false)] {
        let (history, _) = generation();
        let mut now = 0.0_f64;
        let mut events = [(death, true), (next, false)];
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (time, is_death) in events {
            seconds(time - now).await;
            now = time;
            if is_death {
                history.killed(PRODUCER);
            } else {
                history.generation_started(1, second);
            }
        }
        assert_eq!(history.was_taken_over(1), is_excused, "{death} {next}");
    }
    // While the log is down, the stream cannot be in it.
    let (history, _) = generation();
    let outage = history.outage(Outage::Down);
    seconds(5.0).await;
    history.killed(PRODUCER);
    history.outage_over(outage);
    seconds(5.0).await;
    history.generation_started(1, second);
    assert!(history.was_taken_over(1));
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_comes_back_before_its_stream_is_sealed_is_a_sign_of_life() {
    let (history, token) = generation();
    assert_eq!(history.last_sign_of_life(1), None);
    seconds(1.0).await;
    let partition = history.away(PRODUCER, Away::Partitioned);
    seconds(1.0).await;
    history.generation_ended(1, token);
    assert!(history.is_over(1));
    seconds(3.0).await;
    history.back(partition);
    let back = Instant::now();
    assert_eq!(history.last_sign_of_life(1), Some(back));
    seconds(0.5).await;
    history.killed(PRODUCER);
    assert_eq!(history.last_sign_of_life(1), Some(Instant::now()));
    // A producer that has sealed its log does not matter any more.
    let (history, token) = generation();
    history.generation_ended(1, token);
    seconds(3.0).await;
    history.killed(PRODUCER);
    assert_eq!(history.last_sign_of_life(1), None);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_is_quiet_since_its_last_fault_and_that_of_the_log() {
    let (history, _) = generation();
    assert_eq!(history.quiet_since(0), None);
    let outage = history.outage(Outage::Down);
    let partition = history.away(PRODUCER, Away::Partitioned);
    seconds(1.0).await;
    history.outage_over(outage);
    let up = Instant::now();
    assert!(!history.is_quiet(0) && history.is_quiet(1));
    seconds(4.0).await;
    history.back(partition);
    let back = Instant::now();
    assert!(history.is_quiet(0));
    // A connection that is cut can be opened again at once.
    let cuts = history.outage(Outage::Cuts);
    seconds(1.0).await;
    history.outage_over(cuts);
    assert_eq!(history.quiet_since(0), Some(back));
    assert_eq!(history.quiet_since(1), Some(up), "it had no fault itself");
}
