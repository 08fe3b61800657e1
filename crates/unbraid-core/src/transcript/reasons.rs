//! The finish reasons of a choice.

use std::sync::Arc;

/// Every finish reason in order. A single one, which nearly every choice has, needs no allocation.
#[derive(Clone, Default)]
pub(super) enum Reasons {
    #[default]
    None,
    One(Arc<str>),
    Several(Vec<Arc<str>>),
}

impl Reasons {
    pub(super) fn as_slice(&self) -> &[Arc<str>] {
        match self {
            Self::None => &[],
            Self::One(reason) => std::slice::from_ref(reason),
            Self::Several(reasons) => reasons,
        }
    }

    pub(super) fn push(&mut self, reason: Arc<str>) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(reason),
            Self::One(first) => Self::Several(vec![first, reason]),
            Self::Several(mut reasons) => {
                reasons.push(reason);
                Self::Several(reasons)
            }
        };
    }
}
