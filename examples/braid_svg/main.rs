//! Draws `docs/braid.svg`: the chunks of a recorded answer in the order of the wire, and the choices that come out.
//!
//! `cargo run --example braid_svg > docs/braid.svg`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::fmt::{Error, Write};

use unbraid::{ChoiceIndex, Config, Demux, Event, Transcript};
use unbraid_examples::HAIKUS;

/// Width of a character of the monospaced font, and the distance between two lines of text.
const CHARACTER: f32 = 6.7;
const LINE: f32 = 15.0;

/// Left and right edge of the chunks, and left edge of the choices.
const CHUNKS: (f32, f32) = (12.0, 418.0);
const CHOICES: f32 = 566.0;

/// Distance between two rows of chunks, between two strands of the braid, and between two choices.
const ROW: f32 = 34.0;
const STRAND: f32 = 16.0;
const BLOCK: f32 = 74.0;

/// Both halves of the picture begin below their titles.
const TOP: f32 = 44.0;

/// Colours are classes, so that the picture follows the reader's light or dark mode.
const STYLE: &str = "<style>\
text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}\
.title{font-weight:bold;font-size:12px}.small{fill:#59636e}\
rect{fill-opacity:.16;stroke-width:1}path{fill:none;stroke-width:3;stroke-linecap:round}\
.c0{stroke:#0969da;fill:#0969da}.c1{stroke:#bc4c00;fill:#bc4c00}\
.c2{stroke:#1a7f37;fill:#1a7f37}.c3{stroke:#8250df;fill:#8250df}path.c0,path.c1,path.c2,path.c3{fill:none}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}\
.c0{stroke:#4493f8;fill:#4493f8}.c1{stroke:#f0883e;fill:#f0883e}\
.c2{stroke:#3fb950;fill:#3fb950}.c3{stroke:#ab7df8;fill:#ab7df8}}\
</style>";

fn main() -> Result<(), Error> {
    let mut demux = Demux::new(Config::default());
    demux.feed(HAIKUS.as_bytes());
    demux.finish();
    let mut chunks = Vec::new();
    while let Some(event) = demux.next_event() {
        if let (Some(choice), Event::Content(text)) = (event.choice, event.event) {
            chunks.push((choice, text.replace('\n', "\u{21b5}")));
        }
    }
    let appeared: Vec<&Transcript> = demux.choices().collect();
    let height = TOP + BLOCK * appeared.len() as f32;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 880 {height}\" role=\"img\">\n\
         <title>One response of interleaved chunks becomes one stream per choice</title>\n{STYLE}\n"
    );
    draw_chunks(&mut svg, &chunks)?;
    draw_braid(&mut svg, &appeared)?;
    draw_choices(&mut svg, &appeared)?;
    println!("{svg}</svg>");
    Ok(())
}

/// Every text delta in the order of the wire, in the colour of its choice.
fn draw_chunks(svg: &mut String, chunks: &[(ChoiceIndex, String)]) -> Result<(), Error> {
    let (left, right) = CHUNKS;
    let count = chunks.len();
    writeln!(
        svg,
        "<text class=\"title\" x=\"{left}\" y=\"20\">in: one body, {count} deltas</text>"
    )?;
    let (mut x, mut y) = (left, TOP - 6.0);
    for (choice, text) in chunks {
        let width = CHARACTER * text.chars().count() as f32 + 8.0;
        if x + width > right {
            (x, y) = (left, y + ROW);
        }
        writeln!(
            svg,
            "<rect class=\"c{choice}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"19\" rx=\"4\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" xml:space=\"preserve\">{}</text>",
            x + 4.0,
            y + 13.0,
            escaped(text)
        )?;
        x += width + 4.0;
    }
    Ok(())
}

/// One strand per choice, from the order in which the choices appeared to the order of their indices.
fn draw_braid(svg: &mut String, appeared: &[&Transcript]) -> Result<(), Error> {
    let mut order: Vec<ChoiceIndex> = appeared.iter().map(|choice| choice.index()).collect();
    let mut columns = vec![order.clone()];
    // Odd-even transposition sort: each round exchanges neighbours, as a braid does.
    for round in 0.. {
        if order.is_sorted() {
            break;
        }
        for pair in order
            .get_mut(round % 2..)
            .unwrap_or_default()
            .chunks_exact_mut(2)
        {
            pair.sort_unstable();
        }
        columns.push(order.clone());
    }

    let middle = TOP + BLOCK * order.len() as f32 / 2.0 - 10.0;
    let strand = |row: usize| middle + STRAND * (row as f32 - (order.len() as f32 - 1.0) / 2.0);
    let start = CHUNKS.1 + 10.0;
    let step = (CHOICES - 8.0 - start) / columns.len() as f32;
    for (last, &choice) in order.iter().enumerate() {
        let row = |column: &Vec<ChoiceIndex>| column.iter().position(|other| *other == choice);
        let mut heights: Vec<f32> = columns.iter().filter_map(row).map(strand).collect();
        let mut y = heights.remove(0);
        heights.push(TOP + BLOCK * last as f32 + 27.0); // the middle of the choice's box
        let mut path = format!("M{start:.1} {y:.1}");
        for (column, next) in heights.into_iter().enumerate() {
            let (x, end) = (
                start + step * column as f32,
                start + step * (column as f32 + 1.0),
            );
            let bend = (x + end) / 2.0;
            write!(
                path,
                " C{bend:.1} {y:.1} {bend:.1} {next:.1} {end:.1} {next:.1}"
            )?;
            y = next;
        }
        writeln!(svg, "<path class=\"c{choice}\" d=\"{path}\"/>")?;
    }
    Ok(())
}

/// Each choice's text and how it ended.
fn draw_choices(svg: &mut String, appeared: &[&Transcript]) -> Result<(), Error> {
    let n = appeared.len();
    writeln!(
        svg,
        "<text class=\"title\" x=\"{CHOICES}\" y=\"20\">out: {n} independent streams</text>"
    )?;
    let mut choices = appeared.to_vec();
    choices.sort_by_key(|choice| choice.index());
    for (place, choice) in choices.into_iter().enumerate() {
        let (index, y) = (choice.index(), TOP + BLOCK * place as f32 - 6.0);
        let width = 880.0 - CHOICES - 8.0;
        let reason = choice
            .finish_reason()
            .map_or("none", |reason| reason.as_str());
        writeln!(
            svg,
            "<rect class=\"c{index}\" x=\"{CHOICES}\" y=\"{y:.1}\" width=\"{width}\" height=\"66\" rx=\"6\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{:.1}\">choice {index}: finish reason {reason}</text>",
            CHOICES + 8.0,
            y + 14.0
        )?;
        for (number, line) in choice.message().content.lines().enumerate() {
            let (x, y) = (CHOICES + 8.0, y + 14.0 + LINE * (number as f32 + 1.0));
            let line = escaped(line);
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{line}</text>")?;
        }
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
