//! Ends the processes of a candidate whatever ends the benchmark: also if it is killed, and cannot do so itself.
//!
//! A guard is a process of its own that reads from the benchmark. The system closes that pipe with the benchmark.

use std::{
    env,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::wait_for;

/// How long processes may take to end after they were asked to.
const EXIT: Duration = Duration::from_secs(3);

/// Watches a group of processes. Dropping it ends the guard, and not the group.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    pub(super) fn start(group: u32) -> io::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["guard", &group.to_string()]);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // In a group of its own, because what ends the benchmark may be a signal to all of its group.
        Ok(Self(command.process_group(0).spawn()?))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            // A guard that has ended needs not be released.
            let _ended = input.write_all(b".");
        }
        let _exited = self.0.wait();
    }
}

/// What the guard does: it waits for the end of its input, and then ends the group. A byte releases it.
pub(crate) fn run(group: &str) -> io::Result<()> {
    let group: u32 = group.parse().map_err(io::Error::other)?;
    if io::stdin().lock().read(&mut [0])? > 0 {
        return Ok(());
    }
    end_group(group, || Ok(!signal(group, "-0")?))
}

/// Asks all processes of a group to end, and kills those that do not.
pub(super) fn end_group(
    group: u32,
    mut has_ended: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    signal(group, "-TERM")?;
    let ended = wait_for("the exit", EXIT, &mut has_ended);
    // Its leader may have left others behind.
    signal(group, "-KILL")?;
    ended.or_else(|_| wait_for("the exit", EXIT, has_ended))
}

/// Sends a signal to all processes of a group; false if there are none.
fn signal(group: u32, name: &str) -> io::Result<bool> {
    let sent = Command::new("kill")
        .args([name, "--", &format!("-{group}")])
        .output()?;
    Ok(sent.status.success())
}
