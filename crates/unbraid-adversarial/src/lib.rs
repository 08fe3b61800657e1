//! Adversarial inputs for unbraid, shared by the tests, the fuzzers and the soak test.
//!
//! [`targets`] contains the functions that the fuzzers in `fuzz/` run. They also run on stable Rust, with inputs that
//! [`mutate`] derives from [`seeds`]. [`chunks`] generates common chunks and corrupted ones for the decoder's template
//! path, [`varying`] chunks for the typed holes of its templates, [`providers`] streams of other dialects, and [`shapes`] all
//! other chunks for its scanner. [`hostile`] generates streams that cost as much memory or time as possible, and `soak` runs
//! completions with every fault. On Unix, `chaos` kills gateways and brokers while clients read.

#[cfg(all(unix, feature = "programs"))]
pub mod chaos;
pub mod chunks;
pub mod hostile;
pub mod mutate;
pub mod providers;
pub mod seeds;
pub mod shapes;
#[cfg(feature = "programs")]
pub mod soak;
pub mod targets;
pub mod varying;
