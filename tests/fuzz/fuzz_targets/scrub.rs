//! Scrubbing is idempotent, and a text grows by no more than its placeholders.

#![no_main]

use hearback_scrub::REMOVED;
use hearback_scrub::{scrub, scrub_json};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let once = scrub(&text);
    assert_eq!(scrub(&once), once);
    assert!(once == REMOVED || once.len() <= 4 * text.len(), "{once}");

    if let Ok(mut value) = serde_json::from_slice::<Value>(input) {
        scrub_json(&mut value);
        let once = value.clone();
        scrub_json(&mut value);
        assert_eq!(value, once);
    }
});
