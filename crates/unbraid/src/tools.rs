//! Tools for the calls of a model: a registry of functions, and [`run_calls`], which runs the calls of one choice.
//!
//! A [`Tool`] has a name, a description, a JSON schema and an async function. [`Tools`] is a set of them: it renders their
//! [`definitions`](Tools::definitions) for the request, and finds the tool of a call. [`run_calls`] runs the calls of a
//! choice at the same time, each as soon as it is ready, and returns one [`ToolResult`] for each call.
//!
//! It is not an agent framework: the loop, the conversation and the decision when to stop are the caller's.
//!
//! # Examples
//!
//! ```
//! # use futures::stream;
//! use serde::Deserialize;
//! use serde_json::json;
//! use unbraid::{Completions, ReadyPolicy, tools::{RunLimits, Tool, Tools, VisibleError, run_calls}};
//!
//! #[derive(Deserialize)]
//! struct Place {
//!     city: String,
//! }
//!
//! async fn weather(place: Place) -> Result<String, VisibleError> {
//!     match &*place.city {
//!         "Oslo" => Ok("4 degrees, rain".to_owned()),
//!         _ => Err(VisibleError::new("no such city")), // the model reads this
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
//! let tools = Tools::new().with(Tool::new("weather", "The weather in a city.", schema, weather));
//! assert_eq!(tools.definitions()[0]["function"]["name"], "weather"); // for the request
//!
//! # let body = concat!(
//! #     r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}},{"index":1,"id":"c2","function":{"name":"rain","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
//! #     "\n\ndata: [DONE]\n\n",
//! # );
//! # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
//! let choice = Completions::from_byte_stream(bytes).first().await?;
//! let limits = RunLimits::default().with_ready(ReadyPolicy::NextCall);
//! let results = run_calls(&choice, &tools, limits).await;
//! assert_eq!(results[0].text(), "4 degrees, rain");
//! assert_eq!(results[1].text(), "error: there is no tool of this name");
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `schemars`, [`Tool::typed`](Tool) derives the schema from the type of the arguments.

mod registry;
mod result;
mod run;

pub use registry::{Tool, Tools};
pub use result::{Failed, ToolError, ToolResult, VisibleError};
pub use run::{RunLimits, run_calls};
/// The crate whose trait `JsonSchema` describes the arguments of [`Tool::typed`], in the version that this crate uses.
#[cfg(feature = "schemars")]
#[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
pub use schemars;
