//! Where the bytes come from, and how they are read.

mod gzip;
mod head;
mod pace;
mod playback;
mod read;
mod source;
mod thread_reader;

pub(crate) use self::{
    head::{Head, HeadReader},
    pace::{count_events, paced, split_events},
    playback::Playback,
    read::{Listener, NullListener, read_all, read_blocking, read_live},
    source::Input,
};
