//! Reads an object of a request so that no field of it is lost: each one is taken, or refused by name.

use serde_json::{Map, Value};

use crate::{provider::Provider, request::RequestError};

/// The fields of an object that have not been taken yet. Null says as much as a missing field.
pub(super) struct Reader<'r> {
    provider: Provider,
    /// Where the object is: `messages[2]`, or empty for the request itself.
    path: String,
    fields: Vec<(&'r str, &'r Value)>,
}

const NO_SUCH_FIELD: &str = "it has no such field";

impl<'r> Reader<'r> {
    pub(super) fn new(provider: Provider, path: String, fields: &'r Map<String, Value>) -> Self {
        let fields = fields.iter().filter(|(_, value)| !value.is_null());
        let fields = fields.map(|(name, value)| (name.as_str(), value)).collect();
        Self {
            provider,
            path,
            fields,
        }
    }

    /// The same position without any field.
    pub(super) fn empty(&self) -> Self {
        Self {
            provider: self.provider,
            path: self.path.clone(),
            fields: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<&'r Value> {
        let at = self.fields.iter().position(|(known, _)| *known == name)?;
        let (_, value) = self.fields.remove(at);
        Some(value)
    }

    /// Takes a field if its value asks for nothing.
    pub(super) fn skip_if(&mut self, name: &str, is_default: impl FnOnce(&Value) -> bool) {
        if self.get(name).is_some_and(is_default) {
            self.take(name);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'r Value> {
        let (_, value) = self.fields.iter().find(|(known, _)| *known == name)?;
        Some(value)
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<&'r str>, RequestError> {
        let value = self.take(name);
        let text = value.map(|value| value.as_str().ok_or("it is not a string"));
        text.transpose().map_err(|why| self.refuse(name, why))
    }

    pub(super) fn required_text(&mut self, name: &str) -> Result<&'r str, RequestError> {
        self.text(name)?
            .ok_or_else(|| self.refuse(name, "it is missing"))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, RequestError> {
        let value = self.take(name);
        let flag = value.map(|value| value.as_bool().ok_or("it is not a boolean"));
        flag.transpose().map_err(|why| self.refuse(name, why))
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, RequestError> {
        let value = self.take(name);
        let object = value.map(|value| self.reader_of(self.path_of(name), value));
        object.transpose()
    }

    pub(super) fn required_object(&mut self, name: &str) -> Result<Self, RequestError> {
        self.object(name)?
            .ok_or_else(|| self.refuse(name, "it is missing"))
    }

    /// The objects of a list. A missing list is empty.
    pub(super) fn objects(&mut self, name: &str) -> Result<Vec<Self>, RequestError> {
        let values = self.values(name)?.iter().enumerate();
        let path = self.path_of(name);
        values
            .map(|(position, value)| self.reader_of(format!("{path}[{position}]"), value))
            .collect()
    }

    /// The values of a list. A missing list is empty.
    pub(super) fn values(&mut self, name: &str) -> Result<&'r [Value], RequestError> {
        match self.take(name) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(self.refuse(name, "it is not an array")),
        }
    }

    fn reader_of(&self, path: String, value: &'r Value) -> Result<Self, RequestError> {
        match value {
            Value::Object(fields) => Ok(Self::new(self.provider, path, fields)),
            _ => Err(RequestError::unsupported(
                self.provider,
                path,
                "it is not an object",
            )),
        }
    }

    fn path_of(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// The error of a field.
    pub(super) fn refuse(&self, name: &str, why: &'static str) -> RequestError {
        RequestError::unsupported(self.provider, self.path_of(name), why)
    }

    /// The error of the object as a whole.
    pub(super) fn refuse_all(&self, why: &'static str) -> RequestError {
        RequestError::unsupported(self.provider, self.path.clone(), why)
    }

    /// The error of a field that the provider lacks.
    pub(super) fn refuse_field(&self, name: &str) -> RequestError {
        self.refuse(name, NO_SUCH_FIELD)
    }

    /// Refuses what was not taken.
    pub(super) fn finish(self) -> Result<(), RequestError> {
        match self.fields.first() {
            Some((name, _)) => Err(self.refuse_field(name)),
            None => Ok(()),
        }
    }
}
