//! Where the bytes come from, and how they are read.

mod gzip;
mod head;
mod pace;
mod read;
mod source;
mod thread_reader;

pub(crate) use self::{
    head::{Head, HeadReader},
    pace::{paced, split_events},
    read::{Listener, NullListener, read_all, read_blocking, read_live},
    source::Input,
};
