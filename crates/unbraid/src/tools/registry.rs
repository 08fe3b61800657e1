//! `Tool` and `Tools`: functions with the descriptions that a model reads.

use std::{fmt, future::Future, sync::Arc};

use futures::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use unbraid_core::{BoxError, JsonErrorKind, ToolCall, json::Repair};

/// Why a tool has no output.
pub(super) enum Failure {
    Arguments(JsonErrorKind),
    Tool(BoxError),
}

/// The text of a tool's output.
type Output = BoxFuture<'static, Result<String, Failure>>;

type Function = dyn Fn(&ToolCall, Option<Repair>) -> Output + Send + Sync;

/// A function that a model may call: its name, its description, the JSON schema of its arguments, and an async function.
///
/// The output is any type that serializes. A string is given to the model as it is, and any other value as JSON.
///
/// An error of the function reaches the model only as the sentence that the tool failed, because an error may contain
/// paths, queries or keys. To let the model read a message, return a [`VisibleError`](super::VisibleError).
///
/// `Debug` prints the name. A clone is the same tool.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid::tools::{Tool, VisibleError};
///
/// let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } }, "required": ["a"] });
/// let root = Tool::new("root", "The square root.", schema, async |arguments: serde_json::Value| {
///     let number = arguments["a"].as_f64().ok_or_else(|| VisibleError::new("a is not a number"))?;
///     Ok::<_, VisibleError>(number.sqrt())
/// });
/// assert_eq!((root.name(), root.description()), ("root", "The square root."));
/// assert_eq!(root.definition()["type"], "function");
/// ```
#[derive(Clone)]
pub struct Tool {
    name: Arc<str>,
    description: Arc<str>,
    /// The schema of the arguments; `None` for a custom tool, whose input is text.
    parameters: Option<Arc<Value>>,
    function: Arc<Function>,
}

impl Tool {
    /// Creates a tool from a schema and a function whose arguments can be deserialized.
    ///
    /// The schema is sent as it is, and the arguments are not checked against it: they must only fit the type `A`.
    ///
    /// # Examples
    ///
    /// See [`Tool`].
    #[must_use]
    pub fn new<A, F, R, T, E>(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        parameters: Value,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize + 'static,
        E: Into<BoxError> + 'static,
    {
        let run = move |call: &ToolCall, repair: Option<Repair>| -> Output {
            let arguments = match repair {
                Some(allowed) => call.parse_repaired::<A>(allowed),
                None => call.parse::<A>(),
            };
            match arguments {
                Ok(arguments) => Box::pin(output(function(arguments))),
                Err(kind) => Box::pin(async { Err(Failure::Arguments(kind)) }),
            }
        };
        Self {
            name: name.into(),
            description: description.into(),
            parameters: Some(Arc::new(parameters)),
            function: Arc::new(run),
        }
    }

    /// Creates a tool whose schema is derived from the type of its arguments. Only with the feature `schemars`.
    ///
    /// The schema contains the documentation of the type and its fields. Types that are not recursive are inlined, because
    /// not every server follows references.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde::Deserialize;
    /// use unbraid::tools::{Tool, VisibleError, schemars::{self, JsonSchema}};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Place {
    ///     /// The name of a city.
    ///     city: String,
    /// }
    ///
    /// let tool = Tool::typed("weather", "The weather in a city.", async |place: Place| {
    ///     Ok::<_, VisibleError>(format!("rain in {}", place.city))
    /// });
    /// let parameters = &tool.definition()["function"]["parameters"];
    /// assert_eq!(parameters["properties"]["city"]["description"], "The name of a city.");
    /// assert_eq!(parameters["required"], serde_json::json!(["city"]));
    /// ```
    #[cfg(feature = "schemars")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
    #[must_use]
    pub fn typed<A, F, R, T, E>(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + schemars::JsonSchema,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize + 'static,
        E: Into<BoxError> + 'static,
    {
        Self::new(name, description, schema_of::<A>(), function)
    }

    /// Creates a custom tool, whose input is text and not JSON (T31).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::tools::{Tool, VisibleError};
    ///
    /// let tool = Tool::custom("sql", "Runs a query.", async |query: String| {
    ///     Ok::<_, VisibleError>(format!("{} bytes", query.len()))
    /// });
    /// assert_eq!(tool.definition()["type"], "custom");
    /// ```
    #[must_use]
    pub fn custom<F, R, T, E>(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        function: F,
    ) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize + 'static,
        E: Into<BoxError> + 'static,
    {
        let run = move |call: &ToolCall, _: Option<Repair>| -> Output {
            Box::pin(output(function(call.arguments.clone())))
        };
        Self {
            name: name.into(),
            description: description.into(),
            parameters: None,
            function: Arc::new(run),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the tool does, in words for the model.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The entry of the tool in a request's `tools`.
    #[must_use]
    pub fn definition(&self) -> Value {
        let (name, description) = (self.name(), self.description());
        match self.parameters.as_deref() {
            Some(parameters) => json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": parameters },
            }),
            None => {
                json!({ "type": "custom", "custom": { "name": name, "description": description } })
            }
        }
    }

    /// Starts the function. It may panic: the conversion of the arguments and the function are foreign code.
    pub(super) fn start(&self, call: &ToolCall, repair: Option<Repair>) -> Output {
        (self.function)(call, repair)
    }
}

/// The text of a function's output.
async fn output<T: Serialize, E: Into<BoxError>>(
    function: impl Future<Output = Result<T, E>> + Send,
) -> Result<String, Failure> {
    let output = function
        .await
        .map_err(|error| Failure::Tool(error.into()))?;
    // Not by way of a `Value`, which widens an `f32` and refuses a `u128`.
    let text = serde_json::to_string(&output).map_err(|error| Failure::Tool(error.into()))?;
    // The model reads a string as it is.
    Ok(serde_json::from_str::<String>(&text).unwrap_or(text))
}

#[cfg(feature = "schemars")]
fn schema_of<A: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title"); // the name of a Rust type, which means nothing to the model
    schema.to_value()
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A set of tools, by name.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid::tools::{Tool, Tools, VisibleError};
///
/// let time = Tool::new("time", "The time.", json!({ "type": "object" }), async |_: serde_json::Value| {
///     Ok::<_, VisibleError>("noon")
/// });
/// let mut tools = Tools::new().with(time.clone());
/// tools.add(time); // replaces the tool of the same name
/// assert!(tools.get("time").is_some() && tools.get("date").is_none());
/// assert_eq!(tools.iter().count(), 1);
/// let body = json!({ "model": "m", "messages": [], "tools": tools.definitions() });
/// assert_eq!(unbraid::tool_names(&body).len(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Tools {
    tools: Vec<Tool>,
}

impl Tools {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, as [`add`](Self::add).
    #[must_use]
    pub fn with(mut self, tool: Tool) -> Self {
        self.add(tool);
        self
    }

    /// Adds a tool. It replaces a tool of the same name.
    pub fn add(&mut self, tool: Tool) {
        match self.tools.iter_mut().find(|known| known.name == tool.name) {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| &*tool.name == name)
    }

    /// All tools, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }

    /// The value of `tools` in a request: `request.tools(tools.definitions())` with the `Request` of `unbraid-http`.
    #[must_use]
    pub fn definitions(&self) -> Vec<Value> {
        self.iter().map(Tool::definition).collect()
    }
}
