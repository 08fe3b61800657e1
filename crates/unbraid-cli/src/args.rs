//! Arguments that several subcommands share, and the parsers of their values.

mod display;
mod picture;
mod stream;
mod values;

pub(crate) use self::{
    display::DisplayArgs,
    picture::PictureArgs,
    stream::StreamArgs,
    values::{events_per_second, input, number},
};
