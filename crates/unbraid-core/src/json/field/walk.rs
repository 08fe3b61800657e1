//! Follows a pointer through a text to the value that it refers to.

use crate::json::{
    Pointer,
    token::{Container, Token, TokenListener},
};

/// The position in the text, relative to the pointer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// How many reference tokens of the pointer were followed.
    depth: usize,
    pub(super) state: WalkState,
}

/// Containers on the pointer's path are entered. Others are skipped, and only their nesting is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkState {
    /// Before the value at the current depth.
    Value,
    /// In an object on the path, between its members.
    Object,
    /// In a key of that object, of which `matched` bytes equal the reference token; `None` if it differs.
    Key { matched: Option<usize> },
    /// In an array on the path, before this position.
    Array { next: usize },
    /// In a value beside the path, inside this many containers of it, and the container on the path that holds it.
    Skipping { nesting: usize, parent: Parent },
    /// In the string that the pointer refers to.
    Typing,
    /// After the string.
    Done,
    /// The pointer refers to a value that is not a string.
    NotAString,
    /// The pointer refers to no value.
    Absent,
}

/// The container on the path that holds a skipped value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    Object,
    /// The position of the skipped value.
    Array(usize),
}

/// Follows the tokens, and yields the text of the string.
pub(super) struct WalkListener<'a> {
    pub(super) pointer: &'a Pointer,
    pub(super) walk: &'a mut Walk,
    pub(super) on_text: &'a mut dyn FnMut(&str),
}

impl Walk {
    pub(super) const START: Self = Self {
        depth: 0,
        state: WalkState::Value,
    };
}

impl TokenListener for WalkListener<'_> {
    fn token(&mut self, token: Token<'_>) {
        self.walk.state = match (self.walk.state, token) {
            (_, Token::Placeholder) => {
                *self.walk = Walk::START;
                return;
            }
            (WalkState::Typing, Token::Text(text)) => {
                (self.on_text)(text);
                return;
            }
            (WalkState::Typing, Token::StringEnd) => WalkState::Done,
            (WalkState::Value, _) => self.enter(token),
            (WalkState::Object, Token::Key) => WalkState::Key { matched: Some(0) },
            (WalkState::Key { matched }, Token::Text(text)) => WalkState::Key {
                matched: matched.and_then(|matched| self.match_key(matched, text)),
            },
            (WalkState::Key { matched }, Token::KeyEnd) => self.end_key(matched),
            (WalkState::Object | WalkState::Array { .. }, Token::Close) => WalkState::Absent,
            (WalkState::Array { next }, _) => self.item(next, token),
            (WalkState::Skipping { nesting, parent }, _) => skip(nesting, parent, token),
            (state @ (WalkState::Typing | WalkState::Object | WalkState::Key { .. }), _) => state,
            (state @ (WalkState::Done | WalkState::NotAString | WalkState::Absent), _) => state,
        };
    }
}

impl WalkListener<'_> {
    /// Enters the value at the current depth.
    fn enter(&self, token: Token<'_>) -> WalkState {
        match (self.pointer.token(self.walk.depth), token) {
            (None, Token::String) => WalkState::Typing,
            (None, _) => WalkState::NotAString,
            (Some(_), Token::Open(Container::Object)) => WalkState::Object,
            (Some(_), Token::Open(Container::Array)) => WalkState::Array { next: 0 },
            (Some(_), _) => WalkState::Absent,
        }
    }

    /// The matched length of the key after this text; `None` if the key differs.
    fn match_key(&self, matched: usize, text: &str) -> Option<usize> {
        let key = &self.pointer.token(self.walk.depth)?.key;
        key.get(matched..)?
            .starts_with(text)
            .then(|| matched + text.len())
    }

    /// Ends a key, of which `matched` bytes equal the reference token.
    fn end_key(&mut self, matched: Option<usize>) -> WalkState {
        let step = self.pointer.token(self.walk.depth);
        if step.is_some_and(|step| matched == Some(step.key.len())) {
            self.walk.depth += 1;
            WalkState::Value
        } else {
            let parent = Parent::Object;
            WalkState::Skipping { nesting: 0, parent }
        }
    }

    /// Enters or skips the item at this position.
    fn item(&mut self, position: usize, token: Token<'_>) -> WalkState {
        let step = self.pointer.token(self.walk.depth);
        if step.is_some_and(|step| step.index == Some(position)) {
            self.walk.depth += 1;
            self.enter(token)
        } else {
            skip(0, Parent::Array(position), token)
        }
    }
}

fn skip(nesting: usize, parent: Parent, token: Token<'_>) -> WalkState {
    let nesting = match token {
        Token::Open(_) => nesting + 1,
        Token::Close => nesting.saturating_sub(1),
        Token::StringEnd | Token::NumberEnd | Token::Literal(_) => nesting,
        Token::Key
        | Token::KeyEnd
        | Token::String
        | Token::Text(_)
        | Token::NumberText(_)
        | Token::Placeholder => return WalkState::Skipping { nesting, parent },
    };
    match parent {
        _ if nesting > 0 => WalkState::Skipping { nesting, parent },
        Parent::Object => WalkState::Object,
        Parent::Array(position) => WalkState::Array { next: position + 1 },
    }
}
