//! The body that a translation writes.

use serde_json::{Map, Value};

use super::reader::Reader;
use crate::request::RequestError;

/// The fields of an object that is sent.
#[derive(Default)]
pub(super) struct Body(Map<String, Value>);

impl Body {
    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    pub(super) fn set_some(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Sets an object, unless it is empty.
    pub(super) fn set_object(&mut self, name: &str, object: Self) {
        if !object.0.is_empty() {
            self.set(name, object.0);
        }
    }

    /// Sets a list, unless it is empty.
    pub(super) fn set_list(&mut self, name: &str, list: Vec<impl Into<Value>>) {
        if !list.is_empty() {
            self.set(name, list);
        }
    }

    /// Takes fields that the provider has under the same name.
    pub(super) fn copy(&mut self, request: &mut Reader<'_>, names: &[&str]) {
        for name in names {
            self.set_some(name, request.take(name).cloned());
        }
    }

    /// Takes a field that the provider has under another name.
    ///
    /// # Errors
    ///
    /// If the request has that one, too, as one of the provider's own fields.
    pub(super) fn rename(
        &mut self,
        request: &mut Reader<'_>,
        name: &str,
        own: &str,
    ) -> Result<(), RequestError> {
        match request.take(name) {
            Some(value) => self.add(request, name, own, value.clone()),
            None => Ok(()),
        }
    }

    /// Sets what a field of the request becomes.
    ///
    /// # Errors
    ///
    /// If the request has that one, too, as one of the provider's own fields.
    pub(super) fn add(
        &mut self,
        request: &Reader<'_>,
        name: &str,
        own: &str,
        value: impl Into<Value>,
    ) -> Result<(), RequestError> {
        if self.0.contains_key(own) {
            return Err(request.refuse(name, "the provider's own field is set, too"));
        }
        self.set(own, value);
        Ok(())
    }

    /// One of the provider's own objects, to which fields of the request may be added.
    pub(super) fn own(request: &mut Reader<'_>, name: &str) -> Result<Self, RequestError> {
        match request.take(name) {
            None => Ok(Self::default()),
            Some(Value::Object(fields)) => Ok(Self(fields.clone())),
            Some(_) => Err(request.refuse(name, "it is not an object")),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.shift_remove(name);
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn into_fields(self) -> Map<String, Value> {
        self.0
    }
}

impl From<Body> for Value {
    fn from(body: Body) -> Self {
        body.0.into()
    }
}
