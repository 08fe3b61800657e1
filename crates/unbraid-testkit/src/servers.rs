//! Servers that tests start as child processes.

pub mod nats;
pub mod proxy;

use std::{
    env,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// Finds a program in `PATH` and in `/usr/sbin`. Without it, one line says what is skipped.
///
/// # Panics
///
/// If it is absent although `UNBRAID_REQUIRE_ENGINES` is set.
#[must_use]
pub fn find(program: &str, package: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file());
    if found.is_none() {
        let hint = format!("{program} is not installed (apt-get install {package})");
        assert!(env::var_os("UNBRAID_REQUIRE_ENGINES").is_none(), "{hint}");
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: {hint}");
        }
    }
    found
}

/// A child process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let silent = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(silent.spawn().expect("the program runs"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}
