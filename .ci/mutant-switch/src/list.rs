//! The list of mutants, as `cargo mutants --list --json` prints it.
use std::ops::Range;

use serde::Deserialize;

#[derive(Deserialize)]
pub struct Mutant {
    pub name: String,
    pub file: String,
    pub package: String,
    pub genre: Genre,
    pub replacement: String,
    pub span: Span,
    function: Option<Function>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Deserialize)]
struct Function {
    return_type: String,
}

/// Lines and columns count from 1, and columns count characters.
#[derive(Deserialize)]
pub struct Span {
    start: Position,
    end: Position,
}

#[derive(Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

impl Mutant {
    /// Whether the function names no type, so that one that returns two types of values fails although either would do.
    pub fn returns_impl(&self) -> bool {
        self.function
            .as_ref()
            .is_some_and(|f| f.return_type.contains("impl "))
    }
}

impl Span {
    /// The bytes of `source` that are meant.
    pub fn bytes(&self, source: &str) -> Range<usize> {
        self.start.byte(source)..self.end.byte(source)
    }
}

impl Position {
    fn byte(&self, source: &str) -> usize {
        let mut lines = source.split_inclusive('\n');
        let before: usize = lines.by_ref().take(self.line - 1).map(str::len).sum();
        let line = lines.next().unwrap_or("");
        let column = line.char_indices().nth(self.column - 1);
        before + column.map_or(line.len(), |(at, _)| at)
    }
}
