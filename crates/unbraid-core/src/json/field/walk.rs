//! The way through the text to the value that a pointer names.

use crate::json::{
    Pointer,
    token::{Container, Token, Visit},
};

/// Where on the way to the field the text is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// Steps of the pointer that led here.
    steps: usize,
    pub(super) place: Place,
}

/// Containers that the pointer leads through are walked; what lies beside the path is counted and skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the value that the steps lead to.
    Value,
    /// In an object on the path, between its members.
    Object,
    /// In a key there: so many of its bytes are the step's so far, `None` if it differs.
    Key { same: Option<usize> },
    /// In an array on the path, before this position.
    Array { next: usize },
    /// Beside the path, in so many containers, and in which one on it.
    Beside { depth: usize, parent: Parent },
    /// In the string.
    Typing,
    /// After the string.
    Done,
    /// A value that is no string stands there.
    NotAString,
    /// Nothing stands there.
    Absent,
}

/// What holds a value beside the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    Object,
    /// The value stands at this position.
    Array(usize),
}

/// Takes a walk, and gives what is typed at its end.
pub(super) struct Walker<'a> {
    pub(super) pointer: &'a Pointer,
    pub(super) walk: &'a mut Walk,
    pub(super) typed: &'a mut dyn FnMut(&str),
}

impl Walk {
    pub(super) const START: Self = Self {
        steps: 0,
        place: Place::Value,
    };
}

impl Visit for Walker<'_> {
    fn token(&mut self, token: Token<'_>) {
        self.walk.place = match (self.walk.place, token) {
            (_, Token::Placeholder) => {
                *self.walk = Walk::START;
                return;
            }
            (Place::Typing, Token::Text(text)) => {
                (self.typed)(text);
                return;
            }
            (Place::Typing, Token::StringEnd) => Place::Done,
            (Place::Value, _) => self.enter(token),
            (Place::Object, Token::Key) => Place::Key { same: Some(0) },
            (Place::Key { same }, Token::Text(text)) => Place::Key {
                same: same.and_then(|same| self.same(same, text)),
            },
            (Place::Key { same }, Token::KeyEnd) => self.value_of(same),
            (Place::Object | Place::Array { .. }, Token::Close) => Place::Absent,
            (Place::Array { next }, _) => self.item(next, token),
            (Place::Beside { depth, parent }, _) => beside(depth, parent, token),
            (place @ (Place::Typing | Place::Object | Place::Key { .. }), _) => place,
            (place @ (Place::Done | Place::NotAString | Place::Absent), _) => place,
        };
    }
}

impl Walker<'_> {
    /// Begins the value that the steps so far lead to.
    fn enter(&self, token: Token<'_>) -> Place {
        match (self.pointer.step(self.walk.steps), token) {
            (None, Token::String) => Place::Typing,
            (None, _) => Place::NotAString,
            (Some(_), Token::Open(Container::Object)) => Place::Object,
            (Some(_), Token::Open(Container::Array)) => Place::Array { next: 0 },
            (Some(_), _) => Place::Absent,
        }
    }

    /// How much of the step's key has come with this text, if it is the same so far.
    fn same(&self, same: usize, text: &str) -> Option<usize> {
        let key = &self.pointer.step(self.walk.steps)?.key;
        key.get(same..)?
            .starts_with(text)
            .then(|| same + text.len())
    }

    /// The value that follows a key, of which so much is the step's.
    fn value_of(&mut self, same: Option<usize>) -> Place {
        let step = self.pointer.step(self.walk.steps);
        if step.is_some_and(|step| same == Some(step.key.len())) {
            self.walk.steps += 1;
            Place::Value
        } else {
            let parent = Parent::Object;
            Place::Beside { depth: 0, parent }
        }
    }

    /// Begins the item at this position.
    fn item(&mut self, at: usize, token: Token<'_>) -> Place {
        let step = self.pointer.step(self.walk.steps);
        if step.is_some_and(|step| step.index == Some(at)) {
            self.walk.steps += 1;
            self.enter(token)
        } else {
            beside(0, Parent::Array(at), token)
        }
    }
}

fn beside(depth: usize, parent: Parent, token: Token<'_>) -> Place {
    let depth = match token {
        Token::Open(_) => depth + 1,
        Token::Close => depth.saturating_sub(1),
        Token::StringEnd | Token::NumberEnd | Token::Literal(_) => depth,
        Token::Key
        | Token::KeyEnd
        | Token::String
        | Token::Text(_)
        | Token::NumberText(_)
        | Token::Placeholder => return Place::Beside { depth, parent },
    };
    match parent {
        _ if depth > 0 => Place::Beside { depth, parent },
        Parent::Object => Place::Object,
        Parent::Array(at) => Place::Array { next: at + 1 },
    }
}
