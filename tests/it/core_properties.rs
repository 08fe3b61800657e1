//! Properties of the core on made-up streams.
