//! One entry of a delta's `tool_calls`.

use std::borrow::Cow;

use super::{Fragment, own_pairs, owned};

/// One entry of a delta's `tool_calls`.
///
/// # Examples
///
/// ```
/// use unbraid_core::ToolCallUpdate;
///
/// let header = ToolCallUpdate::default().with_wire_index(0).with_id("c1").with_name("add");
/// let arguments = ToolCallUpdate::default().with_wire_index(0).with_arguments("{}");
/// # assert_ne!(header, arguments);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCallUpdate<'a> {
    /// The wire's index of the call; a key, not a position.
    pub wire_index: Option<i64>,
    /// Position among several entries of one chunk that have no index (T3).
    pub position: Option<u32>,
    /// The call's id, if this entry has it.
    pub id: Option<Cow<'a, str>>,
    /// The wire's `type`, if this entry has it.
    pub kind: Option<Cow<'a, str>>,
    /// The tool's name, or a piece of it.
    pub name: Option<Fragment<'a>>,
    /// The next piece of the arguments, or of a custom tool's input.
    pub arguments: Option<Fragment<'a>>,
    /// Whether the dialect has no ids of calls, so that a call without one lacks nothing (D15).
    pub without_id: bool,
    /// Unknown fields, as raw JSON.
    pub extra: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> ToolCallUpdate<'a> {
    with_methods! {
        with_wire_index(impl Into<Option<i64>>): wire_index = |index| index.into();
        with_position(impl Into<Option<u32>>): position = |position| position.into();
        with_id(impl Into<Cow<'a, str>>): id = |id| Some(id.into());
        with_kind(impl Into<Cow<'a, str>>): kind = |kind| Some(kind.into());
        with_name(impl Into<Fragment<'a>>): name = |name| Some(name.into());
        with_arguments(impl Into<Fragment<'a>>): arguments = |arguments| Some(arguments.into());
        with_without_id(bool): without_id = |without_id| without_id;
        with_extra(Vec<(Cow<'a, str>, Cow<'a, str>)>): extra = |extra| extra;
    }

    /// T33: some servers end a call with an entry that has no id, name or arguments.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = |f: &Option<Fragment<'_>>| f.as_ref().is_none_or(Fragment::is_empty);
        self.id.as_deref().is_none_or(str::is_empty) && empty(&self.name) && empty(&self.arguments)
    }

    /// Whether the entry brings nothing but arguments. An id or a name would change the call as well, and a missing index has
    /// to be resolved.
    pub(crate) fn is_announced(&self) -> bool {
        self.wire_index.is_some()
            && self.id.is_none()
            && self.name.is_none()
            && !self.without_id
            && self.kind.as_deref().is_none_or(|kind| kind == "function")
    }

    /// The entry without its arguments, its unknown fields and borrows.
    pub(crate) fn header(&self) -> ToolCallUpdate<'static> {
        let name = self.name.as_ref();
        ToolCallUpdate {
            wire_index: self.wire_index,
            id: owned(self.id.clone()),
            kind: owned(self.kind.clone()),
            name: name.map(|name| Fragment::from(name.text.clone().into_owned())),
            ..ToolCallUpdate::default()
        }
    }

    pub(super) fn into_owned(self) -> ToolCallUpdate<'static> {
        ToolCallUpdate {
            wire_index: self.wire_index,
            position: self.position,
            id: owned(self.id),
            kind: owned(self.kind),
            name: self.name.map(Fragment::into_owned),
            arguments: self.arguments.map(Fragment::into_owned),
            without_id: self.without_id,
            extra: own_pairs(self.extra),
        }
    }
}
