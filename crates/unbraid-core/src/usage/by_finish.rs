//! Usage that a server reports with the finish of each choice (U3).

use std::{borrow::Cow, sync::Arc};

use super::fields::{Fields, merge, parse, shared_merged};
use crate::ChoiceIndex;

/// Usually these are the fields of one report, which the envelope has, too.
pub(super) type ChoiceFields = Vec<(ChoiceIndex, Arc<Fields>)>;

/// Usage that arrived with the finish of one choice.
#[derive(Default)]
pub(super) struct ByFinish {
    /// The only report. Nearly always it is for the whole stream and not read here, so it is kept as text.
    pub(super) only: Option<(ChoiceIndex, Box<str>)>,
    /// The fields of each choice, if there were several reports.
    pub(super) choices: ChoiceFields,
    /// Usage also arrived in another place of its kind, so no choice has its own.
    pub(super) has_other: bool,
    /// Usage arrived while other choices were open. Unless the stream is done, it is only for its own choice.
    pub(super) early: bool,
    /// Usage arrived with the finish of several choices. It may be for all of them, or only for the last one.
    pub(super) shared: bool,
}

impl ByFinish {
    /// `fields` are those of the report, unless it is the first one.
    pub(super) fn add(
        &mut self,
        choice: ChoiceIndex,
        last: bool,
        raw: &str,
        fields: Option<&Arc<Fields>>,
    ) {
        self.early |= !last;
        match self.only.take() {
            None if self.choices.is_empty() => self.only = Some((choice, raw.into())),
            only => {
                if let Some((first, raw)) = only {
                    merge_choice(&mut self.choices, first, &parsed(&raw));
                }
                let own = || parsed(raw);
                let fields = fields.map_or_else(own, Arc::clone);
                merge_choice(&mut self.choices, choice, &fields);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.only.is_none() && self.choices.is_empty()
    }

    /// Whether a report is that of one of the choices.
    pub(super) fn has(&self, report: &Arc<Fields>) -> bool {
        let report = shared_merged(report);
        self.choices().iter().any(|(_, known)| *known == report)
    }

    /// The fields of each choice.
    pub(super) fn choices(&self) -> Cow<'_, [(ChoiceIndex, Arc<Fields>)]> {
        match &self.only {
            Some((choice, raw)) => vec![(*choice, shared_merged(&parsed(raw)))].into(),
            None => self.choices.as_slice().into(),
        }
    }
}

/// The fields of a report, of which it is known that it has some.
fn parsed(raw: &str) -> Arc<Fields> {
    Arc::new(parse(raw).unwrap_or_default())
}

/// Merges fields into those of a choice.
pub(super) fn merge_choice(choices: &mut ChoiceFields, choice: ChoiceIndex, fields: &Arc<Fields>) {
    match choices.iter_mut().find(|(known, _)| *known == choice) {
        Some((_, known)) => merge(Arc::make_mut(known), fields),
        None => choices.push((choice, shared_merged(fields))),
    }
}
