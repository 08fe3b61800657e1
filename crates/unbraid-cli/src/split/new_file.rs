//! Writes a file without writing through what stands at its path.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process,
};

/// Writes a new file into a directory, and then gives it its name; a regular file of that name is replaced.
///
/// Opening the name itself would follow a symbolic link, which somebody else may have put into a shared directory, and write
/// to the file that it points to. Renaming replaces the name, whatever has come to stand there in the meantime, and a reader
/// finds the old file or the new one, never a part.
pub(super) fn write(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(name);
    refuse_special(&path)?;
    let (mut file, temporary) = create(dir, name)?;
    let written = file.write_all(bytes);
    drop(file); // some systems do not rename a file that is open
    let renamed = written.and_then(|()| fs::rename(&temporary, &path));
    if renamed.is_err() {
        let _kept: io::Result<()> = fs::remove_file(&temporary);
    }
    renamed
}

/// Refuses to replace anything but a regular file.
fn refuse_special(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let what = match (kind.is_symlink(), kind.is_dir(), kind.is_file()) {
        (true, ..) => "is a symbolic link, and nothing is written through it: remove it first",
        (_, true, _) => "is a directory",
        (.., true) => return Ok(()),
        (false, false, false) => "is not a regular file, and is not replaced: remove it first",
    };
    Err(io::Error::new(ErrorKind::AlreadyExists, what))
}

/// Creates a file that did not exist, under a name that nothing else uses.
fn create(dir: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    const ATTEMPTS: u32 = 64; // files that earlier runs of the same process id may have left behind
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
