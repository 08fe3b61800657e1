//! Puts all mutants of a file into it, each behind a switch.
//!
//! An expression becomes `(if crate::__mutant(7) { changed } else { original })`. Since only one mutant is active at
//! a time, `changed` holds no switches, and the file grows by little more than the text of the mutants.
use std::cmp::Reverse;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::list::{Genre, Mutant};

pub struct Rewritten {
    pub text: String,
    /// Where in the text the code of each mutant is.
    pub mutants: Vec<(Range<usize>, usize)>,
    /// Where in the text the code is that a mutant may change.
    pub places: Vec<(Range<usize>, usize)>,
    /// The mutants for which there is no switch.
    pub left: Vec<usize>,
}

/// What a switch can be built around, with the code that it covers.
struct Node {
    kind: Kind,
    range: Range<usize>,
    mutants: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Body,
    Binary,
    /// A part of `if let A = b && c`, which no parentheses may enclose.
    LetChain,
    Unary,
    Guard,
    Struct,
    /// The pattern of an arm that has no guard.
    Pattern,
}

impl Kind {
    fn serves(self, genre: Genre) -> bool {
        match genre {
            Genre::FnValue => self == Self::Body,
            Genre::BinaryOperator => matches!(self, Self::Binary | Self::LetChain),
            Genre::UnaryOperator => self == Self::Unary,
            Genre::MatchArmGuard => self == Self::Guard,
            Genre::MatchArm => self == Self::Pattern,
            Genre::StructField => self == Self::Struct,
        }
    }
}

/// `chosen` are numbers of mutants of this file in `all`.
pub fn rewrite(source: &str, all: &[Mutant], chosen: &[usize]) -> Result<Rewritten, syn::Error> {
    let mut nodes = Nodes(Vec::new());
    nodes.visit_file(&syn::parse_file(source)?);
    let mut nodes = nodes.0;
    let mut left = Vec::new();
    for &number in chosen {
        let mutant = &all[number];
        let span = mutant.span.bytes(source);
        // Only one node has the token itself, and all others that contain it are around that one.
        let found = nodes
            .iter_mut()
            .filter(|n| n.kind.serves(mutant.genre) && n.range.start <= span.start)
            .filter(|n| {
                span.end <= n.range.end
                    || mutant.genre == Genre::MatchArm && span.start == n.range.start
            })
            .min_by_key(|n| n.range.len());
        match found {
            Some(node) if node.kind != Kind::LetChain => node.mutants.push(number),
            _ => left.push(number),
        }
    }
    nodes.retain(|n| !n.mutants.is_empty());
    nodes.sort_by_key(|n| (n.range.start, Reverse(n.range.end)));
    let mut writer = Writer {
        source,
        all,
        copied: 0,
        text: String::new(),
        mutants: Vec::new(),
        places: Vec::new(),
    };
    writer.write(&nodes);
    let Writer {
        text,
        mutants,
        places,
        ..
    } = writer;
    Ok(Rewritten {
        text,
        mutants,
        places,
        left,
    })
}

struct Writer<'a> {
    source: &'a str,
    all: &'a [Mutant],
    copied: usize,
    text: String,
    mutants: Vec<(Range<usize>, usize)>,
    places: Vec<(Range<usize>, usize)>,
}

impl Writer<'_> {
    fn write(&mut self, nodes: &[Node]) {
        let mut open: Vec<(&Node, usize)> = Vec::new();
        for node in nodes {
            while let Some((outer, began)) = open.pop_if(|(n, _)| n.range.end <= node.range.start) {
                self.close(outer, began);
            }
            self.copy(node.range.start);
            open.push((node, self.text.len()));
            self.open(node);
        }
        while let Some((outer, began)) = open.pop() {
            self.close(outer, began);
        }
        self.copy(self.source.len());
    }

    fn copy(&mut self, end: usize) {
        self.text.push_str(&self.source[self.copied..end]);
        self.copied = end;
    }

    fn open(&mut self, node: &Node) {
        match node.kind {
            Kind::Pattern => {}
            Kind::Body => {
                for &number in &node.mutants {
                    let value = self.all[number].replacement.clone();
                    self.switch(number, " if", &format!("return {value};"));
                }
            }
            _ => {
                self.text.push('(');
                for &number in &node.mutants {
                    let changed = self.changed(node, number);
                    self.switch(number, "if", &changed);
                    self.text.push_str(" else ");
                }
                self.text.push_str("{ ");
            }
        }
    }

    fn switch(&mut self, number: usize, keyword: &str, code: &str) {
        self.text
            .push_str(&format!("{keyword} crate::__mutant({number}) {{ "));
        let began = self.text.len();
        self.text.push_str(code);
        self.mutants.push((began..self.text.len(), number));
        self.text.push_str(" }");
    }

    fn close(&mut self, node: &Node, began: usize) {
        self.copy(node.range.end);
        match node.kind {
            Kind::Body => {}
            Kind::Pattern => {
                for number in &node.mutants {
                    self.text
                        .push_str(&format!(" if !crate::__mutant({number})"));
                }
            }
            _ => self.text.push_str(" })"),
        }
        let place = began..self.text.len();
        self.places
            .extend(node.mutants.iter().map(|number| (place.clone(), *number)));
    }

    fn changed(&self, node: &Node, number: usize) -> String {
        let mutant = &self.all[number];
        let span = mutant.span.bytes(self.source);
        let (before, after) = (node.range.start..span.start, span.end..node.range.end);
        format!(
            "{}{}{}",
            &self.source[before], mutant.replacement, &self.source[after]
        )
    }
}

struct Nodes(Vec<Node>);

impl Nodes {
    fn add(&mut self, kind: Kind, range: Range<usize>) {
        self.0.push(Node {
            kind,
            range,
            mutants: Vec::new(),
        });
    }

    fn body(&mut self, block: &syn::Block) {
        let braces = block.brace_token.span;
        self.add(
            Kind::Body,
            braces.open().byte_range().end..braces.close().byte_range().start,
        );
    }
}

impl<'ast> Visit<'ast> for Nodes {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.body(&item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.body(&item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let kind = if has_let(&expr.left) || has_let(&expr.right) {
            Kind::LetChain
        } else {
            Kind::Binary
        };
        self.add(kind, expr.span().byte_range());
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        self.add(Kind::Unary, expr.span().byte_range());
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        self.add(Kind::Struct, expr.span().byte_range());
        visit::visit_expr_struct(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        match &arm.guard {
            Some((_, guard)) => self.add(Kind::Guard, guard.span().byte_range()),
            None => self.add(Kind::Pattern, arm.pat.span().byte_range()),
        }
        visit::visit_arm(self, arm);
    }

    /// The arguments of macros such as `assert!`, which are expressions.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        type Arguments = syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>;
        if let Ok(arguments) = call.parse_body_with(Arguments::parse_terminated) {
            // A visitor takes what lives as long as the file; these do not.
            let mut inner = Nodes(Vec::new());
            for argument in &arguments {
                inner.visit_expr(argument);
            }
            self.0.append(&mut inner.0);
        }
    }
}

fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}
