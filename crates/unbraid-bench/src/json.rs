//! Arguments in fragments of four bytes: one pass over each fragment, against parsing every prefix again.

use std::{
    hint::black_box,
    io::{self, Write},
    time::Duration,
};

use cpu_time::ProcessTime;
use jiter::{JsonValue, PartialMode};
use unbraid_core::json::{Field, Partial, Pointer};

const FRAGMENT: usize = 4;
const ROUNDS: usize = 5;

/// Above this size, parsing every prefix again takes minutes.
const MAX_REPARSED: usize = 100_000;

/// A parser of growing arguments.
struct Contender {
    name: &'static str,
    /// Whether its cost is quadratic, so that it is skipped for large texts.
    quadratic: bool,
    run: fn(&str) -> usize,
}

const CONTENDERS: [Contender; 4] = [
    Contender {
        name: "unbraid field(\"/answer\")",
        quadratic: false,
        run: field,
    },
    Contender {
        name: "unbraid field, absent path",
        quadratic: false,
        run: absent_field,
    },
    Contender {
        name: "unbraid partial",
        quadratic: false,
        run: partial,
    },
    Contender {
        name: "jiter, every prefix again",
        quadratic: true,
        run: jiter,
    },
];

pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "arguments in fragments of {FRAGMENT} bytes, milliseconds of CPU, median of {ROUNDS} (best)"
    )?;
    for size in [10_000, 100_000, 1_000_000, 10_000_000] {
        let text = document(size);
        writeln!(out, "\n{} bytes", text.len())?;
        let chosen: Vec<&Contender> = CONTENDERS
            .iter()
            .filter(|c| !c.quadratic || size <= MAX_REPARSED)
            .collect();
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); chosen.len()];
        for round in 0..ROUNDS {
            for turn in 0..chosen.len() {
                let index = (turn + round) % chosen.len();
                if let (Some(contender), Some(times)) = (chosen.get(index), times.get_mut(index)) {
                    let started = ProcessTime::now();
                    black_box((contender.run)(black_box(&text)));
                    times.push(started.elapsed());
                }
            }
        }
        for (contender, times) in chosen.iter().zip(&mut times) {
            times.sort_unstable();
            let best = times.first().copied().unwrap_or_default();
            let median = times.get(times.len() / 2).copied().unwrap_or_default();
            let ms = |time: Duration| time.as_secs_f64() * 1000.0;
            writeln!(
                out,
                "  {:28} {:10.2} ({:.2})",
                contender.name,
                ms(median),
                ms(best)
            )?;
        }
    }
    Ok(())
}

/// An answer with escapes, then rows of numbers and short strings.
pub(crate) fn document(size: usize) -> String {
    let mut text = String::from("{\"answer\":\"");
    while text.len() < size * 6 / 10 {
        text.push_str(
            "It rains in \\\"Bergen\\\" on caf\\u00e9 roofs,\\n and the gulls do not mind. ",
        );
    }
    text.push_str("\",\"rows\":[");
    while text.len() < size {
        let row = text.len();
        let row = row.to_string();
        text.extend([
            "{\"id\":",
            &row,
            ",\"name\":\"row ",
            &row,
            "\",\"share\":0.25},",
        ]);
    }
    text.push_str("{}]}");
    text
}

pub(crate) fn fragments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = FRAGMENT.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (fragment, tail) = rest.split_at(end);
        rest = tail;
        (!fragment.is_empty()).then_some(fragment)
    })
}

fn follow(text: &str, pointer: &str) -> usize {
    let Ok(pointer) = Pointer::parse(pointer) else {
        return 0;
    };
    let mut field = Field::new(pointer);
    let mut length = 0;
    for fragment in fragments(text) {
        field.feed(fragment, &mut |text| length += text.len());
    }
    length
}

fn field(text: &str) -> usize {
    follow(text, "/answer")
}

fn absent_field(text: &str) -> usize {
    follow(text, "/nowhere")
}

fn partial(text: &str) -> usize {
    let mut partial = Partial::default();
    for fragment in fragments(text) {
        partial.feed(fragment);
    }
    usize::from(partial.value().is_some())
}

fn jiter(text: &str) -> usize {
    let mut end = 0;
    let mut values = 0;
    for fragment in fragments(text) {
        end += fragment.len();
        let prefix = text.as_bytes().get(..end).unwrap_or_default();
        let value = JsonValue::parse_with_config(prefix, false, PartialMode::TrailingStrings);
        values += usize::from(value.is_ok());
    }
    values
}
