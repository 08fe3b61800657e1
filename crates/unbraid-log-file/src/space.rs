//! The free space of the disk: a log that stops before the disk is full can still free its own space.

use std::path::Path;

/// What a log may still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    /// Only what frees space: redb copies the pages that it changes, so that even this takes some.
    Reserved,
    /// What belongs to streams that run.
    Low,
    /// Everything.
    Enough,
}

/// How much of a disk stays free: a 32nd, but at least one MiB and at most 64 MiB.
fn reserve(total: u64) -> u64 {
    const MIN: u64 = 1024 * 1024;
    const MAX: u64 = 64 * 1024 * 1024;
    (total / 32).clamp(MIN, MAX)
}

fn classify(total: u64, free: u64) -> Space {
    let reserve = reserve(total);
    if free < reserve {
        Space::Reserved
    } else if free < 2 * reserve {
        Space::Low
    } else {
        Space::Enough
    }
}

/// What a log in this file may write that contains about this many bytes. An unknown size is enough: then a write fails that
/// finds no room.
#[cfg(unix)]
pub(crate) fn space(path: &Path, bytes: u64) -> Space {
    let (Ok(disk), Ok(file)) = (rustix::fs::statvfs(path), std::fs::metadata(path)) else {
        return Space::Enough;
    };
    let size = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    // What was freed within the file is used again. Its pages are not completely filled, so not all of it is counted; and
    // the file may be longer than what it takes of the disk, whose unit is 512 bytes.
    let allocated = std::os::unix::fs::MetadataExt::blocks(&file).saturating_mul(512);
    let within = allocated.saturating_sub(2 * bytes);
    classify(
        size(disk.f_blocks),
        size(disk.f_bavail).saturating_add(within),
    )
}

#[cfg(not(unix))]
pub(crate) fn space(_path: &Path, _bytes: u64) -> Space {
    Space::Enough
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_keeps_a_reserve() {
        const MIB: u64 = 1024 * 1024;
        for (total, free, expected) in [
            (1 << 40, 128 * MIB, Space::Enough),
            (1 << 40, 128 * MIB - 1, Space::Low),
            (1 << 40, 64 * MIB - 1, Space::Reserved),
            (8 * MIB, 2 * MIB, Space::Enough),
            (8 * MIB, 2 * MIB - 1, Space::Low),
            (8 * MIB, MIB - 1, Space::Reserved),
            (320 * MIB, 10 * MIB, Space::Low),
        ] {
            assert_eq!(classify(total, free), expected, "{free} of {total}");
        }
    }
}
