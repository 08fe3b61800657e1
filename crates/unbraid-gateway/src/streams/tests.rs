use super::*;

fn streams() -> Streams {
    streams_with(1)
}

fn streams_with(readers: usize) -> Streams {
    let limits = StreamLimits {
        streams: 3,
        streams_per_principal: 2,
        readers,
    };
    Streams::new(limits, Metrics::new("memory"))
}

#[tokio::test]
async fn generations_are_limited_for_each_principal_and_together() {
    let streams = streams();
    let (a, b) = (Principal::new("a"), Principal::new("b"));
    let first = streams.reserve(&a).unwrap();
    let _second = streams.reserve(&a).unwrap();
    assert_eq!(streams.reserve(&a).unwrap_err(), ApiError::TOO_MANY_STREAMS);
    let _third = streams.reserve(&b).unwrap();
    assert_eq!(streams.reserve(&b).unwrap_err(), ApiError::TOO_MANY_STREAMS);
    drop(first);
    streams.reserve(&b).unwrap();
}

#[tokio::test]
async fn without_keys_only_the_limit_for_all_generations_applies() {
    let (streams, anyone) = (streams(), Principal::new(""));
    let _permits = [(); 3].map(|()| streams.reserve(&anyone).unwrap());
    assert_eq!(
        streams.reserve(&anyone).unwrap_err(),
        ApiError::TOO_MANY_STREAMS
    );
}

#[tokio::test]
async fn readers_of_one_stream_are_limited_and_the_last_one_to_leave_is_reported() {
    let streams = streams();
    let id = StreamId::random().unwrap();
    let permit = streams.reserve(&Principal::new("")).unwrap();
    let (registration, mut commands) = permit.register(id.clone(), "/v1/completions", false);
    let reader = streams.connect(&id).unwrap();
    assert!(registration.live.has_readers());
    assert_eq!(
        streams.connect(&id).unwrap_err(),
        ApiError::TOO_MANY_READERS
    );
    drop(reader);
    assert!(matches!(commands.try_recv(), Ok(Command::ReaderLeft(_))));
    assert!(!registration.live.has_readers());
    drop(registration);
    assert!(streams.live(&id).is_none());
    streams.all_ended().await;
}

#[tokio::test]
async fn a_reader_that_is_refused_leaves_nothing_in_the_table() {
    let streams = streams_with(0);
    let id = StreamId::random().unwrap();
    let refused = streams.connect(&id).unwrap_err();
    assert_eq!(refused, ApiError::TOO_MANY_READERS);
    assert!(streams.entries().iter().all(|(_, count)| *count == 0));
}

#[tokio::test]
async fn a_running_fan_out_is_not_forgotten_however_many_others_end() {
    let (streams, anyone) = (streams(), Principal::new(""));
    let start = || {
        let id = StreamId::random().unwrap();
        let permit = streams.reserve(&anyone).unwrap();
        let (mut registration, _) = permit.register(id.clone(), "/v1/completions", false);
        registration.set_fan_out(true);
        (id, registration)
    };
    let (running, registration) = start();
    for _ in 0..10_001 {
        let (id, registration) = start();
        assert!(streams.has_fanned_out(&id));
        drop(registration);
        assert!(streams.has_fanned_out(&id));
    }
    assert!(streams.has_fanned_out(&running));
    drop(registration);
    assert!(streams.has_fanned_out(&running));
}
