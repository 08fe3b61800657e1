//! The fields of a call.

use std::borrow::Cow;

use super::{Fallback, FieldVisitor, ValueReader, keep_unknown};
use crate::{
    Fragment, ToolCallUpdate,
    chunk::{Pairs, is_call_field, non_empty},
};

/// The name and the arguments of a call.
#[derive(Default)]
pub(super) struct FunctionFields<'a> {
    pub(super) name: Option<Fragment<'a>>,
    pub(super) arguments: Option<Fragment<'a>>,
    /// Unknown fields, which become fields of the call.
    extra: Pairs<'a>,
}

impl<'a> FunctionFields<'a> {
    /// Moves the fields to their call. What counts if the call has unknown fields of its own, or two functions, is decided by the
    /// lenient decoder. A function is known by its name or arguments, so one with neither keeps no unknown fields here.
    fn move_to(self, call: &mut ToolCallUpdate<'a>) -> Result<(), Fallback> {
        let is_known = self.name.is_some() || self.arguments.is_some();
        let is_repeated = call.name.is_some() || call.arguments.is_some();
        match (call.extra.is_empty(), self.extra.is_empty()) {
            (true, true) => {}
            (false, true) if !is_repeated => {}
            (true, false) if is_known => call.extra = self.extra,
            _ => return Err(Fallback),
        }
        call.name = self.name;
        call.arguments = self.arguments;
        Ok(())
    }
}

impl<'a> FieldVisitor<'a> for FunctionFields<'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        match &*key {
            "name" => self.name = value.fragment()?,
            "arguments" => self.arguments = value.fragment()?,
            key if is_call_field(key) => drop(value.raw()?),
            _ => keep_unknown(&mut self.extra, key, value)?,
        }
        Ok(())
    }
}

impl<'a> FieldVisitor<'a> for ToolCallUpdate<'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        match &*key {
            "index" => self.wire_index = value.number()?,
            "id" => self.id = non_empty(value.text()?),
            "type" => self.kind = non_empty(value.text()?),
            "function" => {
                let mut function = FunctionFields::default();
                let _is_null = !value.object(&mut function)?;
                function.move_to(self)?;
            }
            "custom" => value.null_only()?,
            _ => keep_unknown(&mut self.extra, key, value)?,
        }
        Ok(())
    }
}
