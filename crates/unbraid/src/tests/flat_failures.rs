//! A connection that fails: the flat view gives what the choices get.

use futures::{StreamExt, stream};
use unbraid_testkit::{
    fixture::Fixture,
    script::{Script, Step, bytes, content},
};

use super::{ends, soon};
use crate::{Completions, Config, Limits, StreamError, TimedOut, Timeout, Updates};

/// The ends of the choices of a stream, directly and through the flat view.
async fn both(steps: &[Step]) -> [Vec<String>; 2] {
    let direct = Completions::from_byte_stream(Script::new(steps.to_vec()));
    let updates = Updates::from_byte_stream(Script::new(steps.to_vec()));
    let flat = Completions::from_updates(updates);
    [ends(&direct).await, ends(&flat).await]
}

#[tokio::test(start_paused = true)]
async fn g06_a_cut_answer_is_not_finished_in_the_flat_view() {
    let fixture = Fixture::named("gemini/vertex-g06-stop-in-every-chunk");
    let body = String::from_utf8(fixture.bytes).unwrap();
    // The comment, and two chunks with the reason STOP, the second with text.
    let begin: String = body.split_inclusive("\n\n").take(3).collect();
    let [direct, flat] = both(&[bytes(begin), Step::Fail]).await;
    assert_eq!(direct, ["0 transport \"a\""]);
    assert_eq!(flat, direct);
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_the_flat_view_has_what_the_choices_have() {
    for fixture in Fixture::all() {
        for part in 1..=4 {
            let cut = fixture.bytes.len() * part / 4;
            let steps = [Step::Bytes(fixture.bytes[..cut].to_vec()), Step::Fail];
            let [direct, flat] = both(&steps).await;
            assert_eq!(flat, direct, "{} until {cut}", fixture.name);
        }
    }
}

/// An event that is too large ends the stream after what its dialect has held back until then.
#[tokio::test(start_paused = true)]
async fn after_an_error_in_the_body_the_flat_view_has_what_the_choices_have() {
    let config = Config::default().with_limits(Limits::default().with_event_bytes(40_000));
    let large = format!("data: {}\n\n", "x".repeat(50_000));
    for fixture in Fixture::all() {
        for part in 1..=4 {
            let near = fixture.bytes.len() * part / 4;
            let mut blank_lines = fixture.bytes[..near].windows(2);
            let cut = blank_lines
                .rposition(|two| two == b"\n\n")
                .map_or(0, |at| at + 2);
            let body = [&fixture.bytes[..cut], large.as_bytes()].concat();
            let steps = [Step::Bytes(body)];
            let direct = Completions::builder()
                .config(config.clone())
                .from_byte_stream(Script::new(steps.to_vec()));
            let updates = Updates::with_config(Script::new(steps.to_vec()), &config);
            let flat = Completions::from_updates(updates);
            assert_eq!(
                ends(&flat).await,
                ends(&direct).await,
                "{} until {cut}",
                fixture.name
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_source_that_is_a_stream_error_is_kept() {
    let passed = TimedOut::new(Timeout::Idle, std::time::Duration::from_secs(7));
    let reads = [Ok(content(0, "a")), Err(StreamError::TimedOut(passed))];
    let items: Vec<_> = soon(Updates::from_byte_stream(stream::iter(reads)).collect()).await;
    let [Ok(_), Err(StreamError::TimedOut(kept))] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(*kept, passed);
}
