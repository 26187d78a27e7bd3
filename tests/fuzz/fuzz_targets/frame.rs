//! A frame of a client of the live feed is rejected with the members that are wrong, or read; what is read survives
//! storage.

#![no_main]

use hearback_domain::views::feed::{FeedFilter, FeedPosition};
use hearback_domain::views::live::ClientFrame;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &str| {
    match ClientFrame::parse(input) {
        Ok(frame) => {
            if let Ok(Some(after)) = frame.after() {
                assert_eq!(FeedPosition::from_event_id(&after.event_id()), Ok(after));
            }
            let filter = FeedFilter::from(frame.filter);
            let stored = serde_json::to_string(&filter).unwrap();
            let read: FeedFilter = serde_json::from_str(&stored).unwrap();
            assert_eq!(read, filter, "{stored}");
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            if let Ok(frame) = serde_json::from_str::<Value>(input) {
                for error in errors {
                    let is_there = frame.pointer(&error.pointer).is_some();
                    let is_cut = error.pointer.ends_with('…');
                    assert!(
                        is_there || is_cut || error.detail == "is required",
                        "{error:?}"
                    );
                }
            }
        }
    }
});
