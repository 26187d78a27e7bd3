//! What is replaced, and what is kept. All data is invented: domains and addresses for documentation,
//! the networks' test cards, the examples of the IBAN registry, telephone numbers of fiction.

use serde_json::json;

use super::*;

mod addresses;
mod cost;
mod kept;
mod numbers;
mod properties;
mod secrets;

/// Asserts the scrubbed form of each text.
fn check(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter(|(text, expected)| scrub(text) != *expected)
        .map(|(text, expected)| format!("{text:?}: {:?}, not {expected:?}", scrub(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Asserts that each text becomes only the placeholder, alone and within a sentence.
fn becomes(placeholder: &str, texts: &[&str]) {
    let wrong: Vec<String> = texts
        .iter()
        .flat_map(|text| {
            [
                (text.to_string(), placeholder.to_owned()),
                (format!("So: {text}."), format!("So: {placeholder}.")),
                (format!("({text}), yes"), format!("({placeholder}), yes")),
                (format!("a\n{text}\n1"), format!("a\n{placeholder}\n1")),
                (format!("请看{text}。好"), format!("请看{placeholder}。好")),
            ]
        })
        .filter(|(text, expected)| scrub(text) != *expected)
        .map(|(text, expected)| format!("{text:?}: {:?}, not {expected:?}", scrub(&text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Asserts that nothing is found in the texts, alone and within a sentence.
fn are_kept(texts: &[&str]) {
    let wrong: Vec<String> = texts
        .iter()
        .flat_map(|text| {
            [
                text.to_string(),
                format!("See {text}, please."),
                format!("({text})"),
                format!("a\n{text}\nb"),
            ]
        })
        .filter(|text| !matches!(scrub(text), Cow::Borrowed(same) if same == text))
        .map(|text| format!("{text:?}: {:?}", scrub(&text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn adjacent_kinds_are_all_replaced() {
    check(&[
        (
            "ada@example.com 192.0.2.1 4111111111111111 DE89370400440532013000 +4930123456",
            "[email] [ip] [card] [iban] [phone]",
        ),
        ("4111 1111 1111 1111 5500 0000 0000 0004", "[card] [card]"),
        (
            "4111111111111111,5500000000000004;378282246310005",
            "[card],[card];[card]",
        ),
        ("4111-1111-1111-1111-5500-0000-0000-0004", "[card]-[card]"),
        (
            "DE89370400440532013000GB82WEST12345698765432",
            "[iban][iban]",
        ),
        (
            "DE89 3704 0044 0532 0130 00 GB82 WEST 1234 5698 7654 32 4111 1111 1111 1111",
            "[iban] [iban] [card]",
        ),
        ("DE89370400440532013000/4111111111111111", "[iban]/[card]"),
        ("4111 1111 1111 1111 12/27 123", "[card] 12/27 123"),
        (
            "0171 2345678 / 030 1234567, +49 30 1234567 or 555-123-4567",
            "[phone] / [phone], [phone] or [phone]",
        ),
        (
            "postgres://ada:pw@192.0.2.1:5432/db",
            "postgres://[credentials][ip]:5432/db",
        ),
        (
            "Order 114-3941689-8772232 of ada@example.com, version 1.2.3.4 at 192.0.2.7",
            "Order 114-3941689-8772232 of [email], version 1.2.3.4 at [ip]",
        ),
    ]);
}

#[test]
fn text_without_personal_data_is_borrowed() {
    for text in ["", "no", "Not 5 but 7!", "価格は1,200円です", "a@b", "::"] {
        assert!(matches!(scrub(text), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn all_strings_and_keys_of_json_are_scrubbed() {
    let mut value = json!({
        "mail": "ada@example.com",
        "ada@example.com": [1, {"note": "call +49 30 1234567"}, null, true],
        "card": 4_111_111_111_111_111_u64,
        "count": 42,
        "at": 1_700_000_000_000_u64,
        "share": 0.5,
    });
    scrub_json(&mut value);
    let expected = json!({
        "mail": "[email]",
        "[email]": [1, {"note": "call [phone]"}, null, true],
        "card": "[card]",
        "count": 42,
        "at": 1_700_000_000_000_u64,
        "share": 0.5,
    });
    assert_eq!(value, expected);
}
