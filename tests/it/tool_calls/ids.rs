//! T9 to T15: ids, types and names that are repeated, late, missing or shared.

use super::{calls, check};

#[test]
fn t09_t15_an_id_and_a_name_in_every_fragment_change_nothing() {
    let again = r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"}"}}"#;
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{"}}"#,
            again,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {
        | 0 }
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "add" function {} complete"#],
    );
}

#[test]
fn t10_a_new_id_without_a_name_continues_the_call_which_keeps_its_first() {
    for index in ["\"index\":0,", ""] {
        let shown = if index.is_empty() { "-" } else { "0" };
        let entry =
            |id: &str, rest: &str| format!("{{{index}\"id\":\"{id}\",\"function\":{{{rest}}}}}");
        let header = entry("c1", r#""name":"add","arguments":"{""#);
        let fragment = entry("c2", r#""arguments":"}""#);
        let events = format!(
            "
            |+0 #{shown} c1 \"add\" function
            | 0 {{
            | 0 }}
            |   =tool_calls
            |.0 complete"
        );
        let expected = format!("#{shown} c1 \"add\" function {{}} complete");
        check(&calls(&[&header, &fragment]), &events, &[&expected]);
    }
}

#[test]
fn t11_t19_t33_empty_and_null_count_as_absent() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":null}}"#,
            r#"{"index":0,"id":"","function":{"name":"","arguments":"{}"}}"#,
            r#"{"index":0,"id":null,"function":{"name":null,"arguments":""}}"#,
            r#"{"index":0,"id":"","function":{"arguments":null}}"#,
            r#"{"index":1,"id":"","function":{"arguments":null}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {}
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "add" function {} complete"#],
    );
}

#[test]
fn t12_t30_t32_id_type_and_function_may_come_later() {
    check(
        &calls(&[
            r#"{"index":0,"function":{"name":"add"}}"#,
            r#"{"index":0,"function":{"arguments":"{"}}"#,
            r#"{"index":0,"id":"c1","type":null,"function":{"arguments":"}"}}"#,
            r#"{"index":1,"id":"c2"}"#,
            r#"{"index":1,"function":{"name":"mul","arguments":"{}"}}"#,
        ]),
        r#"
        |+0 #0 - "add" function
        | 0 {
        | 0 }
        |+1 #1 c2 "mul" function
        | 1 {}
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c1 "add" function {} complete"#,
            r#"#1 c2 "mul" function {} complete"#,
        ],
    );
}

#[test]
fn t13_a_missing_id_is_a_status_and_no_id_is_invented() {
    check(
        &calls(&[r#"{"index":0,"function":{"name":"add","arguments":"{}"}}"#]),
        r#"
        |+0 #0 - "add" function
        | 0 {}
        |   =tool_calls
        |.0 missing_id"#,
        &[r##"#0 - "add" function {} missing_id"##],
    );
}

#[test]
fn t14_one_id_on_two_indices_is_two_calls_if_it_has_a_name() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c","function":{"name":"add","arguments":"{}"}}"#,
            r#"{"index":1,"id":"c","function":{"name":"add","arguments":"["}}"#,
            r#"{"index":1,"id":"c","function":{"arguments":"]"}}"#,
            r#"{"index":7,"id":"c","function":{"arguments":" "}}"#,
        ]),
        r#"
        |+0 #0 c "add" function
        | 0 {}
        |+1 #1 c "add" function
        | 1 [
        | 1 ]
        | 1  
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c "add" function {} complete"#,
            r#"#1 c "add" function []  complete"#,
        ],
    );
}
