//! Arguments that several subcommands share, and the parsers of their values.

mod display;
mod picture;
mod stream;
mod usage;
mod values;

pub(crate) use self::{
    display::DisplayArgs,
    picture::PictureArgs,
    stream::StreamArgs,
    usage::{UsageArgs, UsageMode},
    values::{events_per_second, input, number},
};
