//! The page, which loads nothing from elsewhere.

use axum::{
    Router,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    response::IntoResponse,
    routing::get,
};

/// What the page may do: run its own script, and talk to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let file = |kind, text| get(move || async move { file(kind, text) });
    Router::new()
        .route(
            "/",
            file(
                "text/html; charset=utf-8",
                include_str!("../page/index.html"),
            ),
        )
        .route(
            "/page.js",
            file(
                "text/javascript; charset=utf-8",
                include_str!("../page/page.js"),
            ),
        )
        .route(
            "/page.css",
            file("text/css; charset=utf-8", include_str!("../page/page.css")),
        )
}

fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}
