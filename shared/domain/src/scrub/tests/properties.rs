//! What holds for all texts.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Pieces that the finders are about, in any order, with little between them.
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
    ];
    vec(select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

/// The numbers of a text, without what separates their digits.
fn holds(text: &str, digits: &str) -> bool {
    let plain: String = text.chars().filter(char::is_ascii_digit).collect();
    plain.contains(digits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn to_scrub_again_changes_nothing(text in any_text()) {
        let once = scrub(&text).into_owned();
        // Nothing that is made of these is given up on.
        prop_assert_ne!(&once, REMOVED);
        prop_assert_eq!(scrub(&once), once.as_str());
    }

    #[test]
    fn any_text_is_read(text in any::<String>()) {
        let once = scrub(&text).into_owned();
        prop_assert_eq!(scrub(&once), once.as_str());
    }

    #[test]
    fn a_text_grows_by_placeholders_alone(text in any_text()) {
        prop_assert!(scrub(&text).len() <= 4 * text.len() + 16);
    }

    #[test]
    fn of_a_card_no_digits_remain(
        before in "[a-z ,;(\\n]{0,6}[ ,;(\\n]",
        behind in "[ ,;)\\n.][a-z ,;\\n]{0,6}",
        gap in select(vec!["", " ", "-", "\u{a0}", "–"]),
        touching in select(vec!["", " 5500000000000004", ",DE89370400440532013000", "/+4930123456"]),
    ) {
        let card = ["4111", "1111", "1111", "1111"].join(gap);
        let scrubbed = scrub(&format!("{before}{card}{touching}{behind}")).into_owned();
        prop_assert!(!scrubbed.contains(|c: char| c.is_ascii_digit()), "{}", scrubbed);
    }

    #[test]
    fn of_two_numbers_beside_each_other_none_remains(
        first in select(vec!["4111 1111 1111 1111", "+49 30 123456", "DE89 3704 0044 0532 0130 00", "(555) 123-4567"]),
        second in select(vec!["4111-1111-1111-1111", "+15551234567", "GB82WEST12345698765432", "123-45-6789"]),
        between in select(vec![" ", ",", "; ", "\n", " / ", "|", "/", "和"]),
    ) {
        let scrubbed = scrub(&format!("{first}{between}{second}")).into_owned();
        for digits in ["11111111", "123456", "0532", "1234567", "56987654", "6789"] {
            prop_assert!(!holds(&scrubbed, digits), "{}", scrubbed);
        }
    }
}

/// Texts that a finder may look through again and again, if it does not remember.
const REPEATED: [&str; 48] = [
    "1",
    "1 ",
    "1-",
    "0",
    "01 ",
    "030 1",
    "030 ",
    "555-",
    "4111",
    "4111 ",
    "4111111111111111-",
    "123-45-6789-",
    "978-",
    "(1)",
    "+1",
    "+",
    "tel 1",
    "call ",
    "1.1.",
    "1,1,",
    "1x",
    "1 x",
    "@",
    "\"@",
    "@a",
    "a.b@",
    "x@a.b",
    "x@a.a.",
    "git@a.b:",
    "%40",
    "a%",
    "a=+@",
    "+a=@",
    "a'",
    ":",
    ".",
    "1:",
    "a:1:",
    "::1 ",
    "[::1",
    "fe80::1%a",
    "://",
    "://a:b/",
    "://a:b@",
    "DE89",
    "de 89 1",
    "1Z ",
    "aaaaaaaa-1111-",
];

#[test]
fn twice_the_text_is_twice_the_work() {
    for piece in REPEATED {
        for between in ["", "中"] {
            let text = |bytes: usize| {
                let repeated = format!("{piece}{between}");
                repeated.repeat(bytes / repeated.len())
            };
            let work = |bytes: usize| {
                let text = text(bytes);
                glyphs::work::of(|| drop(scrub(&text)))
            };
            let (once, twice) = (work(1_000), work(2_000));
            assert!(twice <= once * 5 / 2 + 2_000, "{piece:?}: {once}, {twice}");
            assert!(twice <= 2_000 * 1_000, "{piece:?}: {twice}");
        }
    }
}
