//! Errors that the gateway itself answers with, in the shape of the OpenAI API.

use axum::{
    body::Body,
    http::{
        HeaderValue, Response, StatusCode,
        header::{
            ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
        },
    },
    response::IntoResponse,
};

/// An error response: `{"error":{"message","type","param","code"}}`.
///
/// Messages are constants, so they never contain a key, a prompt or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    message: &'static str,
    kind: &'static str,
    param: Option<&'static str>,
    header: Option<ErrorHeader>,
}

/// The header that belongs to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorHeader {
    /// `Retry-After: 1`
    RetryAfter,
    /// `WWW-Authenticate: Bearer`
    Bearer,
    Allow(&'static str),
    /// `Accept-Encoding: identity` (RFC 9110, 12.5.3).
    AcceptEncoding,
}

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $status:ident, $kind:literal, $code:literal, $message:literal $(, param $param:literal)? $(, header $header:expr)?;)*) => {
        impl ApiError {
            $($(#[$doc])* pub(crate) const $name: Self = Self {
                status: StatusCode::$status,
                code: $code,
                message: $message,
                kind: $kind,
                param: errors!(@param $($param)?),
                header: errors!(@header $($header)?),
            };)*
        }
    };
    (@param) => { None };
    (@param $param:literal) => { Some($param) };
    (@header) => { None };
    (@header $header:expr) => { Some($header) };
}

