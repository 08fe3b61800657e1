#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| unbraid_adversarial::targets::records(input));
