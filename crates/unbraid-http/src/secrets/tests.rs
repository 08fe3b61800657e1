use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Url;

use super::{MIN_SECRET_BYTES, Secrets};

/// A key with every character that some format escapes.
const KEY: &str = r#"sk/a+b=c"d\e`f'g&h<i>j%2Fk"#;

fn secrets(secret: &str) -> Secrets {
    let mut secrets = Secrets::default();
    secrets.add(secret);
    secrets
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn units(text: &str) -> String {
    let units = text.encode_utf16();
    units.map(|unit| format!("\\u{unit:04X}")).collect()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn entities(text: &str) -> String {
    let escape = |char| match char {
        '"' => "&quot;".to_owned(),
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '\'' => "&#39;".to_owned(),
        '`' => "&#x60;".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

#[test]
fn keys_are_replaced_and_short_values_are_not() {
    let long = "k".repeat(MIN_SECRET_BYTES);
    let redacted = secrets(&long).redact(&format!("<{long}> <{long}>"));
    assert_eq!(redacted, "<[key]> <[key]>");
    assert_eq!(secrets(&long[1..]).redact(&long), long);
    assert_eq!(Secrets::default().redact("none"), "none");
}

#[test]
fn a_key_is_replaced_in_every_escaped_form() {
    let slashes = |text: &str| json(text).replace('/', "\\/");
    let forms = [
        KEY.to_owned(),
        json(KEY),
        slashes(KEY),
        units(KEY),
        json(KEY).replace('a', "\\u0061"),
        percent(KEY),
        entities(KEY),
        // One format within another.
        json(&json(KEY)),
        slashes(&slashes(KEY)),
        json(&json(&json(KEY))),
        json(&entities(KEY)),
        json(&percent(KEY)),
        entities(&json(KEY)),
        percent(&units(KEY)),
    ];
    for form in forms {
        for (before, after) in [
            ("", ""),
            ("<", ">"),
            ("key: \\\"", "\\\", \\u00e9 %20 &amp;"),
        ] {
            let text = format!("{before}{form}{after}");
            let redacted = secrets(KEY).redact(&text);
            assert_eq!(redacted, format!("{before}[key]{after}"), "{text}");
        }
    }
}

#[test]
fn a_key_with_letters_beyond_ascii_is_replaced_in_every_form() {
    let key = "schl\u{fc}ssel-\u{1F511}-\u{20ac}";
    for form in [key.to_owned(), units(key), percent(key), json(&units(key))] {
        let redacted = secrets(key).redact(&format!("\u{e9}{form}\u{e9}"));
        assert_eq!(redacted, "\u{e9}[key]\u{e9}", "{form}");
    }
}

#[test]
fn a_key_that_is_truncated_at_the_end_is_replaced() {
    for form in [
        KEY.to_owned(),
        json(KEY),
        units(KEY),
        percent(KEY),
        entities(KEY),
    ] {
        for cut in 1..form.len() {
            let redacted = secrets(KEY).redact(&format!("key {}", &form[..cut]));
            // An escape has at most six bytes for each character. A part of one may remain at the end.
            let is_replaced = redacted.starts_with("key [key]");
            assert!(
                is_replaced || cut < 6 * (MIN_SECRET_BYTES + 1),
                "{redacted}"
            );
        }
    }
    let redacted = secrets(KEY).redact(&format!("key {}", &KEY[..MIN_SECRET_BYTES]));
    assert_eq!(redacted, "key [key]");
}

#[test]
fn text_without_a_key_is_not_changed() {
    for text in [
        "",
        "\\",
        "\\u",
        "\\ud83d",
        "%",
        "%4",
        "&",
        "&#",
        "&#x;",
        "\u{e9}\\\u{e9}",
        "100 % & more;",
    ] {
        assert_eq!(secrets(KEY).redact(text), text);
    }
}

#[track_caller]
fn check_replaced(secrets: &Secrets, texts: &[&str]) {
    for text in texts {
        let redacted = secrets.redact(&format!("<{text}>"));
        assert!(!redacted.contains(text), "{redacted}");
        assert!(redacted.contains("[key]"), "{redacted}");
    }
}

#[test]
fn parts_of_a_header_that_servers_repeat_are_replaced() {
    let header = |value: &str| {
        let mut secrets = Secrets::default();
        secrets.add_header(value);
        secrets
    };
    check_replaced(&header("Bearer  sk-abcdefgh= "), &["sk-abcdefgh="]);
    check_replaced(
        &header("session=abcdefgh; token=\"ijklmnop=\", qrstuvwx"),
        &["abcdefgh", "ijklmnop=", "qrstuvwx", "session=abcdefgh"],
    );
    let basic = BASE64_STANDARD.encode("somebody:password-1");
    check_replaced(
        &header(&format!("Basic {basic}")),
        &[&basic, "somebody:password-1", "password-1"],
    );
    let name = header("Bearer sk-abcdefgh").redact("the header Bearer is missing");
    assert_eq!(name, "the header Bearer is missing");
}

#[test]
fn query_values_and_credentials_of_an_address_are_replaced() {
    let url = "http://user-name:pass%2Fword@host/v1?key=a%2Fb%2Bc%3Dd-e&api-version=2024-10-21&n=7";
    let mut secrets = Secrets::default();
    secrets.add_url(&Url::parse(url).unwrap());
    check_replaced(
        &secrets,
        &[
            "a/b+c=d-e",
            "a%2Fb%2Bc%3Dd-e",
            "pass/word",
            "pass%2Fword",
            &BASE64_STANDARD.encode("user-name:pass/word"),
        ],
    );
    // A raw `+` is kept, although forms decode it as a space.
    let mut plus = Secrets::default();
    plus.add_url(&Url::parse("http://host/v1?key=abc+def/ghi").unwrap());
    check_replaced(&plus, &["abc+def/ghi", "abc def/ghi"]);
    let version = secrets.redact("version 2024-10-21 of host/v1");
    assert_eq!(version, "version 2024-10-21 of host/v1");
}

#[test]
fn debug_prints_only_the_number_of_secrets() {
    assert_eq!(format!("{:?}", secrets(KEY)), "Secrets(1)");
}

/// What is redacted of the base URL in a text.
#[track_caller]
fn check_path(base: &str, text: &str, expected: &str) {
    let mut secrets = Secrets::default();
    secrets.add_url(&Url::parse(base).unwrap());
    assert_eq!(secrets.redact(text), expected, "{base}");
}

#[test]
fn segments_of_the_path_that_resemble_keys_are_replaced() {
    for key in [
        "sk-secret-of-a-path",
        "7Gq2mX0pL9vRtY3k",
        "3f9a1c0d5b7e4a268c1f0e9d7b6a5c43",
        "550e8400-e29b-41d4-a716-446655440000",
        "AIzaSyA1234567890abcdefghijklmnopqrstu",
        "abcdefghijklmnopqrstuvwxyz",
        "sk%2Dsecret-of-a-path",
    ] {
        let base = format!("https://host/{key}/v1");
        let text = format!("Cannot POST /{key}/v1/chat/completions");
        check_path(&base, &text, "Cannot POST /[key]/v1/chat/completions");
    }
    let decoded = "not found: /sk-secret-of-a-path/";
    check_path(
        "https://host/sk%2Dsecret-of-a-path",
        decoded,
        "not found: /[key]/",
    );
    for path in [
        "v1/chat/completions",
        "v1beta/models/gemini-2.5-flash-preview-09-2025:streamGenerateContent",
        "openai/deployments/gpt-4o-mini-2024-07-18/chat/completions",
        "v1/projects/my-project-123456/locations/us-central1/publishers/google",
        "inference/accounts/fireworks/models/llama-v3p1-405b-instruct",
        "openai-compatible/litellm/proxy",
    ] {
        check_path(&format!("https://host/{path}"), path, path);
    }
}

/// An address that was built from a base and the name of a model.
#[test]
fn the_path_of_a_request_is_not_replaced() {
    let url = "https://user-name:password@host/v1beta/models/a1b2c3d4e5f6:generateContent?key=key-of-query";
    let mut secrets = Secrets::default();
    secrets.add_url_without_path(&Url::parse(url).unwrap());
    let text = "a1b2c3d4e5f6 is unknown to user-name with key-of-query";
    assert_eq!(
        secrets.redact(text),
        "a1b2c3d4e5f6 is unknown to [key] with [key]"
    );
}
