//! The proxies of the environment, whose addresses may contain passwords.

use std::env;

use reqwest::Url;

pub(super) fn from_env() -> impl Iterator<Item = Url> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let names = names
        .into_iter()
        .flat_map(|name| [name.to_owned(), name.to_lowercase()]);
    let values = names.filter_map(|name| env::var(name).ok());
    values.filter_map(|value| {
        let value = value.trim();
        match value.contains("://") {
            true => Url::parse(value),
            false => Url::parse(&format!("http://{value}")),
        }
        .ok()
    })
}