errors! {
    INVALID_JSON = BAD_REQUEST, "invalid_request_error", "invalid_json",
        "the body is not a JSON object in UTF-8";
    N_TOO_LARGE = BAD_REQUEST, "invalid_request_error", "n_too_large",
        "the request asks for more choices than this gateway allows", param "n";
    INVALID_HTTP = BAD_REQUEST, "invalid_request_error", "invalid_http",
        "the head of the request is not valid HTTP";
    URI_TOO_LONG = URI_TOO_LONG, "invalid_request_error", "uri_too_long",
        "the path of the request is too long";
    HEAD_TOO_LARGE = REQUEST_HEADER_FIELDS_TOO_LARGE, "invalid_request_error", "head_too_large",
        "the request has more header fields, or a longer head, than this gateway allows";
    INVALID_HEADER = BAD_REQUEST, "invalid_request_error", "invalid_header",
        "the value of an X-Stream header is not valid";
    BAD_IDEMPOTENCY_KEY = BAD_REQUEST, "invalid_request_error", "bad_idempotency_key",
        "the idempotency key is not one value of 1 to 255 visible ASCII characters";
    BAD_CURSOR = BAD_REQUEST, "invalid_request_error", "bad_cursor",
        "the cursor is not a decimal number below 2^63";
    INVALID_PARAMETER = BAD_REQUEST, "invalid_request_error", "invalid_parameter",
        "the value of a query parameter is not valid";
    BAD_LINK_REQUEST = BAD_REQUEST, "invalid_request_error", "invalid_link_request",
        "scope must be read or cancel, and expires_in 1 to 604800 seconds";
    INVALID_API_KEY = UNAUTHORIZED, "invalid_request_error", "invalid_api_key",
        "the API key is missing or unknown", header ErrorHeader::Bearer;
    HOST_NOT_ALLOWED = FORBIDDEN, "invalid_request_error", "host_not_allowed",
        "this Host is not allowed";
    ORIGIN_NOT_ALLOWED = FORBIDDEN, "invalid_request_error", "origin_not_allowed",
        "this Origin is not allowed";
    LINK_INVALID = FORBIDDEN, "invalid_request_error", "link_invalid",
        "the link is not valid for this request";
    LINK_EXPIRED = FORBIDDEN, "invalid_request_error", "link_expired",
        "the link has expired";
    NOT_FOUND = NOT_FOUND, "invalid_request_error", "not_found",
        "this path does not exist";
    STREAM_NOT_FOUND = NOT_FOUND, "invalid_request_error", "stream_not_found",
        "there is no such stream";
    CHOICE_NOT_FOUND = NOT_FOUND, "invalid_request_error", "choice_not_found",
        "the stream has no such choice";
    NOT_ACCEPTABLE = NOT_ACCEPTABLE, "invalid_request_error", "not_acceptable",
        "this view is text/event-stream or application/json";
    REQUEST_TIMEOUT = REQUEST_TIMEOUT, "invalid_request_error", "request_timeout",
        "the body did not arrive in time";
    BODY_CUT = BAD_REQUEST, "invalid_request_error", "invalid_body",
        "the body did not arrive completely";
    STREAM_EXPIRED = GONE, "invalid_request_error", "stream_expired",
        "the stream is no longer kept";
    REQUEST_TOO_LARGE = PAYLOAD_TOO_LARGE, "invalid_request_error", "request_too_large",
        "the body is larger than this gateway allows";
    UNSUPPORTED_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", "unsupported_media_type",
        "the body must be application/json";
    UNSUPPORTED_ENCODING = UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", "unsupported_media_type",
        "the body must not be compressed: this gateway accepts no Content-Encoding", header ErrorHeader::AcceptEncoding;
    IDEMPOTENCY_KEY_REUSED = UNPROCESSABLE_ENTITY, "invalid_request_error", "idempotency_key_reused",
        "the idempotency key was used with another body";
    TOO_MANY_STREAMS = TOO_MANY_REQUESTS, "rate_limit_error", "too_many_streams",
        "too many streams are running", header ErrorHeader::RetryAfter;
    TOO_MANY_READERS = TOO_MANY_REQUESTS, "rate_limit_error", "too_many_readers",
        "too many readers are connected to the stream", header ErrorHeader::RetryAfter;
    UPSTREAM_UNREACHABLE = BAD_GATEWAY, "api_error", "upstream_unreachable",
        "the upstream cannot be reached";
    UPSTREAM_INVALID = BAD_GATEWAY, "api_error", "upstream_invalid",
        "the upstream's answer could not be read";
    UPSTREAM_ENCODING = BAD_GATEWAY, "api_error", "upstream_invalid",
        "the upstream's answer has a content-encoding that this gateway cannot read";
    UPSTREAM_TIMEOUT = GATEWAY_TIMEOUT, "api_error", "upstream_timeout",
        "the upstream did not answer in time";
    DRAINING = SERVICE_UNAVAILABLE, "api_error", "draining",
        "the gateway is shutting down", header ErrorHeader::RetryAfter;
    OUT_OF_MEMORY = SERVICE_UNAVAILABLE, "api_error", "out_of_memory",
        "the gateway keeps as many streams as it may", header ErrorHeader::RetryAfter;
    LOG_UNAVAILABLE = SERVICE_UNAVAILABLE, "api_error", "log_unavailable",
        "the log of streams cannot be reached, or takes no events", header ErrorHeader::RetryAfter;
    LOG_RECOVERING = SERVICE_UNAVAILABLE, "api_error", "log_recovering",
        "the log of streams was away a moment ago, and may not have this stream yet", header ErrorHeader::RetryAfter;
    LOG_GAP = SERVICE_UNAVAILABLE, "api_error", "log_gap",
        "the log of the stream is incomplete";
    INTERNAL = INTERNAL_SERVER_ERROR, "api_error", "internal_error",
        "the gateway failed";
}

impl ApiError {
    /// The same error, which names the parameter at fault.
    pub(crate) const fn with_param(mut self, param: &'static str) -> Self {
        self.param = Some(param);
        self
    }

    /// 405 with the methods that the path has.
    pub(crate) const fn method_not_allowed(allow: &'static str) -> Self {
        Self {
            status: StatusCode::METHOD_NOT_ALLOWED,
            code: "method_not_allowed",
            message: "this path does not have this method",
            kind: "invalid_request_error",
            param: None,
            header: Some(ErrorHeader::Allow(allow)),
        }
    }

    /// The error object.
    pub(crate) fn body(self) -> serde_json::Value {
        serde_json::json!({ "error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        }})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.header {
            Some(ErrorHeader::RetryAfter) => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Some(ErrorHeader::Bearer) => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Some(ErrorHeader::Allow(methods)) => {
                headers.insert(ALLOW, HeaderValue::from_static(methods));
            }
            Some(ErrorHeader::AcceptEncoding) => {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            }
            None => {}
        }
        response
    }
}
