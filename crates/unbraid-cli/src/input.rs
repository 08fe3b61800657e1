//! Where the bytes come from, and how they are read.

mod head;
mod pace;
mod read;
mod source;

pub(crate) use self::{
    head::{Head, HeadReader},
    pace::{paced, split_events},
    read::{Listener, NullListener, read_all, read_blocking, read_live},
    source::Input,
};
