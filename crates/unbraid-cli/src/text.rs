//! Prints the text of choices and nothing else: bare if there is one, after a header line each if there are several.

mod left_out;

use std::io::{self, BufWriter, Write};

use futures::FutureExt;
use unbraid::{Choice, ChoiceIndex, Completions};

pub(crate) use self::left_out::{left_out, print_left_out};
use crate::{labels::Labels, printable::printable_text};

/// Prints the texts of choices, one after the other.
pub(crate) struct TextPrinter<W: Write> {
    out: BufWriter<W>,
    /// Whether the output is a terminal, which control characters could control. Any other output gets the exact text.
    is_terminal: bool,
    /// Whether every choice has a header line.
    has_headers: bool,
    /// What the headers say beside the index.
    labels: Labels,
    /// How many choices were begun.
    count: usize,
    /// Whether the last character was a line end. A text that is empty needs none.
    at_line_start: bool,
}

impl<W: Write> TextPrinter<W> {
    /// Creates a printer. Without headers the first choice is printed bare; any further choice has a header in any case.
    pub(crate) fn new(out: W, is_terminal: bool, has_headers: bool) -> Self {
        Self {
            out: BufWriter::new(out),
            is_terminal,
            has_headers,
            labels: Labels::default(),
            count: 0,
            at_line_start: true,
        }
    }

    pub(crate) fn with_labels(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    /// Begins the text of a choice.
    pub(crate) fn begin(&mut self, choice: ChoiceIndex) -> io::Result<()> {
        if self.has_headers || self.count > 0 {
            let gap = if self.count > 0 { "\n" } else { "" };
            match self.labels.get(choice) {
                Some(label) => writeln!(self.out, "{gap}==> choice {choice} ({label}) <==")?,
                None => writeln!(self.out, "{gap}==> choice {choice} <==")?,
            }
        }
        self.count += 1;
        Ok(())
    }

    /// Prints the next part of the text.
    pub(crate) fn push(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.at_line_start = text.ends_with('\n');
        match self.is_terminal {
            true => self.out.write_all(printable_text(text).as_bytes()),
            false => self.out.write_all(text.as_bytes()),
        }
    }

    /// Ends the text of a choice, with a newline if it has none.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if !self.at_line_start {
            self.out.write_all(b"\n")?;
            self.at_line_start = true;
        }
        self.out.flush()
    }

    /// Prints the text of a choice while it streams. Everything that has arrived is flushed before each wait.
    async fn print_live(&mut self, choice: &Choice) -> io::Result<()> {
        self.begin(choice.index())?;
        let mut content = choice.content();
        loop {
            let next = match content.next().now_or_never() {
                Some(next) => next,
                None => {
                    self.out.flush()?;
                    content.next().await
                }
            };
            // The error of a choice that did not finish is reported with its end.
            let Some(Ok(delta)) = next else {
                return self.end();
            };
            self.push(&delta)?;
        }
    }
}

/// Prints the text of each choice of a completion as it streams.
///
/// With one `expected` choice, the first that appears is printed bare. Several are printed in the order of their indices, and
/// those beyond `expected` at the end.
pub(crate) async fn print_live<W: Write>(
    completions: &Completions,
    expected: u32,
    mut printer: TextPrinter<W>,
) -> io::Result<()> {
    let expected = if expected > 1 { expected } else { 0 };
    for index in 0..expected {
        if let Some(choice) = completions.choice(index).await {
            printer.print_live(&choice).await?;
        }
    }
    let mut choices = completions.choices();
    while let Some(Ok(choice)) = choices.next().await {
        if choice.index().0 >= expected {
            printer.print_live(&choice).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use unbraid::ChoiceIndex;

    use super::TextPrinter;

    fn print(texts: &[&[&str]], is_terminal: bool, has_headers: bool) -> String {
        let mut out = Vec::new();
        let mut printer = TextPrinter::new(&mut out, is_terminal, has_headers);
        for (index, deltas) in (0..).zip(texts) {
            printer.begin(ChoiceIndex(index)).unwrap();
            deltas.iter().for_each(|delta| printer.push(delta).unwrap());
            printer.end().unwrap();
        }
        drop(printer);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_text_is_bare_and_ends_with_one_newline() {
        assert_eq!(print(&[&["  a", "b ", "c"]], false, false), "  ab c\n");
        assert_eq!(print(&[&["a\n"]], false, false), "a\n");
        assert_eq!(print(&[&["a\n", "\n", ""]], false, false), "a\n\n");
        assert_eq!(print(&[&[]], false, false), "");
        assert_eq!(print(&[&[""]], false, false), "");
    }

    #[test]
    fn several_texts_have_headers() {
        let expected = "==> choice 0 <==\na\n\n==> choice 1 <==\n\n==> choice 2 <==\nb\n";
        assert_eq!(print(&[&["a"], &[], &["b\n"]], false, true), expected);
        let unexpected = "a\n\n==> choice 1 <==\nb\n";
        assert_eq!(print(&[&["a"], &["b"]], false, false), unexpected);
    }

    #[test]
    fn only_a_terminal_gets_escapes() {
        let text: &[&str] = &["\u{1b}[2J\ta\u{202e}\r\nb"];
        assert_eq!(print(&[text], false, false), "\u{1b}[2J\ta\u{202e}\r\nb\n");
        let escaped = "\\u{1b}[2J\ta\\u{202e}\\r\nb\n";
        assert_eq!(print(&[text], true, false), escaped);
    }
}
