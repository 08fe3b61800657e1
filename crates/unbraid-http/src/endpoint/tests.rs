use super::{ApiKey, SHORTEST_SECRET};

#[test]
fn keys_are_taken_out_and_words_are_not() {
    let long = "k".repeat(SHORTEST_SECRET);
    let key = ApiKey::new(&long).unwrap();
    assert_eq!(key.redact(&format!("<{long}> <{long}>")), "<[key]> <[key]>");
    let word = ApiKey::new(&long[1..]).unwrap();
    assert_eq!(word.redact(&long), long);
}
