//! Merges the usage objects of the envelope, of which many servers send one with every chunk (U4).

use std::sync::Arc;

use serde_json::Value;

use super::{
    Exact,
    fields::{Fields, into_merged, merge, merged, parse},
};
use crate::json_text::differ_in_integers_only;

/// How many forms are kept apart. A stream has one before the thinking ends, and one or two after it.
const MAX_FORMS: usize = 8;

/// The usage objects of the envelope, as if each one was merged when it arrived.
#[derive(Default)]
pub(super) struct Reports {
    /// Everything that is merged already.
    fields: Fields,
    /// The text of the numbers in it.
    exact: Exact,
    /// The last report of each form, in their order. All but the last one are of a form whose fields are in `fields`, too, so
    /// that merging them once more changes values only, and not the order of the fields.
    last: Vec<Report>,
}

/// A report that the next one of its form replaces.
struct Report {
    /// What it has in common with other reports; `None` if that is not known.
    form: Option<u64>,
    raw: String,
    /// Its fields, if they have been read.
    parsed: Option<Arc<Fields>>,
    /// The completion tokens of the first report, if nothing else has been read of it.
    completion_tokens: Option<u64>,
    /// Whether a report of this form was merged.
    is_merged: bool,
}

impl Reports {
    /// Adds a report in place of an earlier one, if all that it changes is integers of the earlier one, and no report of another
    /// form has to be read for that. False if it has to be [added](Self::add).
    pub(super) fn replace(&mut self, raw: &str, form: Option<u64>) -> bool {
        let Self {
            fields,
            exact,
            last,
        } = self;
        let Some(newest) = last.last_mut() else {
            return false;
        };
        let is_newest = match form {
            Some(_) => newest.form == form,
            None => differ_in_integers_only(&newest.raw, raw),
        };
        if is_newest {
            newest.form = form;
        } else {
            let known = last.iter().position(|report| report.form == form);
            let Some(known) = known.filter(|_| form.is_some()) else {
                return false;
            };
            // The newest one is so no longer, and gives its fields their places.
            last.iter_mut()
                .for_each(|report| report.merge_first(fields, exact));
            if let Some(later) = last.get_mut(known..) {
                later.rotate_left(1);
            }
        }
        if let Some(newest) = last.last_mut() {
            raw.clone_into(&mut newest.raw);
            newest.parsed = None;
            newest.completion_tokens = None;
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.last.is_empty()
    }

    /// Adds the first report, of which nothing but the number of its completion tokens has been read.
    pub(super) fn add_first(&mut self, raw: &str, form: Option<u64>, completion_tokens: u64) {
        self.last.push(Report {
            form,
            raw: raw.to_owned(),
            parsed: None,
            completion_tokens: Some(completion_tokens),
            is_merged: false,
        });
    }

    /// Adds a report with these fields.
    pub(super) fn add(&mut self, raw: &str, form: Option<u64>, parsed: Arc<Fields>) {
        let Self {
            fields,
            exact,
            last,
        } = self;
        let have_forms = last.iter().all(|report| report.form.is_some());
        if form.is_some() && have_forms && last.len() < MAX_FORMS {
            last.iter_mut()
                .for_each(|report| report.merge_first(fields, exact));
        } else {
            last.drain(..)
                .for_each(|report| report.merge_into(fields, exact));
        }
        // A form is known only where every order of merging gives the same fields in the same order.
        let form = form.filter(|_| is_compatible(fields, &parsed));
        if form.is_none() {
            last.drain(..)
                .for_each(|report| report.merge_into(fields, exact));
        }
        last.push(Report {
            form,
            raw: raw.to_owned(),
            parsed: Some(parsed),
            completion_tokens: None,
            is_merged: false,
        });
    }

    /// The merged fields of all reports.
    pub(super) fn merged(&self) -> Fields {
        if let (true, [only]) = (self.fields.is_empty(), &*self.last) {
            return match &only.parsed {
                Some(fields) => merged(fields),
                None => into_merged(parse(&only.raw).unwrap_or_default()),
            };
        }
        let mut all = self.fields.clone();
        for report in &self.last {
            report.merge_fields(&mut all);
        }
        all
    }

    /// The same, but the fields of an only report are not copied: they would have to be read again.
    pub(super) fn take_merged(&mut self) -> Fields {
        if let (true, [only]) = (self.fields.is_empty(), self.last.as_mut_slice())
            && let Some(fields) = only.parsed.take()
        {
            return into_merged(Arc::unwrap_or_clone(fields));
        }
        self.merged()
    }

    /// The completion tokens of the only report, if nothing else has been read of it.
    pub(super) fn tokens_of_unread(&self) -> Option<u64> {
        self.only_report()?.completion_tokens
    }

    /// The text of the only report, if nothing but its completion tokens has been read.
    pub(super) fn unread(&self) -> Option<&str> {
        let only = self.only_report()?;
        only.completion_tokens.map(|_| &*only.raw)
    }

    fn only_report(&self) -> Option<&Report> {
        match &*self.last {
            [only] if self.fields.is_empty() => Some(only),
            _ => None,
        }
    }

    /// The text of the numbers of all reports.
    pub(super) fn exact(&self) -> Exact {
        let mut exact = self.exact.clone();
        for report in &self.last {
            exact.note(&report.raw);
        }
        exact
    }
}

impl Report {
    /// Merges the first report of a form when one of another form follows.
    fn merge_first(&mut self, fields: &mut Fields, exact: &mut Exact) {
        if !std::mem::replace(&mut self.is_merged, true) {
            self.merge_into(fields, exact);
        }
    }

