//! The peak memory of a single event, for each reader of a stream.

use futures::stream;
use unbraid::{Completions, Updates};
use unbraid_adversarial::hostile::event::Event;
use unbraid_core::{Config, Demux, limits::MAX_EVENT_BYTES};

/// The name of a reader, and its function.
type Reader = (&'static str, fn(Event));

/// All readers.
pub(crate) const READERS: [Reader; 4] = [
    ("Demux", demux),
    ("actors", actors),
    ("actors, one read", one_read),
    ("flat view", flat),
];

fn demux(event: Event) {
    let mut demux = Demux::new(Config::default());
    for part in event.parts() {
        demux.feed(&part);
        while demux.next_event().is_some() {}
    }
    demux.finish();
    while demux.next_event().is_some() {}
}

fn on_two_workers(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work);
}

async fn read_all(completions: Completions) {
    let mut events = completions.events();
    while events.next().await.is_some() {}
    let _closed = completions.closed().await;
}

fn actors(event: Event) {
    on_two_workers(async {
        let reads = stream::iter(event.parts().map(Ok::<_, std::io::Error>));
        read_all(Completions::builder().from_byte_stream(reads)).await;
    });
}

/// The read itself counts, too. Events of more than [`MAX_EVENT_BYTES`] on the wire are skipped.
fn one_read(event: Event) {
    let length = event.parts().map(|part| part.len()).sum();
    if length > MAX_EVENT_BYTES {
        return;
    }
    on_two_workers(async {
        let mut bytes = Vec::with_capacity(length);
        event.parts().for_each(|part| bytes.extend(part));
        let reads = stream::iter([Ok::<_, std::io::Error>(bytes)]);
        read_all(Completions::builder().from_byte_stream(reads)).await;
    });
}

fn flat(event: Event) {
    on_two_workers(async {
        let reads = stream::iter(event.parts().map(Ok::<_, std::io::Error>));
        let mut updates = Updates::from_byte_stream(reads);
        while let Some(Ok(_update)) = updates.next().await {}
    });
}
