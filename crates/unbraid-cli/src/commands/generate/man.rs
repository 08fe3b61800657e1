//! The man page: one page for the command and all of its subcommands.

use std::io::{self, Write};

use clap::{Arg, Command};
use clap_mangen::Man;

/// Writes the page. Each subcommand has a section of its own; the options of every subcommand are described once.
pub(super) fn write(command: Command, out: &mut impl Write) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let page = Man::new(command.clone()).manual("User Commands");
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_subcommand(subcommand, out)?;
    }
    write_after_help(&command, "SH", out)
}

fn write_subcommand(command: &Command, out: &mut impl Write) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    writeln!(out, ".SH \"{}\"", name.to_uppercase())?;
    let without_shared = command
        .clone()
        .mut_args(|arg: Arg| if is_shared(&arg) { arg.hide(true) } else { arg });
    let page = Man::new(without_shared);
    let mut sections = Vec::new();
    page.render_description_section(&mut sections)?;
    page.render_synopsis_section(&mut sections)?;
    page.render_options_section(&mut sections)?;
    for line in String::from_utf8_lossy(&sections).lines() {
        match line.strip_prefix(".SH ") {
            // The description follows the section's own heading.
            Some("DESCRIPTION") => {}
            Some(heading) => writeln!(out, ".SS {heading}")?,
            // Each rendered section repeats the definitions at the top of the page.
            None if line.starts_with(".ie ") || line.starts_with(".el ") => {}
            None => writeln!(out, "{line}")?,
        }
    }
    write_after_help(command, "SS", out)
}

/// Whether an option belongs to every subcommand, and is described at the top of the page.
fn is_shared(arg: &Arg) -> bool {
    arg.is_global_set() || matches!(arg.get_id().as_str(), "help" | "version")
}

/// Writes the lists after the help. A line without indentation is the heading of a list, and the lines stay as they are.
fn write_after_help(command: &Command, macro_name: &str, out: &mut impl Write) -> io::Result<()> {
    let Some(text) = command.get_after_help() else {
        return Ok(());
    };
    let mut is_open = false;
    for line in text.to_string().lines().filter(|line| !line.is_empty()) {
        if line.starts_with(' ') {
            writeln!(out, "{}", escape(line.trim_start()))?;
            continue;
        }
        if is_open {
            writeln!(out, ".fi")?;
        }
        let heading = line.trim_end_matches(':').to_uppercase();
        writeln!(out, ".{macro_name} \"{heading}\"\n.nf")?;
        is_open = true;
    }
    if is_open {
        writeln!(out, ".fi")?;
    }
    Ok(())
}

/// Escapes a line, so that roff prints it as it is: hyphens that can be copied, and no control line.
fn escape(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    match escaped.starts_with(['.', '\'']) {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn lines_are_printed_as_they_are() {
        assert_eq!(escape("jq -r '.a\\n'"), "jq \\-r '.a\\en'");
        assert_eq!(escape(".SH x"), "\\&.SH x");
        assert_eq!(escape("'tis"), "\\&'tis");
    }
}
