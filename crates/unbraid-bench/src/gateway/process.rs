//! The CPU time and the memory of a process and its children, as Linux counts them.

use std::{fs, io, path::Path, time::Duration};

/// The unit of `/proc/*/stat`: `USER_HZ`, which is 100 on every architecture that Rust's standard library supports.
const TICK: Duration = Duration::from_millis(10);

/// What a group of processes has used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    /// Resident memory in bytes. What several of them share counts once.
    pub(super) memory: u64,
    /// The sum of the peaks of each one's resident memory.
    pub(super) peak: u64,
}

/// The fields of `/proc/PID/stat` after the command's name, which may contain spaces and parentheses.
fn stat(pid: u32) -> Option<(u32, Duration)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let field = |index: usize| fields.get(index)?.parse::<u32>().ok();
    // proc(5): ppid is field 4, utime 14 and stime 15; the first of these is field 3.
    Some((field(1)?, TICK * (field(11)? + field(12)?)))
}

/// A process and its descendants.
pub(super) fn tree(root: u32) -> io::Result<Vec<u32>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid: Option<u32> = name.to_str().and_then(|name| name.parse().ok());
        all.extend(pid.and_then(|pid| Some((pid, stat(pid)?.0))));
    }
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        let children = all.iter().filter(|(_, its_parent)| *its_parent == parent);
        tree.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    Ok(tree)
}

/// What these processes have used so far. One that has ended counts as nothing.
pub(super) fn usage(pids: &[u32]) -> Usage {
    let mut usage = Usage::default();
    for pid in pids {
        let directory = Path::new("/proc").join(pid.to_string());
        usage.cpu += stat(*pid).map_or(Duration::ZERO, |(_, cpu)| cpu);
        usage.memory += kib(&directory.join("smaps_rollup"), "Pss:");
        usage.peak += kib(&directory.join("status"), "VmHWM:");
    }
    usage
}

/// The bytes of a line in KiB; 0 if there is none.
fn kib(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0) * 1024
}
