//! Removes duplicate keys, of which the last value counts (E26).

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::Node;

type Field<'a> = (Cow<'a, str>, Node<'a>);

/// The fields with the last value of each key, at the position of its first value that is not null.
///
/// The readers of ordinary chunks skip a null without noting its position, so they give the same order.
pub(super) fn unique(fields: Vec<Field<'_>>) -> Vec<Field<'_>> {
    if has_duplicates(&fields) {
        last_values(fields)
    } else {
        fields
    }
}

fn has_duplicates(fields: &[Field<'_>]) -> bool {
    const FEW: usize = 16; // comparing this few keys with each other costs less than hashing them
    if fields.len() > FEW {
        let mut seen = HashSet::with_capacity(fields.len());
        return !fields.iter().all(|(key, _)| seen.insert(&**key));
    }
    fields.iter().enumerate().any(|(position, (key, _))| {
        let later = fields.get(position + 1..).unwrap_or_default();
        later.iter().any(|(other, _)| other == key)
    })
}

fn last_values(fields: Vec<Field<'_>>) -> Vec<Field<'_>> {
    let mut positions: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(fields.len());
    // A removed field leaves an empty slot, so that the positions after it stay valid.
    let mut kept: Vec<Option<Field<'_>>> = Vec::with_capacity(fields.len());
    for (key, node) in fields {
        let known = positions
            .get(&key)
            .and_then(|position| kept.get_mut(*position));
        match known {
            Some(Some((_, value))) if !value.is_null() => *value = node,
            known => {
                if let Some(slot) = known {
                    *slot = None;
                }
                positions.insert(key.clone(), kept.len());
                kept.push(Some((key, node)));
            }
        }
    }
    kept.into_iter().flatten().collect()
}
