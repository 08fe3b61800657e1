//! The body of a request for an answer: what the gateway needs to know of it, and its copies with a few fields changed.

mod prompts;

use std::{
    borrow::Cow,
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use serde_json::{Value, value::RawValue};
use unbraid_http::internal::seed_of;

use self::prompts::Prompts;
use crate::{
    api_error::ApiError,
    bodies::{BodyMemory, HeldBytes},
    fields::Fields,
    limits::{MAX_MODEL_NAME, MAX_PROMPTS},
};

/// A request, with the raw text of its fields.
pub(crate) struct CreateRequest {
    body: Bytes,
    /// The memory of the body, its fields and its prompts.
    held: HeldBytes,
    fields: Fields,
    /// The body for any one choice, if all have the same: without a field that asks for usage, and with it.
    single: [OnceLock<Bytes>; 2],
    /// Whether the upstream has refused the field that asks for usage.
    omits_usage: AtomicBool,
    is_stream: bool,
    n: Option<u32>,
    /// How many choices a server could take `n` for.
    most: u32,
    model: Option<String>,
    prompts: Vec<Box<RawValue>>,
    wants_usage: bool,
}

impl CreateRequest {
    /// Only a request for `text` has prompts. The memory that is held is that of the body and of its fields.
    pub(crate) fn parse(body: Bytes, mut held: HeldBytes, is_text: bool) -> Result<Self, ApiError> {
        let text = std::str::from_utf8(&body).map_err(|_| ApiError::INVALID_JSON)?;
        let fields: Fields = serde_json::from_str(text).map_err(|_| ApiError::INVALID_JSON)?;
        let is_stream = fields.get("stream").is_some_and(|raw| raw == "true");
        let n = fields.value("n").as_ref().and_then(number_of);
        let is_whole = |n: &f64| n.fract() == 0.0 && *n >= 0.0;
        let model = fields
            .value("model")
            .and_then(|model| model.as_str().map(str::to_owned));
        let options = fields.value("stream_options").unwrap_or_default();
        let wants_usage = options.get("include_usage") == Some(&Value::Bool(true));
        let prompts = match fields.get("prompt").filter(|_| is_text).map(Prompts::split) {
            Some(Prompts::List(prompts)) => prompts,
            Some(Prompts::TooMany) => return Err(ApiError::N_TOO_LARGE),
            None => Vec::new(),
        };
        held.add(prompts.iter().map(|prompt| prompt.get().len()).sum());
        Ok(Self {
            body,
            held,
            fields,
            single: Default::default(),
            omits_usage: AtomicBool::new(false),
            is_stream,
            n: n.filter(is_whole).map(|n| n as u32),
            most: n.map_or(0, |n| n.ceil() as u32),
            model,
            prompts,
            wants_usage,
        })
    }

    /// Where its bytes count.
    pub(crate) fn memory(&self) -> &BodyMemory {
        self.held.memory()
    }

    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.is_stream
    }

    pub(crate) fn n(&self) -> Option<u32> {
        self.n
    }

    /// Checks the number of choices: `n`, and its product with the number of prompts.
    pub(crate) fn check_choices(&self, max_n: u32) -> Result<(), ApiError> {
        let is_allowed = self.most <= max_n && self.choices() <= max_choices(max_n);
        is_allowed.then_some(()).ok_or(ApiError::N_TOO_LARGE)
    }

    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// The model as it is kept. A name of any length is sent upstream, but only one of a usual length is kept.
    pub(crate) fn model_field(&self) -> Option<String> {
        self.model
            .clone()
            .filter(|model| model.len() <= MAX_MODEL_NAME)
    }

    pub(crate) fn wants_usage(&self) -> bool {
        // The aggregate of a stream has usage, as the upstream's own answer would.
        self.wants_usage || !self.is_stream
    }

    /// The number of prompts of a text completion that has a list of them.
    pub(crate) fn prompts(&self) -> usize {
        self.prompts.len()
    }

    /// The number of choices of the answer.
    pub(crate) fn choices(&self) -> u32 {
        let prompts = u32::try_from(self.prompts.len().max(1)).unwrap_or(u32::MAX);
        self.n.unwrap_or(1).max(1).saturating_mul(prompts)
    }

    pub(crate) fn has_best_of(&self) -> bool {
        self.fields.get("best_of").is_some_and(|raw| raw != "null")
    }

    /// Whether `n` requests several choices. A request without it is never fanned out.
    pub(crate) fn has_several_choices(&self) -> bool {
        self.n.is_some_and(|n| n > 1)
    }

    /// The body for all choices, as a stream.
    pub(crate) fn whole_body(&self) -> Bytes {
        if self.is_stream {
            return self.body.clone();
        }
        let body = self.fields.encode(&self.stream_fields(), &[]);
        self.held.memory().count(body)
    }

    /// The body for one choice, as a stream: without `n`, with another seed, and with its prompt. It may wait for memory.
    pub(crate) async fn single_body(&self, index: u32) -> Bytes {
        let memory = self.held.memory();
        let has_seed = matches!(self.fields.value("seed"), Some(Value::Number(_)));
        if has_seed || self.prompts.len() > 1 {
            let copy = || self.encode_single(index);
            return memory.copy_when_room(self.body.len(), copy).await;
        }
        let [without_usage, with_usage] = &self.single;
        let single = if self.adds_usage() {
            with_usage
        } else {
            without_usage
        };
        let encode = || memory.count(self.encode_single(index));
        single.get_or_init(encode).clone()
    }

    fn encode_single(&self, index: u32) -> String {
        let mut changed = self.stream_fields();
        if let Some(Value::Number(seed)) = self.fields.value("seed") {
            let own = seed_of(&seed, index);
            if own != seed {
                changed.push(("seed", own.to_string().into()));
            }
        }
        let n = self.n.unwrap_or(1).max(1);
        if let Some(prompt) = self.prompts.get((index / n) as usize) {
            changed.push(("prompt", prompt.get().into()));
        }
        self.fields.encode(&changed, &["n"])
    }

    fn stream_fields(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        if self.is_stream {
            return Vec::new();
        }
        let mut changed = vec![("stream", Cow::Borrowed("true"))];
        if let Some(options) = self.usage_options().filter(|_| self.adds_usage()) {
            changed.push(("stream_options", options.into()));
        }
        changed
    }

    /// Whether the bodies ask for usage although the client does not: an answer without streaming has it in any case.
    pub(crate) fn adds_usage(&self) -> bool {
        !self.is_stream
            && !self.wants_usage
            && !self.omits_usage.load(Ordering::Relaxed)
            && self.usage_options().is_some()
    }

    /// The options of the stream with one that asks for usage; `None` if the client's own are not an object.
    fn usage_options(&self) -> Option<String> {
        const USAGE: &str = "include_usage";
        match self.fields.get("stream_options") {
            None | Some("null") => Some(format!(r#"{{"{USAGE}":true}}"#)),
            Some(own) => {
                let own: Fields = serde_json::from_str(own).ok()?;
                Some(own.encode(&[(USAGE, "true".into())], &[]))
            }
        }
    }

    /// The upstream does not know the field that asks for usage: no further body has it.
    pub(crate) fn omit_usage(&self) {
        self.omits_usage.store(true, Ordering::Relaxed);
    }
}

/// The most choices that one answer may have.
pub(crate) fn max_choices(max_n: u32) -> u32 {
    max_n.max(u32::try_from(MAX_PROMPTS).unwrap_or(u32::MAX))
}

/// A number, or one in quotes, which servers that coerce values accept as well (E10).
fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text
            .trim()
            .parse()
            .ok()
            .filter(|number: &f64| !number.is_nan()),
        value => value.as_f64(),
    }
}