    fn merge_into(&self, fields: &mut Fields, exact: &mut Exact) {
        self.merge_fields(fields);
        exact.note(&self.raw);
    }

    fn merge_fields(&self, fields: &mut Fields) {
        match &self.parsed {
            Some(own) => merge(fields, own),
            None => merge(fields, &parse(&self.raw).unwrap_or_default()),
        }
    }
}

/// Whether no object takes the place of another value, or another value that of an object.
fn is_compatible(known: &Fields, fields: &Fields) -> bool {
    fields
        .iter()
        .all(|(key, value)| match (known.get(key), value) {
            (None, _) | (_, Value::Null) => true,
            (Some(Value::Object(known)), Value::Object(fields)) => is_compatible(known, fields),
            (Some(known), value) => known.is_object() == value.is_object(),
        })
}

#[cfg(test)]
mod tests {
    use unbraid_testkit::cut::Rng;

    use super::*;

    /// Reports with these numbers, of a few forms. Their fields are in different orders, and some have other types.
    const FORMS: [fn(u64, u64) -> String; 6] = [
        |a, b| format!(r#"{{"p_tokens":{a},"total":{b}}}"#),
        |a, b| format!(r#"{{"c":{a},"total":{b},"p_tokens":7,"d":{{"x":{a}, "y":1.50}}}}"#),
        |a, b| format!(r#"{{"d":{{"y":{a},"z":{b}}},"list":[{a},1.0]}}"#),
        |a, _| format!(r#"{{"d":{a},"n":null,"total":"{a}"}}"#),
        |a, b| format!(r#"{{"list":{a},"c":2.50,"e":{{"k":{b}}}}}"#),
        |_, _| r#"{"d":null,"c_tokens":-1}"#.to_owned(),
    ];

    /// The merged fields and the text of their numbers, if each report is merged when it arrives.
    fn in_turn(reports: &[String]) -> (Fields, Exact) {
        let (mut fields, mut exact) = (Fields::new(), Exact::default());
        for raw in reports {
            merge(&mut fields, &parse(raw).unwrap());
            exact.note(raw);
        }
        (fields, exact)
    }

    #[test]
    fn u04_reports_of_a_known_form_are_merged_as_all_others() {
        let mut rng = Rng::new(4);
        let (mut replaced, mut added) = (0, 0);
        for _ in 0..2_000 {
            let mut reports = Reports::default();
            let mut all = Vec::new();
            // The fields of the first three have the same types.
            let forms = [3, FORMS.len()][rng.below(2)];
            for _ in 0..rng.below(24) {
                let form = rng.below(forms);
                let raw = FORMS[form](rng.next_u64() % 1_000, rng.next_u64() >> rng.below(64) >> 1);
                let number = rng.chance(0.9).then_some(form as u64);
                let is_replaced = reports.replace(&raw, number);
                if !is_replaced {
                    reports.add(&raw, number, Arc::new(parse(&raw).unwrap()));
                }
                replaced += usize::from(is_replaced);
                added += usize::from(!is_replaced);
                all.push(raw);
                let (fields, exact) = in_turn(&all);
                let merged = reports.merged();
                assert_eq!(
                    serde_json::to_string(&merged).unwrap(),
                    serde_json::to_string(&fields).unwrap(),
                    "{all:?}"
                );
                let text = |exact: &Exact| exact.written(&merged);
                assert_eq!(text(&reports.exact()), text(&exact), "{all:?}");
            }
        }
        assert!(replaced * 2 > added, "{replaced} {added}");
    }

    #[test]
    fn u04_reports_of_alternating_forms_are_not_read() {
        let mut reports = Reports::default();
        // The usage of an event that was parsed has no form.
        let first = r#"{"a":0}"#;
        reports.add(first, None, Arc::new(parse(first).unwrap()));
        for (form, raw) in [(0, r#"{"a":1}"#), (1, r#"{"b":1,"a":2}"#)] {
            assert!(!reports.replace(raw, Some(form)));
            reports.add(raw, Some(form), Arc::new(parse(raw).unwrap()));
        }
        assert!(reports.replace(r#"{"a":3}"#, Some(0)));
        assert!(reports.replace(r#"{"b":4,"a":4}"#, Some(1)));
        assert!(reports.replace(r#"{"a":5}"#, Some(0)));
        let merged = serde_json::to_string(&reports.merged()).unwrap();
        assert_eq!(merged, r#"{"a":5,"b":4}"#);
        assert!(!reports.replace(r#"{"b":5,"a":4}"#, None));
    }

    #[test]
    fn a_stream_of_ever_new_forms_keeps_few_reports() {
        let mut reports = Reports::default();
        for form in 0..1_000 {
            let raw = format!(r#"{{"a":{form}}}"#);
            assert!(!reports.replace(&raw, Some(form)));
            reports.add(&raw, Some(form), Arc::new(parse(&raw).unwrap()));
            assert!(reports.last.len() <= MAX_FORMS);
        }
        assert_eq!(reports.merged()["a"], 999);
    }
}
