//! Keeps the text of numbers in reported usage.

use serde_json::{Map, Value};

use super::Usage;
use crate::{
    json_text::Json,
    limits::{MAX_FIELDS, MAX_JSON_DEPTH},
    node::{self, Node, has_more_digits},
};

/// The numbers that a `Value` prints in another form, by the JSON pointers of their positions.
///
/// They are stored beside the merged values. A text counts only while the value at its position is still the number
/// that it means.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Exact(Vec<(String, Box<str>)>);

impl Exact {
    /// Adds the numbers of a usage object that was received after all earlier ones.
    pub(super) fn note(&mut self, raw: &str) {
        if raw.is_empty() || (self.0.is_empty() && !may_differ(raw)) {
            return;
        }
        if let Ok(node) = node::read(raw, MAX_JSON_DEPTH) {
            self.walk(&mut String::new(), &node);
        }
    }

    fn walk(&mut self, path: &mut String, node: &Node<'_>) {
        if path.len() > MAX_PATH_BYTES {
            return; // each number keeps its path, and a key may be as long as an event
        }
        match &node.value {
            node::Value::Null => {} // U2: null replaces nothing
            node::Value::Object(fields) => {
                for (key, field) in fields {
                    let length = path.len();
                    push_step(path, key);
                    self.walk(path, field);
                    path.truncate(length);
                }
            }
            node::Value::Array(items) => {
                self.remove(path); // a list replaces another one completely
                for (position, item) in items.iter().enumerate() {
                    let length = path.len();
                    push_step(path, &position.to_string());
                    self.walk(path, item);
                    path.truncate(length);
                }
            }
            node::Value::Number(raw) => {
                self.remove(path);
                if node.clean && self.0.len() < MAX_FIELDS && differs(raw) {
                    self.0.push((path.clone(), (*raw).into()));
                }
            }
            node::Value::Bool(_) | node::Value::String(_) => self.remove(path),
        }
    }

    /// These numbers, and those of `lower` at all other positions.
    pub(super) fn merged_over(&self, lower: &Self) -> Self {
        let mut both = lower.clone();
        for (path, raw) in &self.0 {
            both.remove(path);
            both.0.push((path.clone(), raw.clone()));
        }
        both
    }

    /// Removes the numbers at a position and inside it.
    fn remove(&mut self, path: &str) {
        self.0.retain(|(known, _)| {
            let inside = known.strip_prefix(path);
            inside.is_none_or(|inside| !inside.is_empty() && !inside.starts_with('/'))
        });
    }

    /// The text of the number at a position, if the value is what the text means.
    fn text_at(&self, path: &str, value: &Value) -> Option<&str> {
        let (_, raw) = self.0.iter().find(|(known, _)| known == path)?;
        (value_of(raw) == *value).then_some(&**raw)
    }

    /// Fields as JSON text, in which each of these numbers keeps its digits.
    #[cfg(test)]
    pub(super) fn written(&self, fields: &Map<String, Value>) -> String {
        self.write_object(&mut String::new(), fields).into_text()
    }

    fn write(&self, path: &mut String, value: &Value) -> Json<'static> {
        match value {
            Value::Object(fields) => self.write_object(path, fields),
            Value::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (position, item) in items.iter().enumerate() {
                    let length = path.len();
                    push_step(path, &position.to_string());
                    list.push(self.write(path, item));
                    path.truncate(length);
                }
                Json::List(list)
            }
            Value::Null | Value::Number(_) => match self.text_at(path, value) {
                Some(raw) => Json::Raw(raw.to_owned().into()),
                None => Json::Value(value.clone()),
            },
            Value::Bool(_) | Value::String(_) => Json::Value(value.clone()),
        }
    }

    fn write_object(&self, path: &mut String, fields: &Map<String, Value>) -> Json<'static> {
        let mut object = Vec::with_capacity(fields.len());
        let length = path.len();
        for (key, field) in fields {
            push_step(path, key);
            object.push((key.clone().into(), self.write(path, field)));
            path.truncate(length);
        }
        // A number beyond the range of `f64` is null, which the merged values leave out.
        for (known, raw) in &self.0 {
            let step = known.strip_prefix(path.as_str());
            let Some(step) = step.and_then(|step| step.strip_prefix('/')) else {
                continue;
            };
            let key = step.replace("~1", "/").replace("~0", "~");
            if !step.contains('/') && !fields.contains_key(&key) && value_of(raw).is_null() {
                object.push((key.into(), Json::Raw(raw.to_string().into())));
            }
        }
        Json::Object(object)
    }
}

