//! What the words right before a number say that it is.

use std::sync::LazyLock;

use super::glyphs::{Glyphs, is_unspaced};
use crate::hash::FastMap;

/// What a word says of the number behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// A telephone number.
    Phone,
    /// Perhaps one: "call", "text".
    Contact,
    /// The number of a citizen.
    Citizen,
    /// The number of a thing: an order, a book.
    Thing,
    /// A version, or a of a document.
    Version,
}

/// How far before a number is looked, in glyphs, and how many words.
const LOOK: usize = 40;
const WORDS: usize = 4;

const HINTS: [(Hint, &str); 5] = [
    (
        Hint::Phone,
        " tel tél telephone phone phones mobile mob cell cellphone fax telefax whatsapp sms hotline \
         landline telefon telefonnummer handy handynummer mobil rufnummer mobilnummer téléphone \
         telephone portable teléfono telefono móvil movil celular telefone telemóvel cellulare \
         telefoon gsm телефон тел моб مобильный هاتف جوال تلفون फ़ोन फोन मोबाइल wa callto ",
    ),
    (
        Hint::Contact,
        " call text ring dial reach contact anrufen erreichbar appelez appeler llama llámame ligar \
         liga chiama chiamami bel звоните ",
    ),
    (
        Hint::Citizen,
        " ssn itin tin nino bsn pesel cpf dni nif aadhaar aadhar personnummer cpr \
         steueridentifikationsnummer sozialversicherungsnummer снилс ",
    ),
    (
        Hint::Thing,
        " order orders invoice ticket ref reference tracking id ids isbn issn ean sku serial \
         booking shipment parcel epoch timestamp bestellung \
         bestellnummer auftrag rechnung sendung sendungsnummer artikel commande facture colis pedido \
         factura ordine fattura заказ ",
    ),
    (
        Hint::Version,
        " v ver version versions versión versão versione версия release build rev revision firmware \
         section sections chapter clause paragraph abschnitt kapitel § §§ ",
    ),
];

/// The same in scripts that are written without spaces.
const UNSPACED: [(Hint, &[&str]); 4] = [
    (
        Hint::Phone,
        &[
            "电话",
            "手机",
            "手機",
            "電話",
            "携帯",
            "热线",
            "전화",
            "휴대폰",
            "연락처",
            "โทร",
        ],
    ),
    (
        Hint::Citizen,
        &["身份证", "身分證", "マイナンバー", "주민등록"],
    ),
    (
        Hint::Thing,
        &[
            "订单", "訂單", "单号", "單號", "编号", "注文", "伝票", "주문", "송장",
        ],
    ),
    (Hint::Version, &["版本", "バージョン", "버전"]),
];

/// What the nearest telling word before a position says; words of the same line only.
pub(super) fn nearest(glyphs: &Glyphs, at: usize) -> Option<Hint> {
    let from = at.saturating_sub(LOOK);
    // Half a word is none: "phone" of "microphone".
    let whole =
        |from: usize| !glyphs.before(from, 1).is_alphanumeric() || is_unspaced(glyphs.at(from));
    let from = (from..at).find(|from| whole(*from)).unwrap_or(at);
    let lower: String = glyphs
        .chars(from..at)
        .flat_map(char::to_lowercase)
        .collect();
    // A placeholder that stands there already says nothing of what follows it.
    let lower = lower.replace("phone]", "]").replace("ssn]", "]");
    // Neither word alone says it: "social media", "security update", "order number".
    let lower = lower
        .replace("social security", "ssn")
        .replace("social insurance", "ssn")
        .replace("my number", "phone")
        .replace("meine nummer", "phone")
        .replace("mon numéro", "phone")
        .replace("mi número", "phone");
    let line = lower.rsplit('\n').next().unwrap_or_default();
    let of_word = |character: char| {
        character.is_alphanumeric() || matches!(character, '§' | '\u{93c}' | '\u{900}'..='\u{94f}')
    };
    line.rsplit(|character| !of_word(character))
        .filter(|word| !word.is_empty())
        .take(WORDS)
        .find_map(hint)
}

/// What the word that touches a number before its mark says: `Tel.` in `Tel.030`.
pub(super) fn attached(glyphs: &Glyphs, mark: usize) -> Option<Hint> {
    let from = mark.saturating_sub(LOOK);
    let word: Vec<char> = glyphs
        .chars(from..mark)
        .rev()
        .take_while(|glyph| glyph.is_alphanumeric())
        .collect();
    let word: String = word
        .into_iter()
        .rev()
        .flat_map(char::to_lowercase)
        .collect();
    hint(&word)
}

fn hint(word: &str) -> Option<Hint> {
    static BY_WORD: LazyLock<FastMap<&str, Hint>> = LazyLock::new(|| {
        let words = |(hint, list): (Hint, &'static str)| {
            list.split_ascii_whitespace().map(move |word| (word, hint))
        };
        HINTS.into_iter().flat_map(words).collect()
    });
    let spaced = BY_WORD.get(word).copied();
    if word.is_ascii() {
        return spaced;
    }
    spaced.or_else(|| {
        let last = |words: &[&str]| words.iter().filter_map(|part| word.rfind(part)).max();
        let found = UNSPACED
            .iter()
            .filter_map(|(hint, words)| Some((last(words)?, *hint)));
        found.max_by_key(|(at, _)| *at).map(|(_, hint)| hint)
    })
}
