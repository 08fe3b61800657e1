//! Generation actors that die: their logs are sealed, their upstreams closed, and the other generations continue.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::pending, stream};
use tokio::{sync::watch, time::timeout};
use unbraid_log::{
    End, Journal, LogStatus, LogStore, MemoryLog, MemoryOptions, Meta, Seq, StreamId,
};

use super::Supervisor;
use crate::{
    auth::keys::Principal,
    config::Options,
    generation::{Generation, GenerationArgs, GenerationLog, PartSource, Started, StartedPart},
    metrics::Metrics,
    streams::{StreamLimits, Streams},
    upstream::ByteStream,
};

const PATIENCE: Duration = Duration::from_secs(10);

const EVENT: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;

struct Running {
    id: StreamId,
    journal: Journal,
    /// Has a receiver while the upstream's body is open.
    upstream: watch::Sender<()>,
    log: MemoryLog,
}

impl Running {
    /// Starts a generation whose body has one event, and then does what the stream does.
    async fn start(supervisor: &Supervisor, streams: &Streams, rest: ByteStream) -> Self {
        let log = MemoryLog::new(MemoryOptions::default());
        let id = StreamId::random().unwrap();
        let endpoint = "/v1/chat/completions";
        let writer = log.open(&id, &Meta::new(endpoint, 0)).await.unwrap();
        let permit = streams.reserve(&Principal::new("")).unwrap();
        let (registration, commands) = permit.register(id.clone(), endpoint, false);
        let (upstream, is_open) = watch::channel(());
        let first = stream::iter([Ok(format!("data: {EVENT}\n\n").into())]);
        let body = first.chain(rest).map(move |read| {
            let _open = &is_open;
            read
        });
        let started = Started {
            parts: vec![StartedPart {
                source: PartSource::Open(body.boxed()),
                choice: None,
            }],
            singles: None,
        };
        let args = GenerationArgs {
            start: std::future::ready(Ok(started)).boxed(),
            log: GenerationLog::Memory(writer),
            is_shared: false,
            registration,
            commands,
            endpoint,
            created: 5,
            model: None,
            expected: 1,
            dropped: Arc::default(),
            orphan_after: None,
            wants_usage: false,
            on_refused: None,
            metrics: Metrics::new("memory"),
        };
        supervisor.spawn(Generation::new(args, &Options::default()));
        let journal = log.journal(&id).unwrap();
        let running = Self {
            id,
            journal,
            upstream,
            log,
        };
        running.has_first_event().await;
        running
    }

    async fn has_first_event(&self) {
        let mut records = self.log.read(&self.id, Seq::START);
        let first = timeout(PATIENCE, records.next()).await.unwrap();
        assert_eq!(first.unwrap().unwrap().first(), Seq(1));
    }

    /// Waits until the log is sealed and the upstream closed.
    async fn ended(&self) -> End {
        let mut records = self.log.read(&self.id, Seq::START);
        let all = async { while records.next().await.is_some() {} };
        timeout(PATIENCE, all).await.expect("a reader hangs");
        timeout(PATIENCE, self.upstream.closed())
            .await
            .expect("the upstream stays open");
        match self.log.status(&self.id).await {
            Ok(LogStatus::Ended { end, .. }) => end.end,
            other => panic!("{other:?}"),
        }
    }

    fn is_running(&self) -> bool {
        self.upstream.receiver_count() == 1 && self.journal.end().is_none()
    }
}

fn streams() -> Streams {
    let limits = StreamLimits {
        streams: 10,
        streams_per_principal: 10,
        readers: 1,
    };
    Streams::new(limits, Metrics::new("memory"))
}

fn silent() -> ByteStream {
    stream::once(pending()).boxed()
}

/// deer-flow 3932: a stream never ends, because its worker died.
#[tokio::test]
async fn a_generation_that_is_killed_is_sealed_as_producer_lost() {
    let (supervisor, streams) = (Supervisor::start().unwrap(), streams());
    let killed = Running::start(&supervisor, &streams, silent()).await;
    let [actor] = &supervisor.0.get_children()[..] else {
        panic!("one generation");
    };
    let actor = actor.clone();
    let other = Running::start(&supervisor, &streams, silent()).await;
    actor.kill();
    assert_eq!(killed.ended().await, End::ProducerLost);
    assert!(other.is_running(), "only the killed one ends");
    assert!(streams.live(&killed.id).is_none());
    assert!(streams.live(&other.id).is_some());
    // The supervisor survives, and starts further ones.
    let next = Running::start(&supervisor, &streams, silent()).await;
    assert!(next.is_running());
}

#[tokio::test]
async fn a_generation_that_panics_is_sealed_as_producer_lost() {
    let (supervisor, streams) = (Supervisor::start().unwrap(), streams());
    let other = Running::start(&supervisor, &streams, silent()).await;
    let (panics, begin) = tokio::sync::oneshot::channel::<()>();
    let rest = stream::once(async {
        let _sent = begin.await;
        panic!("on purpose");
    });
    let running = Running::start(&supervisor, &streams, rest.boxed()).await;
    panics.send(()).unwrap();
    assert_eq!(running.ended().await, End::ProducerLost);
    assert!(other.is_running());
}

#[tokio::test]
async fn a_supervisor_that_is_dropped_ends_every_generation() {
    let (supervisor, streams) = (Supervisor::start().unwrap(), streams());
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(Running::start(&supervisor, &streams, silent()).await);
    }
    drop(supervisor);
    for running in all {
        assert_eq!(running.ended().await, End::ProducerLost);
    }
    timeout(PATIENCE, streams.all_ended()).await.unwrap();
}