/// No server nests or names its numbers like this. Numbers in deeper positions are printed as the `Value` prints them.
const MAX_PATH_BYTES: usize = 1024;

/// The `Value` of a number.
fn value_of(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or(Value::Null)
}

/// Whether the `Value` of a number prints it in another form.
fn differs(raw: &str) -> bool {
    may_differ(raw) && {
        let printed = value_of(raw).to_string();
        printed != raw
    }
}

/// Adds a key to a JSON pointer.
fn push_step(path: &mut String, key: &str) {
    path.push('/');
    if key.contains(['~', '/']) {
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
    } else {
        path.push_str(key);
    }
}

/// Whether a `Value` may print a number of the text in another form. It does so only for some fractions, exponents, a
/// negative zero and long numbers.
pub(crate) fn may_differ(raw: &str) -> bool {
    const MAX_DIGITS: usize = 19; // every number of this many digits fits a `u64`
    let bytes = raw.as_bytes();
    // Without an early exit, the compiler vectorizes this loop.
    let has_exponent = |any: bool, (digit, next): (&u8, &u8)| {
        any | (digit.is_ascii_digit() & matches!(next, b'e' | b'E'))
    };
    let next = bytes.get(1..).unwrap_or_default();
    memchr::memchr(b'-', bytes).is_some()
        || bytes.iter().zip(next).fold(false, has_exponent)
        || has_more_digits(bytes, MAX_DIGITS)
        || memchr::memchr_iter(b'.', bytes).any(|point| {
            let (before, after) = bytes.split_at_checked(point).unwrap_or_default();
            !is_printed_alike(before, after.get(1..).unwrap_or_default())
        })
}

/// Whether the decimal point between two texts is that of a fraction that a `Value` prints as it is. An `f64` distinguishes all
/// fractions of 15 digits, and the shortest digits that mean it are printed, very small ones with an exponent.
fn is_printed_alike(before: &[u8], after: &[u8]) -> bool {
    const MAX_DIGITS: usize = 15;
    const SMALL: &[u8] = b"00000";
    let before_digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let integer = before
        .get(before.len() - before_digits.count()..)
        .unwrap_or_default();
    let after_digits = after.iter().take_while(|byte| byte.is_ascii_digit());
    let fraction = after.get(..after_digits.count()).unwrap_or_default();
    let is_integer = match integer {
        [] => return true, // text, such as the name of a version
        [b'0'] => !fraction.starts_with(SMALL),
        [first, ..] => *first != b'0',
    };
    is_integer
        && integer.len() + fraction.len() <= MAX_DIGITS
        && fraction.last().is_some_and(|last| *last != b'0')
}

impl Usage {
    /// Returns [`raw`](Self::raw) as JSON text, in which every reported number keeps its digits; `None` if nothing was
    /// reported.
    ///
    /// A [`Value`] has no room for some numbers: there they are the nearest `f64`, and a number beyond the range of
    /// `f64` is left out.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"cost\":0.00012345678901234567890}}\n\n");
    /// let usage = demux.usage();
    /// assert_eq!(usage.raw["cost"], 0.00012345678901234567);
    /// assert_eq!(usage.raw_json().unwrap(), r#"{"prompt_tokens":5,"cost":0.00012345678901234567890}"#);
    /// ```
    #[must_use]
    pub fn raw_json(&self) -> Option<String> {
        (!self.raw.is_null()).then(|| self.raw_part().into_text())
    }

    /// The same as a part of other JSON.
    pub(crate) fn raw_part(&self) -> Json<'static> {
        self.exact.write(&mut String::new(), &self.raw)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use unbraid_testkit::cut::Rng;

    use super::may_differ;
    use crate::{Config, Demux, limits::MAX_USAGE_BYTES};

