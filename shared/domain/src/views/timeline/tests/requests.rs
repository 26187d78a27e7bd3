//! Parses requests.

use serde_json::Value;

use super::*;

#[test]
fn turns_and_cache_are_required() {
    let minimal = json!({"turn_ids": [], "cache": {"ttl_seconds": 0}});
    assert_eq!(
        Timeline::parse(&minimal),
        Ok(Timeline {
            user_id: None,
            turn_ids: Vec::new(),
            last_known_feedback_ts: None,
            cache: Cache {
                ttl_seconds: 0,
                last_touch: None
            },
            blocks: Vec::new(),
        })
    );
    let offset = json!({
        "turn_ids": ["t"], "last_known_feedback_ts": "2025-11-06T19:30:00+01:30",
        "cache": {"ttl_seconds": 300, "last_touch": null},
        "blocks": [{"path": "ar:t.feedback.user", "meta": {"confidence": "?"}, "kind": 1}]
    });
    let offset = Timeline::parse(&offset).unwrap();
    assert_eq!(offset.last_known_feedback_ts, Some(at(NOW)));
    assert_eq!(offset.blocks[0].digest, None);
}

#[test]
fn every_invalid_member_is_reported_with_its_pointer() {
    let errors = |body: Value| -> Vec<String> {
        let errors = Timeline::parse(&body).unwrap_err();
        let mut errors: Vec<_> = errors.into_iter().map(|error| error.pointer).collect();
        errors.sort();
        errors
    };
    assert_eq!(
        errors(json!({
            "turn_ids": ["t", "", 3], "last_known_feedback_ts": "2025-11-06T17:47:02",
            "cache": {"ttl_seconds": -1, "last_touch": "9999-12-31T23:00:00-02:00", "age": 1},
            "blocks": [{"path": 1}, {"meta": [], "hidden": "no"}, 7, {"path": "p", "meta": {"digest": 1}}],
            "turns": []
        })),
        [
            "/blocks/0/path",
            "/blocks/1/hidden",
            "/blocks/1/meta",
            "/blocks/1/path",
            "/blocks/2",
            "/blocks/3/meta/digest",
            "/cache/age",
            "/cache/last_touch",
            "/cache/ttl_seconds",
            "/last_known_feedback_ts",
            "/turn_ids/1",
            "/turn_ids/2",
            "/turns",
        ]
    );
    assert_eq!(
        errors(json!({"blocks": null})),
        ["/blocks", "/cache", "/turn_ids"]
    );
    assert_eq!(errors(json!([])), [""]);
    let many = |count| json!({"turn_ids": vec!["t"; count], "cache": {"ttl_seconds": 1}});
    assert!(Timeline::parse(&many(MAX_TURNS)).is_ok());
    assert_eq!(errors(many(MAX_TURNS + 1)), ["/turn_ids"]);
}
