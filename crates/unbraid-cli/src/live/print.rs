//! Prints a picture on the normal screen, where it stays.

use std::io::{self, Write};

use anstyle::{Ansi256Color, Effects, RgbColor, Style as AnsiStyle};
use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

/// One piece of a row in one style.
pub(super) struct Run {
    /// The column at which it begins.
    pub(super) column: usize,
    pub(super) text: String,
    pub(super) color: Color,
    pub(super) modifier: Modifier,
}

/// The rows of a picture, each in pieces of one style.
pub(super) fn rows(buffer: &Buffer) -> Vec<Vec<Run>> {
    let width = usize::from(buffer.area.width).max(1);
    buffer.content.chunks(width).map(runs).collect()
}

fn runs(cells: &[Cell]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut next = 0;
    for (column, cell) in cells.iter().enumerate() {
        if column < next {
            continue; // covered by a wide character
        }
        next = column + cell.symbol().width().max(1);
        match runs.last_mut() {
            Some(run) if run.color == cell.fg && run.modifier == cell.modifier => {
                run.text.push_str(cell.symbol());
            }
            _ => runs.push(Run {
                column,
                text: cell.symbol().to_owned(),
                color: cell.fg,
                modifier: cell.modifier,
            }),
        }
    }
    runs
}

/// Prints a picture, without white space at the ends of its rows.
pub(super) fn print(buffer: &Buffer, out: &mut impl Write) -> io::Result<()> {
    for mut row in rows(buffer) {
        while let Some(last) = row.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            row.pop();
        }
        for run in &row {
            let style = style(run);
            write!(out, "{style}{}{style:#}", run.text)?;
        }
        writeln!(out)?;
    }
    out.flush()
}

fn style(run: &Run) -> AnsiStyle {
    let color = match run.color {
        Color::Indexed(index) => Some(color_of(index)),
        Color::Rgb(red, green, blue) => Some(RgbColor(red, green, blue).into()),
        _ => None,
    };
    let effects = [
        (Modifier::BOLD, Effects::BOLD),
        (Modifier::DIM, Effects::DIMMED),
        (Modifier::ITALIC, Effects::ITALIC),
        (Modifier::UNDERLINED, Effects::UNDERLINE),
        (Modifier::REVERSED, Effects::INVERT),
    ];
    let effects = effects
        .into_iter()
        .filter(|(modifier, _)| run.modifier.contains(*modifier));
    let effects = effects.fold(Effects::new(), |all, (_, effect)| all.insert(effect));
    AnsiStyle::new().fg_color(color).effects(effects)
}

/// The first sixteen have shorter sequences, which every terminal knows.
fn color_of(index: u8) -> anstyle::Color {
    let color = Ansi256Color(index);
    color.into_ansi().map_or_else(|| color.into(), Into::into)
}
