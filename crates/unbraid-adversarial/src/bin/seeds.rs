//! Writes the corpora of the fuzzers: `seeds <directory>` creates a directory of files and a dictionary for each target.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use unbraid_adversarial::targets::{TARGETS, Target};

fn main() -> io::Result<()> {
    let Some(root) = env::args_os().nth(1).map(PathBuf::from) else {
        writeln!(io::stderr(), "usage: seeds <directory>")?;
        std::process::exit(2);
    };
    for target in &TARGETS {
        let count = write(&root, target)?;
        writeln!(io::stdout(), "{}: {count} seeds", target.name)?;
    }
    Ok(())
}

fn write(root: &Path, target: &Target) -> io::Result<usize> {
    let directory = root.join(target.name);
    fs::create_dir_all(&directory)?;
    let seeds = (target.seeds)();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(directory.join(format!("seed-{number:04}")), seed)?;
    }
    let words = target.words.iter().map(|word| quoted(word));
    fs::write(
        root.join(format!("{}.dict", target.name)),
        words.collect::<String>(),
    )?;
    Ok(seeds.len())
}

/// Formats a line of a libFuzzer dictionary.
fn quoted(word: &str) -> String {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    let escaped: String = word.bytes().map(escape).collect();
    format!("\"{escaped}\"\n")
}
