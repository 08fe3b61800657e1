//! Writes a file without following a symbolic link at its path.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process,
};

/// Writes a temporary file into a directory, and renames it. A regular file with this name is replaced.
///
/// Opening the final name would follow a symbolic link, which another user may have placed in a shared directory, and write to
/// its target. Renaming replaces the link itself, even one that was created in the meantime. A concurrent reader finds the old
/// file or the new one, never a part.
pub(super) fn write(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(name);
    refuse_special(&path)?;
    let (mut file, temporary) = create(dir, name)?;
    let written = file.write_all(bytes);
    drop(file); // some systems cannot rename an open file
    let renamed = written.and_then(|()| fs::rename(&temporary, &path));
    if renamed.is_err() {
        let _leftover: io::Result<()> = fs::remove_file(&temporary);
    }
    renamed
}

/// Returns an error for anything but a regular file at this path.
fn refuse_special(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let reason = match (kind.is_symlink(), kind.is_dir(), kind.is_file()) {
        (true, ..) => "is a symbolic link, which is not followed: remove it first",
        (_, true, _) => "is a directory",
        (.., true) => return Ok(()),
        (false, false, false) => "is not a regular file, and is not replaced: remove it first",
    };
    Err(io::Error::new(ErrorKind::AlreadyExists, reason))
}

/// Creates a new file under a name that no other file has.
fn create(dir: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    const ATTEMPTS: u32 = 64; // killed runs with the same process id may have left files
    let process = process::id();
    let mut attempt = 0;
    loop {
        let path = dir.join(format!(".{name}.{process}-{attempt}.tmp"));
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                attempt += 1;
            }
            created => return Ok((created?, path)),
        }
    }
}