    /// Checks the merged usage of chunks with these usages.
    #[track_caller]
    fn check(usages: &[&str], expected: &str) {
        let mut demux = Demux::new(Config::default());
        for usage in usages {
            let chunk = format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}],\"usage\":{usage}}}\n\n"
            );
            demux.feed(chunk.as_bytes());
        }
        demux.finish();
        assert_eq!(
            demux.usage().raw_json().as_deref(),
            Some(expected),
            "{usages:?}"
        );
    }

    #[test]
    fn u10_a_number_that_a_value_prints_in_another_form_may_differ() {
        let mut rng = Rng::new(31);
        let (mut alike, mut all) = (0, 0);
        for _ in 0..200_000 {
            let digits = |rng: &mut Rng, most: usize| -> String {
                let count = 1 + rng.below(most);
                let digit = |_| char::from(b"0123456789000999"[rng.below(16)]);
                (0..count).map(digit).collect()
            };
            let sign = ["", "", "", "-"][rng.below(4)];
            let mut raw = format!("{sign}{}", digits(&mut rng, 18));
            if rng.chance(0.7) {
                let integer = [digits(&mut rng, 5), "0".into()];
                let zeros = "0".repeat(rng.below(8));
                let fraction = digits(&mut rng, 17);
                raw = format!("{sign}{}.{zeros}{fraction}", integer[rng.below(2)]);
            }
            if rng.chance(0.1) {
                raw = format!("{raw}e{}{}", ["", "-", "+"][rng.below(3)], rng.below(20));
            }
            let Ok(value) = serde_json::from_str::<Value>(&raw) else {
                continue; // a leading zero
            };
            let inside = format!("{{\"a.b\":\"v.\",\"c\":{raw}}}");
            all += 1;
            if !may_differ(&inside) {
                alike += 1;
                assert_eq!(value.to_string(), raw);
            }
        }
        assert!(alike * 5 > all, "{alike} of {all}");
    }

    #[test]
    fn u10_the_numbers_of_reported_usage_keep_their_digits() {
        check(
            &[r#"{"a":1.50,"b":12345678901234567890123}"#],
            r#"{"a":1.50,"b":12345678901234567890123}"#,
        );
        check(
            &[r#"{"a":1e400,"d":{"x/y":-0, "z":[1.0,1e-7]}}"#],
            r#"{"d":{"x/y":-0,"z":[1.0,1e-7]},"a":1e400}"#,
        );
        check(&[r#"{"prompt_tokens":5.0}"#], r#"{"prompt_tokens":5}"#);
    }

    #[test]
    fn numbers_inside_a_long_key_are_not_kept_as_text() {
        let key = "k".repeat(2000);
        check(
            &[&format!("{{\"{key}\":{{\"a\":1.50}},\"b\":1.50}}")],
            &format!("{{\"{key}\":{{\"a\":1.5}},\"b\":1.50}}"),
        );
    }

    #[test]
    fn usage_that_is_too_long_is_read_as_none() {
        let long = |bytes| format!("{{\"prompt_tokens\":1,\"{}\":2}}", "k".repeat(bytes));
        let most = long(MAX_USAGE_BYTES - "{'prompt_tokens':1,'':2}".len());
        check(&[&most], &most);
        let short = r#"{"prompt_tokens":5}"#;
        check(
            &[&long(MAX_USAGE_BYTES), short, &long(MAX_USAGE_BYTES)],
            short,
        );
    }

    #[test]
    fn u04_the_last_number_counts() {
        check(&[r#"{"a":1.50}"#, r#"{"a":1.5}"#], r#"{"a":1.5}"#);
        check(
            &[r#"{"a":1.5}"#, r#"{"a":1.50}"#, r#"{"b":1}"#],
            r#"{"a":1.50,"b":1}"#,
        );
        check(&[r#"{"a":1.50}"#, r#"{"a":null}"#], r#"{"a":1.50}"#);
        check(&[r#"{"a":1e400}"#, r#"{"a":"x"}"#], r#"{"a":"x"}"#);
        check(&[r#"{"a":[1.0,2.0]}"#, r#"{"a":[1]}"#], r#"{"a":[1]}"#);
        check(
            &[r#"{"a":1,"b":1.50}"#, r#"{"a":2,"b":2.50}"#],
            r#"{"a":2,"b":2.50}"#,
        );
    }
}
