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
        None,
        Some("400"),
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
