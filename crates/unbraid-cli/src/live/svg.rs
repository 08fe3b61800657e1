//! Writes a picture as SVG.

use std::fmt::{self, Write};

use anstyle::Ansi256Color;
use ratatui::{
    buffer::Buffer,
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

use super::print::{Run, rows};
use crate::palette::cube_rgb;

/// The width and height of a character cell, and the margin around the picture.
const CELL: (usize, usize) = (8, 18);
const MARGIN: usize = 12;

/// The text follows the reader's light or dark mode. The colours of choices are readable in both.
const STYLE: &str = "<style>\
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}\
path{fill:none;stroke:#59636e;stroke-width:1}.dim{fill:#59636e}.bold{font-weight:bold}.italic{font-style:italic}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}path{stroke:#9198a1}.dim{fill:#9198a1}}\
</style>";

/// The picture as an SVG document.
pub(super) fn to_svg(buffer: &Buffer, title: &str) -> String {
    let mut svg = String::new();
    // Writing to a string does not fail.
    let _written: fmt::Result = write_svg(&mut svg, buffer, title);
    svg
}

fn write_svg(svg: &mut String, buffer: &Buffer, title: &str) -> fmt::Result {
    let width = usize::from(buffer.area.width) * CELL.0 + 2 * MARGIN;
    let height = usize::from(buffer.area.height) * CELL.1 + 2 * MARGIN;
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n{STYLE}",
        escaped(title)
    )?;
    write_borders(svg, buffer)?;
    for (row, runs) in rows(buffer).into_iter().enumerate() {
        for run in runs {
            write_text(svg, row, &run)?;
        }
    }
    svg.push_str("</svg>\n");
    Ok(())
}

/// Writes the text of a run. Its length is fixed, because the reader's font may have another width.
fn write_text(svg: &mut String, row: usize, run: &Run) -> fmt::Result {
    let text = run.text.replace(is_border, " ");
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(());
    }
    // Long gaps, such as those of a border, would be stretched with the text.
    let mut column = run.column;
    for piece in text.split_inclusive("   ") {
        let start = column + (piece.width() - piece.trim_start().width());
        column += piece.width();
        let piece = piece.trim();
        if piece.is_empty() {
            continue;
        }
        let (x, y) = (MARGIN + start * CELL.0, MARGIN + row * CELL.1 + 13);
        let length = piece.width() * CELL.0;
        write!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\""
        )?;
        let classes = classes(run);
        if !classes.is_empty() {
            write!(svg, " class=\"{classes}\"")?;
        }
        if let Some(color) = hex(run.color) {
            write!(svg, " style=\"fill:{color}\"")?;
        }
        writeln!(svg, ">{}</text>", escaped(piece))?;
    }
    Ok(())
}

fn classes(run: &Run) -> String {
    let classes = [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::ITALIC, "italic"),
    ];
    let classes = classes
        .into_iter()
        .filter(|(modifier, _)| run.modifier.contains(*modifier));
    classes
        .map(|(_, class)| class)
        .collect::<Vec<&str>>()
        .join(" ")
}

/// Draws borders as lines: their characters leave gaps between the rows in most fonts.
fn write_borders(svg: &mut String, buffer: &Buffer) -> fmt::Result {
    let mut paths: Vec<(Color, String)> = Vec::new();
    let area = buffer.area;
    for (x, y) in area.positions().map(|position| (position.x, position.y)) {
        let Some(cell) = buffer.cell((x, y)) else {
            continue;
        };
        let [left, right, up, down] = arms(cell.symbol());
        let (middle_x, middle_y) = (
            MARGIN + usize::from(x) * CELL.0 + CELL.0 / 2,
            MARGIN + usize::from(y) * CELL.1 + CELL.1 / 2,
        );
        let mut line = String::new();
        if left || right {
            let from = middle_x - if left { CELL.0 / 2 } else { 0 };
            let to = middle_x + if right { CELL.0 / 2 } else { 0 };
            write!(line, "M{from} {middle_y}H{to}")?;
        }
        if up || down {
            let from = middle_y - if up { CELL.1 / 2 } else { 0 };
            let to = middle_y + if down { CELL.1 / 2 } else { 0 };
            write!(line, "M{middle_x} {from}V{to}")?;
        }
        if line.is_empty() {
            continue;
        }
        match paths.iter_mut().find(|(color, _)| *color == cell.fg) {
            Some((_, path)) => path.push_str(&line),
            None => paths.push((cell.fg, line)),
        }
    }
    for (color, path) in paths {
        let path = joined(&path);
        match hex(color) {
            Some(color) => writeln!(svg, "<path style=\"stroke:{color}\" d=\"{path}\"/>")?,
            None => writeln!(svg, "<path d=\"{path}\"/>")?,
        }
    }
    Ok(())
}

/// Joins horizontal lines that touch each other.
fn joined(path: &str) -> String {
    let mut out = String::new();
    let mut last: Option<(&str, &str, &str)> = None; // start, row, end
    let flush = |out: &mut String, last: Option<(&str, &str, &str)>| {
        if let Some((start, row, end)) = last {
            out.extend(["M", start, " ", row, "H", end]);
        }
    };
    for line in path.split('M').skip(1) {
        let horizontal = line
            .split_once('H')
            .and_then(|(from, to)| Some((from.split_once(' ')?, to)));
        match (horizontal, last) {
            (Some(((x, y), to)), Some((start, row, end))) if y == row && x == end => {
                last = Some((start, row, to));
            }
            (Some(((x, y), to)), _) => {
                flush(&mut out, last);
                last = Some((x, y, to));
            }
            (None, _) => {
                out.push('M');
                out.push_str(line);
            }
        }
    }
    flush(&mut out, last);
    out
}

/// The arms of a border character: left, right, up and down.
fn arms(symbol: &str) -> [bool; 4] {
    match symbol {
        "\u{2500}" => [true, true, false, false],
        "\u{2502}" => [false, false, true, true],
        "\u{250c}" => [false, true, false, true],
        "\u{2510}" => [true, false, false, true],
        "\u{2514}" => [false, true, true, false],
        "\u{2518}" => [true, false, true, false],
        _ => [false; 4],
    }
}

fn is_border(c: char) -> bool {
    arms(c.encode_utf8(&mut [0; 4])).contains(&true)
}

fn hex(color: Color) -> Option<String> {
    let [red, green, blue] = match color {
        Color::Indexed(index) => cube_rgb(Ansi256Color(index))?,
        Color::Rgb(red, green, blue) => [red, green, blue],
        _ => return None,
    };
    Some(format!("#{red:02x}{green:02x}{blue:02x}"))
}

fn escaped(text: &str) -> String {
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"); // XML has no way to write them
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
