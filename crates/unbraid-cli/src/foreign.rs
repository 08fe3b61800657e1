//! What JSON without any choice appears to be: the answer of another API.

/// Names the API whose answer the first bytes appear to be.
///
/// It is a guess for a message, never a reason to read the stream otherwise.
pub(crate) fn api(head: &[u8]) -> Option<&'static str> {
    let text: String = String::from_utf8_lossy(head).split_whitespace().collect();
    let known = |(_, marks): &&Marks| {
        let has_all = |marks: &&[&str]| marks.iter().all(|mark| text.contains(mark));
        marks.iter().any(has_all)
    };
    APIS.iter().find(known).map(|(name, _)| *name)
}

/// An API, and the texts of which its answers have all of one set, white space left out.
type Marks = (&'static str, &'static [&'static [&'static str]]);

const APIS: &[Marks] = &[
    (
        "an answer of Anthropic's Messages API",
        &[
            &[r#""type":"message_start""#],
            &[r#""type":"message""#, r#""role":"assistant""#],
            &[r#""type":"content_block_"#],
        ],
    ),
    (
        "an answer of OpenAI's Responses API",
        &[&[r#""type":"response."#], &[r#""object":"response""#]],
    ),
    (
        "an answer of the Gemini API",
        &[&[r#""candidates":["#], &[r#""usageMetadata":"#]],
    ),
    (
        "an answer of Ollama's own API",
        &[
            &[r#""created_at":"#, r#""message":{"#],
            &[r#""created_at":"#, r#""response":""#],
        ],
    ),
    (
        "an answer of Cohere's API",
        &[
            &[r#""type":"message-start""#],
            &[r#""event_type":"stream-"#],
        ],
    ),
    (
        "a list of the OpenAI API: of models, embeddings or others",
        &[&[r#""object":"list""#]],
    ),
];

#[cfg(test)]
mod tests {
    use super::api;

    #[track_caller]
    fn check(head: &str, expected: &str) {
        let api = api(head.as_bytes()).unwrap_or("nothing known");
        assert!(api.contains(expected), "{api}");
    }

    #[test]
    fn other_apis_are_named() {
        check(
            "event: message_start\ndata: {\"type\": \"message_start\", \"message\": {",
            "Anthropic",
        );
        check(
            "{\n  \"id\": \"msg_1\",\n  \"type\": \"message\",\n  \"role\": \"assistant\"",
            "Anthropic",
        );
        check("data: {\"type\":\"response.created\"", "Responses");
        check("[{\n  \"candidates\": [\n", "Gemini");
        check(
            "{\"model\":\"m\",\"created_at\":\"2026\",\"message\":{\"role\"",
            "Ollama",
        );
        check("{\"object\":\"list\",\"data\":[]}", "list");
        check("{\"id\":\"chatcmpl-1\",\"object\":\"chat.comp", "nothing");
    }
}
