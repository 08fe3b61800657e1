//! The known differences.

/// The fixtures that a library reads differently, or not at all, and why.
pub(super) const DIFFERENT: [(&str, &str); 96] = [
    (
        "cohere/gateway-a11-content-in-the-start",
        "content in the start is lost, and two messages become one",
    ),
    (
        "cohere/gateway-d13-arguments-in-the-start",
        "the library reads no answer from such starts",
    ),
    (
        "responses/gateway-d13-other-arguments-in-the-start",
        "the library has no calls without complete items",
    ),
    (
        "responses/proxy-d13-c14-halves-of-whole-values",
        "the library has no calls without complete items",
    ),
    (
        "cohere/gateway-a11-spliced-retry",
        "two messages become one",
    ),
    (
        "gemini/gemini-fields-beside-the-candidates",
        "chunks inside a response are not unwrapped",
    ),
    (
        "ollama/ollama-generated-image",
        "the chat method needs a message",
    ),
    (
        "responses/gateway-a11-begins-anew",
        "two responses become one",
    ),
    (
        "responses/gateway-a11-spliced-retry",
        "two responses become one",
    ),
    (
        "responses/gateway-p10-fewer-items-at-the-end",
        "an item that is only in the final output",
    ),
    (
        "responses/gateway-p29-one-index-for-all-items",
        "the second message at an index is lost",
    ),
    (
        "responses/openai-p24-resumed-in-a-later-part",
        "text that arrives only as a whole is not read",
    ),
    (
        "responses/openai-p17-p20-server-tool-fails",
        "a response that fails is raised",
    ),
    (
        "anthropic/gateway-a10-start-without-its-event",
        "a message that does not begin with its event is raised",
    ),
    (
        "gemini/gateway-g06-content-beside-empty-text-cut",
        "an event that is cut is raised",
    ),
    (
        "gemini/gateway-g13-empty-text-beside-content",
        "an empty call beside a text is a call without a name",
    ),
    (
        "gemini/gateway-e09-g05-null-indexes",
        "the candidates of a chunk become one",
    ),
    (
        "gemini/gateway-g09-empty-args-beside-pieces",
        "each piece of arguments is a call",
    ),
    (
        "responses/gateway-p11-log-probabilities-of-complete-texts",
        "text that arrives only as a whole is not read",
    ),
    (
        "anthropic/anthropic-a19-error-mid-stream",
        "an error of the server is raised, and the text before it is lost",
    ),
    (
        "anthropic/anthropic-a23-a24-cut-at-max-tokens",
        "the library completes arguments that were cut",
    ),
    (
        "anthropic/anthropic-a15-usage-in-the-delta",
        "usage that is not beside the delta is raised",
    ),
    (
        "anthropic/gateway-a03-a17-reason-then-pings",
        "a reason of null overwrites the reason",
    ),
    (
        "anthropic/gateway-a11-spliced-retry",
        "two messages become one",
    ),
    (
        "anthropic/gateway-a06-a08-deltas-without-content-or-type",
        "a delta of null raises an AttributeError",
    ),
    (
        "responses/gateway-p06-items-by-id-alone",
        "text that arrives only as a whole is not read",
    ),
    (
        "anthropic/gateway-a12-cut-behind-a-missing-stop",
        "a delta without a type is skipped, and a late fragment, too",
    ),
    (
        "anthropic/gateway-d09-a-name-without-an-object",
        "data that is not an object raises a TypeError",
    ),
    (
        "anthropic/gateway-d09-empty-types",
        "an event with an empty type fails an assertion",
    ),
    (
        "anthropic/gateway-a16-cut",
        "the library completes arguments that were cut",
    ),
    (
        "anthropic/gateway-a20-broken-json",
        "a broken event is raised",
    ),
    ("anthropic/gateway-d07-a26-done", "`[DONE]` is raised"),
    (
        "anthropic/proxy-d09-a01-a04-no-names-and-gaps",
        "events without names are ignored",
    ),
    (
        "anthropic/sglang-a08-a09-deltas-without-a-start",
        "a delta without a block is raised",
    ),
    (
        "anthropic/gateway-a10-reason-in-the-start-cut",
        "the reason of the start is kept, although the message is cut",
    ),
    (
        "anthropic/gateway-a10-reason-only-in-the-start",
        "the end without a reason overwrites that of the start",
    ),
    (
        "anthropic/gateway-a11-begins-anew",
        "two messages become one",
    ),
    (
        "anthropic/proxy-a08-calls-out-of-order",
        "a block is looked up by its position, not by its index",
    ),
    (
        "anthropic/proxy-a11-start-after-the-first-block",
        "a block is looked up by its position, not by its index",
    ),
    (
        "anthropic/gateway-a10-reason-in-the-start-cut-before-a-block",
        "the reason of the start is kept, although the message is cut",
    ),
    (
        "anthropic/gateway-a11-late-start-of-another-message",
        "what precedes the start is lost, and the second message is read",
    ),
    (
        "anthropic/gateway-a11-start-twice-without-indexes",
        "a block without an index is raised",
    ),
    (
        "anthropic/proxy-a21-second-start-completes-a-call",
        "a second start of a call is another call",
    ),
    (
        "anthropic/proxy-a08-a11-starts-after-the-first-delta",
        "a delta before the start of the message is lost",
    ),
    (
        "cohere/cohere-h07-cut",
        "arguments that were cut are not JSON",
    ),
    (
        "cohere/cohere-h09-v1",
        "events of the first version are ignored",
    ),
    (
        "cohere/proxy-a08-starts-out-of-order",
        "a call whose start comes late is raised",
    ),
    (
        "gemini/codeassist-g14-wrapped",
        "wrapped chunks are read as empty ones",
    ),
    ("gemini/gateway-d07-done", "`[DONE]` is raised"),
    ("gemini/gateway-g06-cut-in-done", "`[DO` is raised"),
    (
        "gemini/gemini-g06-cut-after-stop",
        "a chunk that was cut is raised",
    ),
    (
        "gemini/gemini-g06-cut-before-the-data",
        "what is left of the event is raised",
    ),
    (
        "gemini/gemini-g06-cut-after-the-only-reason",
        "a chunk that was cut is raised",
    ),
    (
        "gemini/gemini-g03-array-cut",
        "an array that was cut is raised",
    ),
    (
        "gemini/gemini-g04-g05-candidates",
        "two candidates without an index are both 0 there, and their positions here",
    ),
    (
        "gemini/gemini-g15-error",
        "an error of the server is raised",
    ),
    (
        "gemini/gemini-g16-bare-error",
        "an error of the server is raised",
    ),
    (
        "gemini/vertex-g06-stop-in-every-chunk-cut",
        "a chunk that was cut is raised",
    ),
    (
        "gemini/vertex-g09-streamed-arguments",
        "streamed arguments are dropped",
    ),
    (
        "gemini/vertex-g09-streamed-arguments-cut",
        "streamed arguments are dropped",
    ),
    (
        "gemini/vertex-g09-arguments-after-the-name",
        "each part is a call of its own",
    ),
    (
        "gemini/vertex-g09-two-open-calls",
        "each part is a call of its own",
    ),
    (
        "gemini/vertex-a08-g09-lost-start",
        "streamed arguments are dropped",
    ),
    (
        "gemini/vertex-g09-pieces-out-of-order",
        "streamed arguments are dropped",
    ),
    (
        "gemini/proxy-s16-ping-that-names-the-first-chunk",
        "an event with a name is raised",
    ),
    (
        "gemini/gateway-g08-g13-empty-members",
        "each empty call is one",
    ),
    (
        "gemini/gateway-g14-null-around-a-wrapped-chunk",
        "the wrapped chunk is not read",
    ),
    (
        "ollama/compatible-d14-call-that-was-cut",
        "log probabilities without a list are refused",
    ),
    ("ollama/ollama-generate", "the chat method needs a message"),
    ("ollama/ollama-o01-lines", "an empty line is raised"),
    (
        "ollama/ollama-o04-o05-o06-parallel-calls",
        "arguments as text are refused",
    ),
    (
        "ollama/ollama-o08-error",
        "an error of the server is raised",
    ),
    (
        "ollama/ollama-o09-line-that-is-cut",
        "a broken line is raised",
    ),
    ("ollama/ollama-o09-not-json", "a broken line is raised"),
    ("ollama/ollama-o11-load", "the chat method needs a message"),
    (
        "ollama/proxy-o14-in-an-event-stream",
        "events are not lines",
    ),
    (
        "responses/gateway-d13-lost-and-different",
        "complete values are not compared with their fragments",
    ),
    ("responses/mantle-p28-parts-counted-over-items", "the same"),
    (
        "responses/gateway-p10-partial-final-output",
        "an item that is only in the final output",
    ),
    (
        "responses/openrouter-p30-other-names",
        "unknown events are ignored, the last one among them",
    ),
    (
        "responses/vllm-p10-other-call-ids-at-the-end",
        "an item that is only in the final output",
    ),
    (
        "responses/gateway-p11-only-completed",
        "an answer that is only in the final output",
    ),
    (
        "responses/gateway-p12-only-whole-items",
        "text without deltas",
    ),
    (
        "responses/gateway-p25-call-in-its-end",
        "a call without an item",
    ),
    (
        "responses/openai-p17-error-and-failed",
        "an error of the server is raised",
    ),
    (
        "responses/openai-p17-failed",
        "an error of the server is raised",
    ),
    (
        "responses/openai-p22-p23-parallel-calls",
        "an item without its end",
    ),
    (
        "responses/codex-p06-ends-with-the-id-of-the-call",
        "calls have the order of their ends",
    ),
    (
        "responses/gateway-p10-names-only-at-the-end",
        "items that are only in the final output",
    ),
    (
        "responses/gateway-p11-equal-calls",
        "an answer that is only in the final output",
    ),
    (
        "responses/proxy-d13-whole-values-before-their-fragments",
        "complete values are not compared with their fragments",
    ),
    (
        "responses/gateway-d13-first-part-after-the-second",
        "text without deltas",
    ),
    (
        "responses/gateway-d13-part-numbers-used-again",
        "text without deltas",
    ),
    (
        "responses/gateway-p10-custom-call-only-at-the-end",
        "an item that is only in the final output",
    ),
    (
        "responses/proxy-d13-fragments-beyond-whole-values",
        "an item without its end",
    ),
    (
        "responses/gateway-p07-d13-part-numbers-used-again",
        "text without deltas",
    ),
];
