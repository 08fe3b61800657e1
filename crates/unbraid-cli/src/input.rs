//! Where the bytes come from, and how they are read.

mod gzip;
mod head;
mod pace;
mod playback;
mod read;
mod source;
mod thread_reader;

#[cfg(feature = "chat")]
pub(crate) use self::head::Head;
pub(crate) use self::{
    head::HeadReader,
    pace::{count_events, paced, split_events},
    playback::Playback,
    read::{Listener, NullListener, read_all, read_blocking, read_live},
    source::Input,
};
