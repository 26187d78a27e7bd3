//! The kind of a number, as the words before it say.

use std::ops::Range;
use std::sync::LazyLock;

use crate::glyphs::{Glyphs, is_unspaced};
use crate::{placeholder_before, steps};
use hearback_text::hash::FastMap;

/// What a word says about the number after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// A telephone number.
    Phone,
    /// Possibly a telephone number: "call", "text".
    Contact,
    /// A national identity number.
    Citizen,
    /// A taxpayer number.
    Tax,
    /// The number of an order, a book or another object.
    Thing,
    /// A version, or a section of a document.
    Version,
}

/// How far before a number words are read, in glyphs.
const LOOKBACK: usize = 40;

/// How many words are read.
const WORDS: usize = 4;

/// Longest word that gives a hint, in glyphs.
const LONGEST: usize = 28;

const HINTS: [(Hint, &str); 6] = [
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
         sozialversicherungsnummer снилс ",
    ),
    (
        Hint::Tax,
        " steueridentifikationsnummer identifikationsnummer steuerid steuernummer steueridnr idnr \
         taxid ",
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

/// Two words that give a hint that neither gives alone: "social media", "security update", "order number".
const PAIRS: [(&str, &str, Hint); 14] = [
    ("social", "security", Hint::Citizen),
    ("social", "insurance", Hint::Citizen),
    ("tax", "id", Hint::Tax),
    ("tax", "number", Hint::Tax),
    ("taxpayer", "id", Hint::Tax),
    ("taxpayer", "number", Hint::Tax),
    ("steuer", "id", Hint::Tax),
    ("steuer", "idnr", Hint::Tax),
    ("steuer", "nr", Hint::Tax),
    ("steuer", "nummer", Hint::Tax),
    ("my", "number", Hint::Phone),
    ("meine", "nummer", Hint::Phone),
    ("mon", "numéro", Hint::Phone),
    ("mi", "número", Hint::Phone),
];

/// Hints in scripts that are written without spaces.
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

/// The hint of the nearest word before a position that gives one; words of the same line only.
pub(crate) fn nearest(glyphs: &Glyphs, at: usize) -> Option<Hint> {
    let mut words = Words::before(glyphs, at);
    for _ in 0..WORDS {
        let word = words.next()?;
        let pair = words.pair(word.start);
        if let Some(hint) = pair.or_else(|| words.hint(word)) {
            return Some(hint);
        }
    }
    None
}

/// The hint of the word directly before a number and its mark: `Tel.` in `Tel.030`.
pub(crate) fn attached(glyphs: &Glyphs, mark: usize) -> Option<Hint> {
    let word = glyphs.run_back(mark, LOOKBACK, char::is_alphanumeric)..mark;
    let mut words = Words::before(glyphs, mark);
    words.write(word.clone());
    words.hint(word)
}

/// The words before a position, the last one first.
struct Words<'a> {
    glyphs: &'a Glyphs<'a>,
    /// Nothing before this is read.
    floor: usize,
    /// Everything from here on was read.
    at: usize,
    /// The current word in lower case; empty if it has a digit or is longer than every hint.
    written: String,
}

impl<'a> Words<'a> {
    fn before(glyphs: &'a Glyphs, at: usize) -> Self {
        Self {
            glyphs,
            floor: at.saturating_sub(LOOKBACK),
            at,
            written: String::new(),
        }
    }

    /// Where the next word is.
    fn next(&mut self) -> Option<Range<usize>> {
        let glyphs = self.glyphs;
        let end = loop {
            let end = glyphs.run_back(self.at, self.at - self.floor, |glyph| {
                !is_of_word(glyph) && !matches!(glyph, '\n' | ']')
            });
            self.at = end;
            // A placeholder that is already there says nothing about what follows it.
            match glyphs.before(end, 1) {
                _ if end <= self.floor => return None,
                '\n' => return None,
                ']' => self.at = placeholder_before(glyphs, end).unwrap_or(end - 1),
                _ => break end,
            }
            if self.at <= self.floor {
                return None;
            }
        };
        let mut start = glyphs.run_back(end, end - self.floor, is_of_word);
        self.at = start;
        if start == self.floor && glyphs.before(start, 1).is_alphanumeric() {
            // Part of a word gives no hint: "phone" in "microphone".
            start = glyphs.run_within(start, end - start, |glyph| !is_unspaced(glyph));
        }
        self.write(start..end);
        Some(start..end)
    }

    /// Stores the word if it may give a hint as a whole.
    fn write(&mut self, word: Range<usize>) {
        self.written.clear();
        let is_whole = |glyph: char| !glyph.is_ascii_digit();
        if word.len() > LONGEST || !self.glyphs.chars(word.clone()).all(is_whole) {
            return;
        }
        for glyph in self.glyphs.chars(word) {
            match glyph {
                _ if glyph.is_ascii() => self.written.push(glyph.to_ascii_lowercase()),
                _ => self.written.extend(glyph.to_lowercase()),
            }
        }
    }

    /// The hint of the word.
    fn hint(&self, word: Range<usize>) -> Option<Hint> {
        hint(&self.written).or_else(|| unspaced(self.glyphs, word))
    }

    /// The hint of the word that starts here together with the one before it.
    fn pair(&self, start: usize) -> Option<Hint> {
        let is_second = |(_, second, _): &&(&str, &str, Hint)| *second == self.written;
        if self.written.is_empty() || !matches!(self.glyphs.before(start, 1), ' ' | '-') {
            return None;
        }
        PAIRS.iter().find(is_second)?;
        let mut before = Self::before(self.glyphs, start - 1);
        let first = before.next()?;
        let mut pairs = PAIRS.iter();
        let pair =
            pairs.find(|(first, second, _)| *first == before.written && *second == self.written);
        pair.filter(|_| first.end + 1 == start)
            .map(|(_, _, hint)| *hint)
    }
}

fn is_of_word(glyph: char) -> bool {
    glyph.is_alphanumeric() || matches!(glyph, '§' | '\u{93c}' | '\u{900}'..='\u{94f}')
}

/// The hint of a whole word.
fn hint(word: &str) -> Option<Hint> {
    static BY_WORD: LazyLock<FastMap<&str, Hint>> = LazyLock::new(|| {
        let words = |(hint, list): (Hint, &'static str)| {
            list.split_ascii_whitespace().map(move |word| (word, hint))
        };
        HINTS.into_iter().flat_map(words).collect()
    });
    if word.is_empty() {
        return None;
    }
    steps::count(word.len());
    BY_WORD.get(word).copied()
}

/// The hint of the last part of a word that gives one, in a script without spaces.
fn unspaced(glyphs: &Glyphs, word: Range<usize>) -> Option<Hint> {
    type Parts = Vec<(&'static str, Hint)>;
    static BY_FIRST: LazyLock<FastMap<char, Parts>> = LazyLock::new(|| {
        let mut by_first = FastMap::<char, Parts>::default();
        for (hint, parts) in UNSPACED {
            for part in parts {
                for first in part.chars().take(1) {
                    by_first.entry(first).or_default().push((part, hint));
                }
            }
        }
        by_first
    });
    word.clone().rev().find_map(|at| {
        let first = glyphs.at(at);
        let parts = (!first.is_ascii())
            .then(|| BY_FIRST.get(&first))
            .flatten()?;
        let ends = |part: &str| at + part.chars().count() <= word.end;
        let known = parts
            .iter()
            .find(|(part, _)| ends(part) && glyphs.starts(at, part));
        known.map(|(_, hint)| *hint)
    })
}
