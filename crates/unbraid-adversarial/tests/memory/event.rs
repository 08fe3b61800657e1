//! What one event takes at most, by each of the ways that lead to its choices.

use futures::stream;
use unbraid::{Completions, Updates};
use unbraid_adversarial::hostile::event::Event;
use unbraid_core::{Config, Demux, limits::MAX_EVENT_BYTES};

/// A way and its name.
type Way = (&'static str, fn(Event));

/// All of them.
pub(crate) const WAYS: [Way; 4] = [
    ("Demux", demux),
    ("actors", actors),
    ("actors, one read", one_read),
    ("flat view", flat),
];

fn demux(event: Event) {
    let mut demux = Demux::new(Config::default());
    for piece in event.pieces() {
        demux.feed(&piece);
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
        let reads = stream::iter(event.pieces().map(Ok::<_, std::io::Error>));
        read_all(Completions::builder().from_byte_stream(reads)).await;
    });
}

/// The read is counted, too; of an event that takes more than [`MAX_EVENT_BYTES`] on the wire it is not made.
fn one_read(event: Event) {
    let length = event.pieces().map(|piece| piece.len()).sum();
    if length > MAX_EVENT_BYTES {
        return;
    }
    on_two_workers(async {
        let mut whole = Vec::with_capacity(length);
        event.pieces().for_each(|piece| whole.extend(piece));
        let reads = stream::iter([Ok::<_, std::io::Error>(whole)]);
        read_all(Completions::builder().from_byte_stream(reads)).await;
    });
}

fn flat(event: Event) {
    on_two_workers(async {
        let reads = stream::iter(event.pieces().map(Ok::<_, std::io::Error>));
        let mut updates = Updates::from_byte_stream(reads);
        while let Some(Ok(_update)) = updates.next().await {}
    });
}
