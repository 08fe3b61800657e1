//! The web page: one file, which loads nothing and may run nothing but its own script.

use std::sync::LazyLock;

use axum::{
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    },
    response::IntoResponse,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::digest::{SHA256, digest};

const HTML: &str = include_str!("../page/index.html");

/// The policy names the page's script and style by their hashes, so that nothing else runs even if it is injected.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    // The hashes are ASCII. If they were not, nothing at all would be allowed.
    let closed = |_| HeaderValue::from_static("default-src 'none'");
    HeaderValue::try_from(policy(HTML)).unwrap_or_else(closed)
});

/// Serves the page.
pub(super) async fn page() -> impl IntoResponse {
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, HTML)
}

fn policy(html: &str) -> String {
    let [script, style] = ["script", "style"].map(|tag| source(html, tag));
    format!(
        "default-src 'none'; connect-src 'self'; script-src {script}; style-src {style}; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    )
}

/// The hash of an element's content, as a policy names it.
fn source(html: &str, tag: &str) -> String {
    let content = content(html, tag).unwrap_or_default();
    let hash = STANDARD.encode(digest(&SHA256, content.as_bytes()));
    format!("'sha256-{hash}'")
}

/// The content of the only element with this tag.
fn content<'h>(html: &'h str, tag: &str) -> Option<&'h str> {
    let (_, rest) = html.split_once(&format!("<{tag}>"))?;
    let (content, _) = rest.split_once(&format!("</{tag}>"))?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_an_empty_script_is_known() {
        let empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        assert_eq!(source("<script></script>", "script"), empty);
        assert!(
            policy("<script></script><style>a{}</style>").contains(&format!("script-src {empty};"))
        );
    }

    #[test]
    fn the_policy_covers_the_only_script_and_the_only_style() {
        for tag in ["script", "style"] {
            assert_eq!(HTML.matches(&format!("<{tag}")).count(), 1, "{tag}");
            assert!(content(HTML, tag).is_some_and(|content| content.len() > 1000));
            assert!(POLICY.to_str().unwrap().contains(&source(HTML, tag)));
        }
        // The policy would refuse these, and without a message that a user sees.
        for refused in [
            " style=",
            "javascript:",
            " onclick=",
            " onload=",
            "<link",
            "<img",
        ] {
            assert!(!HTML.contains(refused), "{refused}");
        }
    }

    #[test]
    fn text_never_becomes_markup_and_nothing_is_loaded() {
        let markup = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "eval(",
        ];
        for name in markup
            .into_iter()
            .chain(["http:", "https:", "url(", "@import", "import("])
        {
            assert!(!HTML.contains(name), "{name}");
        }
    }

    #[test]
    fn the_page_has_the_elements_of_its_contract() {
        for id in ["key", "model", "prompt", "n", "send", "cancel-all", "state"] {
            assert_eq!(HTML.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
        }
        assert!(HTML.contains(r#"id="state" role="status""#));
    }
}
