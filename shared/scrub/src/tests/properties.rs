//! Properties of any text.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Pieces that the finders look for, in any order.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "4111111111111111",
        "4111 1111",
        " 1111 1111",
        "DE89370400440532013000",
        "DE89",
        "3704",
        "+49",
        "+1",
        "(0)",
        "(555)",
        "555",
        "123",
        "4567",
        "030",
        "00",
        "0",
        "12",
        "123456",
        "192.0.2.1",
        "2001:db8::1",
        "::",
        ":",
        ".",
        "-",
        " ",
        "  ",
        "/",
        "//",
        "://",
        "@",
        "%40",
        "%eth0",
        "[",
        "]",
        "(",
        ")",
        ",",
        "+",
        "#",
        "x",
        "ext",
        "a",
        "ada",
        "example.com",
        ".com",
        "git",
        "\n",
        "é",
        "中文",
        "电话",
        "\u{200b}",
        "\u{202a}",
        "٤",
        "１",
        "－",
        "tel",
        "call ",
        "order ",
        "version ",
        "978",
        "123-45-6789",
        "2024-01-15",
        "\"",
        "'",
        "=",
        "_",
        "X",
        "12345678Z",
        "550e8400-e29b-41d4-a716-446655440000",
        "[email]",
        "[phone]",
        "\\",
        "?",
        "u:p",
        "ー",
        "_4111",
        "4111_1111_1111_1111",
        "4111,1111,",
        "86095742719",
        "steuer-id ",
        "612345678",
        "15551234567",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOi",
        ".eyJzdWIiOi",
        "Bearer ",
        "Authorization: Basic ",
        "YWRhOmxvdmVsYWNl",
        "?token=",
        "&",
        "PASSWORD=",
        "-----BEGIN ",
        "-----END ",
        "PRIVATE KEY-----",
        "[secret]",
        "[tax-id]",
    ];
    vec(select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

/// Whether a text has these letters and digits, whatever is between them.
fn holds(text: &str, digits: &str) -> bool {
    let glyphs = Glyphs::read(text);
    let plain = glyphs.chars(0..glyphs.len());
    let plain: String = plain.filter(char::is_ascii_alphanumeric).collect();
    plain.contains(digits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn scrubbing_is_idempotent(text in any_text()) {
        let once = scrub(&text).into_owned();
        // No text of these pieces exceeds the budget.
        prop_assert_ne!(&once, REMOVED);
        prop_assert_eq!(scrub(&once), once.as_str());
    }

    #[test]
    fn any_text_is_scrubbed_without_panic(text in any::<String>()) {
        let once = scrub(&text).into_owned();
        prop_assert_eq!(scrub(&once), once.as_str());
    }

    #[test]
    fn scrubbed_text_has_a_bounded_length(text in any_text()) {
        prop_assert!(scrub(&text).len() <= 4 * text.len() + 16);
    }

    #[test]
    fn card_digits_are_removed(
        before in "[a-z ,;(\\n]{0,6}[ ,;(\\n]",
        after in "[ ,;)\\n.][a-z ,;\\n]{0,6}",
        gap in select(vec!["", " ", "-", "\u{a0}", "–"]),
        touching in select(vec!["", " 5500000000000004", ",DE89370400440532013000", "/+4930123456"]),
    ) {
        let card = ["4111", "1111", "1111", "1111"].join(gap);
        let scrubbed = scrub(&format!("{before}{card}{touching}{after}")).into_owned();
        prop_assert!(!scrubbed.contains(|c: char| c.is_ascii_digit()), "{}", scrubbed);
    }

    #[test]
    fn adjacent_numbers_are_both_removed(
        first in select(vec!["4111 1111 1111 1111", "+49 30 123456", "DE89 3704 0044 0532 0130 00", "(555) 123-4567"]),
        second in select(vec!["4111-1111-1111-1111", "+15551234567", "GB82WEST12345698765432", "123-45-6789"]),
        between in select(vec![" ", ",", "; ", "\n", " / ", "|", "/", "和"]),
    ) {
        let scrubbed = scrub(&format!("{first}{between}{second}")).into_owned();
        for digits in ["11111111", "123456", "0532", "1234567", "56987654", "6789"] {
            prop_assert!(!holds(&scrubbed, digits), "{}", scrubbed);
        }
    }

    #[test]
    fn planted_value_is_removed((kind, planted, core) in any_planted(), around in any_surroundings()) {
        let (before, after) = around;
        let text = format!("{before}{planted}{after}");
        let scrubbed = scrub(&text).into_owned();
        prop_assert!(scrubbed.contains(kind), "{text:?}: {scrubbed:?}");
        prop_assert!(!holds(&scrubbed, &core), "{text:?}: {scrubbed:?}");
        prop_assert_eq!(scrub(&scrubbed), scrubbed.as_str());
    }

    #[test]
    fn two_planted_values_are_both_removed(
        (_, first, one) in any_planted(),
        (_, second, two) in any_planted(),
        between in select(vec![" ", "\n", " and ", "; ", " | ", "。", " - ", "\t"]),
    ) {
        let text = format!("{first}{between}{second}");
        let scrubbed = scrub(&text).into_owned();
        prop_assert!(!holds(&scrubbed, &one) && !holds(&scrubbed, &two), "{text:?}: {scrubbed:?}");
        prop_assert_eq!(scrub(&scrubbed), scrubbed.as_str());
    }
}

/// Sixteen digits with a valid check digit.
fn any_card() -> impl Strategy<Value = String> {
    "4[0-9]{14}".prop_map(|digits| {
        let valid = |check: &u8| {
            let whole: Vec<u8> = format!("{digits}{check}")
                .bytes()
                .map(|b| b - b'0')
                .collect();
            digits::luhn(&whole)
        };
        let check = (0..10).find(valid).unwrap();
        format!("{digits}{check}")
    })
}

/// The digits of a number in groups.
fn grouped(digits: &str, lengths: &[usize], gap: &str) -> String {
    let mut rest = digits;
    let mut groups = Vec::new();
    for length in lengths {
        let (group, after) = rest.split_at(*length);
        groups.push(group);
        rest = after;
    }
    groups.join(gap)
}

/// The placeholder of a kind, a value to plant, and the part of it that must be removed.
fn any_planted() -> impl Strategy<Value = (&'static str, String, String)> {
    let gap = select(vec!["", " ", "-", "/", "_", ",", ", ", "ー", "\u{a0}", "–"]);
    let cards = (any_card(), gap)
        .prop_map(|(digits, gap)| ("[card]", grouped(&digits, &[4, 4, 4, 4], gap), digits));
    let gap = select(vec!["", " ", "-", "_", "ー", "/", "."]);
    let signed = ("15[0-9]", "[1-9][0-9]{7}", gap)
        .prop_map(|(net, rest, gap)| ("[phone]", format!("+49{gap}{net}{gap}{rest}"), rest));
    let gap = select(vec!["-", "ー", "－"]);
    let japanese = ("[789]", "[1-9][0-9]{3}", "[0-9]{4}", gap, any::<bool>());
    let japanese = japanese.prop_map(|(net, area, rest, gap, wide)| {
        let written = format!("0{net}0{gap}{area}{gap}{rest}");
        let widen = |c: char| match c {
            '0'..='9' => char::from_u32(u32::from(c) + 0xfee0).unwrap(),
            _ => c,
        };
        let written = if wide {
            written.chars().map(widen).collect()
        } else {
            written
        };
        ("[phone]", written, format!("{area}{rest}"))
    });
    let plain = prop_oneof!["[67]1[0-9]{7}", "1[34578][0-9]{9}", "0[1-9]1[0-9]{6}"];
    // Some happen to be taxpayer numbers.
    let plain = plain.prop_map(|digits| ("]", digits.clone(), digits));
    let token = (
        select(vec![
            "AKIA",
            "ghp_",
            "github_pat_",
            "xoxb-",
            "glpat-",
            "sk_live_",
            "eyJhbGciOi.eyJ",
            "?token=",
            "?a=1&password=",
            "Authorization: Bearer ",
        ]),
        "[A-Z0-9]{20,36}",
    );
    let token = token.prop_map(|(prefix, rest)| ("[secret]", format!("{prefix}{rest}"), rest));
    let email =
        "[a-z]{3,8}[0-9]{4}".prop_map(|name| ("[email]", format!("{name}@example.com"), name));
    prop_oneof![cards, signed, japanese, plain, token, email]
}

/// What precedes and follows: words that give no hint, and punctuation.
fn any_surroundings() -> impl Strategy<Value = (String, String)> {
    let word = select(vec![
        "so", "hello", "please", "это", "说", "です", "naïve", "Grüße", "the end", "2 of 3",
    ]);
    let before = (
        word.clone(),
        select(vec![
            " ", ": ", "\n", " (", " \"", " '", ", ", "\t", "。", " <", "* ", "> ",
        ]),
    );
    let after = (
        select(vec![
            " ", ". ", "\n", ") ", "\" ", "' ", ", ", "; ", "\t", "。", "> ", "! ", "? ",
        ]),
        word,
    );
    (before, after).prop_map(|((a, b), (c, d))| (format!("{a}{b}"), format!("{c}{d}")))
}
