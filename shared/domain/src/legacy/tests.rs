//! What the old rows may hold, and that nothing in them is believed to be well-formed.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The source's example as JSON.
const JSON: &str = r#"{"turn_id": "turn_1762441078644_qp8d27", "text": "It was my issue.",
    "confidence": 1.0, "ts": "2025-11-06T17:47:02.162904Z", "reaction": "ok", "origin": "user"}"#;

fn expected() -> LegacyReaction {
    LegacyReaction {
        turn_id: "turn_1762441078644_qp8d27".to_owned(),
        text: "It was my issue.".to_owned(),
        confidence: 1.0,
        ts: "2025-11-06T17:47:02.162904Z".parse().unwrap(),
        reaction: Some(Reaction::Ok),
        origin: Origin::User,
    }
}

/// A row whose only interesting part is one member.
fn with(member: &str) -> Option<LegacyReaction> {
    reaction(&format!(
        "{{'turn_id': 't', 'ts': '2025-11-06T17:47:02Z', 'reaction': None, {member}}}"
    ))
}

/// A string as Python's `repr` prints it.
fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for character in text.chars() {
        let code = u32::from(character);
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            same if same == quote => write!(out, "\\{same}").unwrap(),
            ' '..='~' | 'à'..='ÿ' => out.push(character),
            _ if code <= 0xFF => write!(out, "\\x{code:02x}").unwrap(),
            _ if code <= 0xFFFF => write!(out, "\\u{code:04x}").unwrap(),
            _ => write!(out, "\\U{code:08x}").unwrap(),
        }
    }
    out.push(quote);
    out
}

#[test]
fn json_and_what_python_prints_tell_the_same() {
    let python = "{'turn_id': 'turn_1762441078644_qp8d27', 'text': 'It was my issue.', \
        'confidence': 1.0, 'ts': '2025-11-06T17:47:02.162904Z', 'reaction': 'ok', \
        'origin': 'user'}";
    assert_eq!(reaction(JSON), Some(expected()));
    assert_eq!(reaction(python), Some(expected()));
}

#[test]
fn a_header_before_the_dict_is_skipped() {
    let text = format!("[turn.log.reaction] A – user\n{JSON}\n");
    assert_eq!(reaction(&text), Some(expected()));
    assert_eq!(reaction(&format!("{JSON} and more")), None);
}

#[test]
fn the_dict_of_an_artifact_stands_under_reaction() {
    let nested = format!(r#"{{"reaction": {JSON}, "meta": {{"track_id": "A"}}}}"#);
    assert_eq!(reaction(&nested), Some(expected()));
    let python = "{'reaction': {'turn_id': 't', 'ts': '2025-11-06T18:47:02+01:00', \
        'reaction': None}, 'meta': {'rn': ('ef', 1, -2.5e3,), 'kind': [], 'on': True, 3: (4)}}";
    let cleared = reaction(python).unwrap();
    assert_eq!(cleared.reaction, None);
    assert_eq!(
        cleared.ts,
        "2025-11-06T17:47:02Z".parse::<DateTime<Utc>>().unwrap()
    );
}

#[test]
fn what_may_be_left_out_has_its_default() {
    for bare in [with(""), with("'text': None, 'origin': None,")] {
        let bare = bare.unwrap();
        assert_eq!(
            (bare.text.as_str(), bare.confidence, bare.origin),
            ("", 1.0, Origin::User)
        );
    }
    let machine = with("'confidence': 0.8, 'origin': 'machine'").unwrap();
    assert_eq!((machine.confidence, machine.origin), (0.8, Origin::Machine));
}

#[test]
fn what_is_missing_or_wrong_is_no_reaction() {
    for wrong in [
        "'text': 1",
        "'confidence': 'high'",
        "'confidence': 1.5",
        "'confidence': True",
        "'origin': 'admin'",
        "'ts': '2025-11-06T17:47:02'",
        "'turn_id': ''",
        "'reaction': 'great'",
    ] {
        assert_eq!(with(wrong), None, "{wrong}");
    }
    for text in [
        "",
        "# Turn log",
        "{}",
        "{'turn_id': 't', 'ts': '2025-11-06T17:47:02Z'}",
        "{'turn_id': 't', 'reaction': 'ok'}",
        "{'ts': '2025-11-06T17:47:02Z', 'reaction': 'ok'}",
        "{'turn_id': 't', 'ts': '2025-11-06T17:47:02Z', 'reaction': 'ok'",
    ] {
        assert_eq!(reaction(text), None, "{text}");
    }
}

#[test]
fn escapes_are_pythons() {
    let text = with(r#"'text': 'It\'s "1\\2"\n\xe9\u20ac\U0001f642\ud83d\/'"#);
    assert_eq!(
        text.unwrap().text,
        "It's \"1\\2\"\né€🙂\u{fffd}\\/".to_owned()
    );
    assert_eq!(with(r#""text": "It's""#).unwrap().text, "It's");
    for wrong in [
        r"'text': '\xg0'",
        r"'text': '\U00110000'",
        r"'text': '\u12'",
        "'text': 'a\nb'",
    ] {
        assert_eq!(with(wrong), None, "{wrong}");
    }
}

#[test]
fn depth_is_bounded_and_not_by_the_stack() {
    let deep = |open: &str, times: usize| {
        let text = format!("{{'a': {}", open.repeat(times));
        Python::read(&text)
    };
    for open in ["[", "(", "{'a':", "{("] {
        assert_eq!(deep(open, 1_000_000), None);
    }
    assert_eq!(reaction(&"{\"a\":[".repeat(100_000)), None);
    let nested = |times: usize| format!("{}{}", "[".repeat(times), "]".repeat(times));
    assert!(Python::read(&nested(MAX_DEPTH)).is_some());
    assert!(Python::read(&nested(MAX_DEPTH + 1)).is_none());
}

#[test]
fn values_are_read_as_json_has_them() {
    let value = Python::read(
        "{'i': -7, 'f': .5, 'big': 123456789012345678901234567890, 'e': 1e-05, 't': (1, (2)), \
         'none': (), None: False, 'same': 1, 'same': 2}",
    );
    assert_eq!(
        value,
        Some(json!({
            "i": -7, "f": 0.5, "big": 123_456_789_012_345_678_901_234_567_890.0_f64, "e": 1e-5,
            "t": [1, 2], "none": [], "null": false, "same": 2
        }))
    );
    for wrong in [
        "1e999", "nan", "1-", "[1 2]", "[,]", "{1, 2}", "{[]: 1}", "'a", "null",
    ] {
        assert_eq!(Python::read(wrong), None, "{wrong}");
    }
}

/// Any text, control characters and all.
fn any_text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..64).prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any_text()) {
        let _ = reaction(&text);
        let _ = reaction(&format!("{{{text}"));
        with(&text);
    }

    #[test]
    fn no_text_of_its_own_alphabet_makes_it_panic(
        text in r#"(\{|\}|\[|\]|\(|\)|'|"|\\|:|,|x|u|U|None|True|[0-9a-f]|e|\.|-| |\n|é)*"#
    ) {
        let _ = reaction(&format!("{{{text}"));
        with(&format!("'text': {text}"));
        with(&format!("'text': '{text}'"));
    }

    #[test]
    fn any_text_that_python_printed_comes_back(text in any_text()) {
        let read = with(&format!("'text': {}", repr(&text)));
        prop_assert_eq!(read.map(|reaction| reaction.text), Some(text));
    }
}
