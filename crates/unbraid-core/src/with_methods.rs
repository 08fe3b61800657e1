//! The one way to build an open struct outside of this crate.

/// Writes a method `with_<field>` for each field that a caller may set.
///
/// `#[non_exhaustive]` forbids struct literals in other crates, also those that end in `..Default::default()`.
macro_rules! with_methods {
    ($($method:ident($type:ty): $field:ident = |$value:ident| $set:expr;)*) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $method(mut self, $value: $type) -> Self {
            self.$field = $set;
            self
        }
    )*};
}
