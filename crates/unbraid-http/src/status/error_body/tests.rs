use std::time::Duration;

use serde_json::json;

use super::ErrorBody;

#[track_caller]
fn check(body: &str, message: Option<&str>, kind: Option<&str>, code: Option<&str>) {
    let parsed = ErrorBody::parse(body);
    assert_eq!(
        (
            parsed.message.as_deref(),
            parsed.kind.as_deref(),
            parsed.code.as_deref()
        ),
        (message, kind, code),
        "{body}"
    );
}

#[test]
fn the_parameter_is_returned_if_the_body_names_it() {
    let param = |body: &str| ErrorBody::parse(body).param;
    assert_eq!(
        param(r#"{"error":{"message":"no","param":"n"}}"#).as_deref(),
        Some("n")
    );
    assert_eq!(
        param(r#"{"message":"no","param":"n"}"#).as_deref(),
        Some("n")
    );
    assert_eq!(param(r#"{"error":{"message":"no","param":null}}"#), None);
}

#[test]
fn error_objects_of_many_servers_are_parsed() {
    check(
        r#"{"error":{"message":"no such model","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        Some("no such model"),
        Some("invalid_request_error"),
        Some("model_not_found"),
    );
    check(
        r#"{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}"#,
        Some("too long"),
        Some("BadRequestError"),
        Some("400"),
    );
    check(
        r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
        Some("API key not valid."),
        Some("INVALID_ARGUMENT"),
        Some("400"),
    );
    check(
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
        Some("Overloaded"),
        Some("overloaded_error"),
        None,
    );
    check(
        r#"{"error":{"message":"no","type":"invalid_request_error","param":"input","code":null}}"#,
        Some("no"),
        Some("invalid_request_error"),
        None,
    );
    check(
        r#"{"error":"model \"m\" not found, try pulling it first"}"#,
        Some(r#"model "m" not found, try pulling it first"#),
        None,
        None,
    );
    check(
        r#"{"id":"8d6b","message":"invalid request: n is unknown"}"#,
        Some("invalid request: n is unknown"),
        None,
        None,
    );
    check(
        r#"{"message":"The security token is expired"}"#,
        Some("The security token is expired"),
        None,
        None,
    );
    check(
        r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#,
        Some("Field required"),
        None,
        None,
    );
    check(r#"{"detail":"Not Found"}"#, Some("Not Found"), None, None);
    check(r#"{"error":"busy"}"#, Some("busy"), None, None);
    check(r#""busy""#, Some("busy"), None, None);
}

#[test]
fn the_body_may_have_the_id_and_the_delay() {
    let anthropic = ErrorBody::parse(r#"{"type":"error","error":{},"request_id":"req_1"}"#);
    assert_eq!(anthropic.request_id.as_deref(), Some("req_1"));

    let delay = |delay: &str| {
        let info =
            json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay });
        let quota = json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure" });
        let body = json!({ "error": { "code": 429, "details": [quota, info] } });
        ErrorBody::parse(&body.to_string()).retry_after
    };
    assert_eq!(delay("34.5s"), Some(Duration::from_millis(34_500)));
    assert_eq!(delay("0s"), Some(Duration::ZERO));
    assert_eq!(delay("1e300s"), Some(Duration::MAX));
    for invalid in ["34", "s", "-1s", "NaNs"] {
        assert_eq!(delay(invalid), None, "{invalid}");
    }
}

#[test]
fn the_message_of_a_page_is_its_title() {
    let page = "<!DOCTYPE html>\n<HTML><head><TITLE lang=en> 502 Bad Gateway </TITLE></head><body>nginx</body>";
    check(page, Some("502 Bad Gateway"), None, None);
    check("<html><title></title></html>", None, None, None);
    check("<html><title>cut", None, None, None);
    check(
        "<html>\u{130}<title>\u{130}</title>",
        Some("\u{130}"),
        None,
        None,
    );
}

#[test]
fn text_is_the_message_and_an_empty_body_has_none() {
    check(" upstream gone\n", Some("upstream gone"), None, None);
    check(" \n", None, None, None);
    check("{}", None, None, None);
    check("[]", None, None, None);
    check("null", None, None, None);
    check(
        r#"{"error":{"message":"cut"#,
        Some(r#"{"error":{"message":"cut"#),
        None,
        None,
    );
}
