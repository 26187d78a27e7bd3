//! Old rows, valid and malformed.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A row as JSON.
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

/// Parses a row with one member besides the required ones.
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
fn json_and_the_python_repr_give_the_same_reaction() {
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
fn a_reaction_nested_in_an_artifact_is_read() {
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
fn optional_members_have_defaults() {
    for row in [with(""), with("'text': None, 'origin': None,")] {
        let reaction = row.unwrap();
        assert_eq!(
            (reaction.text.as_str(), reaction.confidence, reaction.origin),
            ("", 1.0, Origin::User)
        );
    }
    let machine = with("'confidence': 0.8, 'origin': 'machine'").unwrap();
    assert_eq!((machine.confidence, machine.origin), (0.8, Origin::Machine));
}

#[test]
fn a_row_with_a_missing_or_invalid_member_is_rejected() {
    for invalid in [
        "'text': 1",
        "'confidence': 'high'",
        "'confidence': 1.5",
        "'confidence': True",
        "'origin': 'admin'",
        "'ts': '2025-11-06T17:47:02'",
        "'turn_id': ''",
        "'reaction': 'great'",
    ] {
        assert_eq!(with(invalid), None, "{invalid}");
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
fn python_escapes_are_decoded() {
    let text = with(r#"'text': 'It\'s "1\\2"\n\xe9\u20ac\U0001f642\ud83d\/'"#);
    assert_eq!(
        text.unwrap().text,
        "It's \"1\\2\"\né€🙂\u{fffd}\\/".to_owned()
    );
    assert_eq!(with(r#""text": "It's""#).unwrap().text, "It's");
    for invalid in [
        r"'text': '\xg0'",
        r"'text': '\U00110000'",
        r"'text': '\u12'",
        "'text': 'a\nb'",
    ] {
        assert_eq!(with(invalid), None, "{invalid}");
    }
}

#[test]
fn the_nesting_depth_is_limited() {
    let deep = |open: &str, times: usize| {
        let text = format!("{{'a': {}", open.repeat(times));
        PythonLiteral::parse(&text)
    };
    for open in ["[", "(", "{'a':", "{("] {
        assert_eq!(deep(open, 1_000_000), None);
    }
    assert_eq!(reaction(&"{\"a\":[".repeat(100_000)), None);
    let nested = |times: usize| format!("{}{}", "[".repeat(times), "]".repeat(times));
    assert!(PythonLiteral::parse(&nested(MAX_DEPTH)).is_some());
    assert!(PythonLiteral::parse(&nested(MAX_DEPTH + 1)).is_none());
}

#[test]
fn python_values_become_json_values() {
    let value = PythonLiteral::parse(
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
    for invalid in [
        "1e999", "nan", "1-", "[1 2]", "[,]", "{1, 2}", "{[]: 1}", "'a", "null",
    ] {
        assert_eq!(PythonLiteral::parse(invalid), None, "{invalid}");
    }
}

/// Any text, including control characters.
fn any_text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..64).prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in any_text()) {
        let _ = reaction(&text);
        let _ = reaction(&format!("{{{text}"));
        with(&text);
    }

    #[test]
    fn arbitrary_python_tokens_do_not_panic(
        text in r#"(\{|\}|\[|\]|\(|\)|'|"|\\|:|,|x|u|U|None|True|[0-9a-f]|e|\.|-| |\n|é)*"#
    ) {
        let _ = reaction(&format!("{{{text}"));
        with(&format!("'text': {text}"));
        with(&format!("'text': '{text}'"));
    }

    #[test]
    fn any_text_survives_the_python_repr(text in any_text()) {
        let read = with(&format!("'text': {}", repr(&text)));
        prop_assert_eq!(read.map(|reaction| reaction.text), Some(text));
    }
}