impl fmt::Debug for CreateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateRequest")
            .field("bytes", &self.body.len())
            .field("n", &self.n)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &'static str) -> CreateRequest {
        try_parse(Bytes::from_static(body.as_bytes()), true).unwrap()
    }

    fn try_parse(body: Bytes, is_text: bool) -> Result<CreateRequest, ApiError> {
        CreateRequest::parse(body, BodyMemory::new(1 << 30).hold(0), is_text)
    }

    #[tokio::test]
    async fn usage_is_asked_for_until_the_upstream_has_refused_that() {
        let request = parse(r#"{"model":"m","n":2}"#);
        let asks = |body: Bytes| String::from_utf8_lossy(&body).contains("include_usage");
        assert!(asks(request.whole_body()) && asks(request.single_body(0).await));
        request.omit_usage();
        assert!(!asks(request.whole_body()) && !asks(request.single_body(0).await));
        assert!(!request.adds_usage());
        let own = parse(r#"{"model":"m","stream_options":{"include_usage":true}}"#);
        assert!(!own.adds_usage() && asks(own.whole_body()));
    }

    #[test]
    fn the_options_of_the_client_keep_their_place_beside_the_one_for_usage() {
        for (own, sent) in [
            (r#"{"x":1.0}"#, r#"{"x":1.0,"include_usage":true}"#),
            (r#"{"include_usage":false}"#, r#"{"include_usage":true}"#),
            ("5", "5"),
        ] {
            let body = format!(r#"{{"stream_options":{own}}}"#);
            let request = try_parse(body.into(), false).unwrap();
            let whole = request.whole_body();
            let expected = format!(r#"{{"stream_options":{sent},"stream":true}}"#);
            assert_eq!(std::str::from_utf8(&whole).unwrap(), expected);
            assert_eq!(request.adds_usage(), own != "5");
            request.omit_usage();
            let expected = format!(r#"{{"stream_options":{own},"stream":true}}"#);
            assert_eq!(
                std::str::from_utf8(&request.whole_body()).unwrap(),
                expected
            );
        }
    }

    #[test]
    fn a_body_that_is_not_an_object_is_refused() {
        for body in [
            &b"[]"[..],
            b"",
            b"1",
            b"{\"a\":",
            b"{\"a\":\"\xff\"}",
            b"{} {}",
        ] {
            let error = try_parse(Bytes::from_static(body), false).unwrap_err();
            assert_eq!(error, ApiError::INVALID_JSON);
        }
    }

    #[test]
    fn the_fields_that_matter_are_read() {
        let request =
            parse(r#"{"model":"m","n":2,"stream":true,"stream_options":{"include_usage":true}}"#);
        assert_eq!(
            (request.n(), request.model(), request.choices()),
            (Some(2), "m", 2)
        );
        assert!(request.is_stream() && request.wants_usage());
        assert_eq!(parse(r#"{"n":null}"#).n(), None);
        assert_eq!(parse(r#"{"n":3e9}"#).n(), Some(3_000_000_000));
        assert_eq!(parse(r#"{"n":99999999999}"#).n(), Some(u32::MAX));
        assert_eq!(parse(r#"{"n":"2"}"#).n(), Some(2));
        for (n, is_allowed) in [
            ("128", true),
            ("\"128\"", true),
            ("127.5", true),
            ("-1", true),
            ("\"x\"", true),
            ("null", true),
            ("129", false),
            ("\"129\"", false),
            ("\" 1e3 \"", false),
            ("128.5", false),
            ("1e300", false),
            ("\"inf\"", false),
        ] {
            let body = format!("{{\"n\":{n}}}");
            let request = try_parse(body.into(), false).unwrap();
            assert_eq!(request.check_choices(128).is_ok(), is_allowed, "{n}");
        }
        assert!(!parse(r#"{"stream":"true"}"#).is_stream());
    }

    #[test]
    fn the_body_for_one_choice_has_no_n_another_seed_and_its_own_prompt() {
        let request = parse(
            r#"{"n":2,"seed":5,"x":1.10e5,"big":123456789012345678901,"stream":true,"prompt":["a","b"]}"#,
        );
        assert_eq!(request.choices(), 4);
        assert_eq!(
            request.encode_single(3),
            r#"{"seed":8,"x":1.10e5,"big":123456789012345678901,"stream":true,"prompt":"b"}"#
        );
        assert_eq!(request.whole_body(), request.body());
        let request = parse(r#"{"n":2,"seed":18446744073709551610,"stream":true}"#);
        let body = request.encode_single(1);
        assert_eq!(body, r#"{"seed":18446744073709551611,"stream":true}"#);
        assert_eq!(parse(r#"{"prompt":[1,2]}"#).prompts(), 0);
        assert_eq!(parse(r#"{"prompt":[[1],[2]]}"#).prompts(), 2);
    }

    #[tokio::test]
    async fn choices_share_one_body_unless_theirs_differ_and_all_count() {
        for (body, is_shared) in [
            (r#"{"n":2,"prompt":["a"]}"#, true),
            (r#"{"n":2,"seed":null}"#, true),
            (r#"{"n":2,"seed":1}"#, false),
            (r#"{"prompt":["a","b"]}"#, false),
        ] {
            let memory = BodyMemory::new(1 << 30);
            let body = Bytes::from_static(body.as_bytes());
            let request = CreateRequest::parse(body, memory.hold(0), true).unwrap();
            let before = memory.bytes();
            let bodies = [request.single_body(0).await, request.single_body(1).await];
            let lengths = bodies.each_ref().map(Bytes::len);
            let counted = lengths[0] + if is_shared { 0 } else { lengths[1] };
            assert_eq!(memory.bytes() - before, counted, "{request:?}");
            assert_eq!(bodies[0] == bodies[1], is_shared);
            drop((bodies, request));
            assert_eq!(memory.bytes(), 0);
        }
    }

    #[test]
    fn the_number_of_choices_of_all_prompts_is_bounded() {
        let check = |n: u32, prompts: usize, is_text, is_allowed| {
            let prompts = vec![r#""p""#; prompts].join(",");
            let body = format!(r#"{{"n":{n},"prompt":[{prompts}]}}"#);
            let request = try_parse(body.into(), is_text);
            let checked = request.and_then(|request| request.check_choices(128));
            assert_eq!(checked.is_ok(), is_allowed, "{n} {checked:?}");
        };
        check(128, 16, true, true);
        check(1, 2048, true, true);
        check(2, 1025, true, false);
        check(1, 2049, true, false);
        check(129, 1, true, false);
        // A chat completion has no prompts, whatever the client calls one of its fields.
        check(128, 3000, false, true);
    }

    #[test]
    fn a_model_of_unusual_length_is_not_kept() {
        let model = |length: usize| {
            let body = format!(r#"{{"model":"{}"}}"#, "m".repeat(length));
            let request = try_parse(body.into(), false).unwrap();
            assert_eq!(request.model().len(), length);
            request.model_field()
        };
        assert_eq!(model(256).unwrap().len(), 256);
        assert_eq!(model(257), None);
    }

    #[test]
    fn a_stream_is_requested_where_the_client_wants_the_aggregate() {
        let request = parse(r#"{"stream":false,"a":1}"#);
        let body = request.whole_body();
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            r#"{"stream":true,"a":1,"stream_options":{"include_usage":true}}"#
        );
    }
}
