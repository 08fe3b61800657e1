//! `unbraid completions`: what a shell needs to complete the command line.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::{
    args::Args,
    exit::{self, Failure, Status},
};

pub(crate) fn run(shell: Shell) -> Result<Status, Failure> {
    let mut script = Vec::new(); // a reader that goes away would be a panic in there
    generate(shell, &mut Args::command(), "unbraid", &mut script);
    let mut out = io::stdout().lock();
    let written = out.write_all(&script).and_then(|()| out.flush());
    exit::written(written, Status::Finished)
}
