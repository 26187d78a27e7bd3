//! Which language a message is in, at the price of a look at its words.

use std::sync::LazyLock;

use super::Text;
use crate::hash::FastMap;

/// Frequent words that tell the built-in languages apart, without accents, each with the
/// languages that have it. Words that several have count for each of them.
const WORDS: &[(&str, &[&str])] = &[
    ("a", &["en", "fr", "pt"]),
    ("aber", &["de"]),
    ("about", &["en"]),
    ("ainda", &["pt"]),
    ("al", &["es"]),
    ("all", &["en"]),
    ("an", &["en"]),
    ("and", &["en"]),
    ("any", &["en"]),
    ("ao", &["pt"]),
    ("are", &["en"]),
    ("as", &["en", "fr", "pt"]),
    ("at", &["en"]),
    ("au", &["fr"]),
    ("auch", &["de"]),
    ("auf", &["de"]),
    ("aux", &["fr"]),
    ("avec", &["fr"]),
    ("be", &["en"]),
    ("been", &["en"]),
    ("bei", &["de"]),
    ("bem", &["pt"]),
    ("bien", &["es"]),
    ("bitte", &["de"]),
    ("but", &["en"]),
    ("by", &["en"]),
    ("c'est", &["fr"]),
    ("ca", &["fr"]),
    ("can", &["en"]),
    ("ce", &["fr"]),
    ("ces", &["fr"]),
    ("cette", &["fr"]),
    ("code", &["en"]),
    ("com", &["pt"]),
    ("comment", &["fr"]),
    ("como", &["es", "pt"]),
    ("con", &["es"]),
    ("could", &["en"]),
    ("cuando", &["es"]),
    ("d'un", &["fr"]),
    ("da", &["pt"]),
    ("danke", &["de"]),
    ("dans", &["fr"]),
    ("das", &["de", "pt"]),
    ("dass", &["de"]),
    ("de", &["fr", "es", "pt"]),
    ("del", &["es"]),
    ("dem", &["de"]),
    ("den", &["de"]),
    ("der", &["de"]),
    ("des", &["de", "fr"]),
    ("dich", &["de"]),
    ("did", &["en"]),
    ("didn't", &["en"]),
    ("didnt", &["en"]),
    ("die", &["de"]),
    ("dir", &["de"]),
    ("do", &["en", "pt"]),
    ("doch", &["de"]),
    ("does", &["en"]),
    ("doesn't", &["en"]),
    ("doesnt", &["en"]),
    ("don't", &["en"]),
    ("donde", &["es"]),
    ("dont", &["en"]),
    ("dos", &["pt"]),
    ("du", &["de", "fr"]),
    ("e", &["pt"]),
    ("ein", &["de"]),
    ("eine", &["de"]),
    ("einem", &["de"]),
    ("einen", &["de"]),
    ("einer", &["de"]),
    ("el", &["es"]),
    ("ela", &["pt"]),
    ("ele", &["pt"]),
    ("elle", &["fr"]),
    ("em", &["pt"]),
    ("en", &["fr", "es"]),
    ("encore", &["fr"]),
    ("er", &["de"]),
    ("era", &["es", "pt"]),
    ("es", &["de", "es"]),
    ("esa", &["es"]),
    ("eso", &["es"]),
    ("essa", &["pt"]),
    ("esse", &["pt"]),
    ("est", &["fr"]),
    ("esta", &["es", "pt"]),
    ("este", &["es", "pt"]),
    ("esto", &["es"]),
    ("estos", &["es"]),
    ("estou", &["pt"]),
    ("estoy", &["es"]),
    ("et", &["fr"]),
    ("etait", &["fr"]),
    ("eu", &["pt"]),
    ("falsch", &["de"]),
    ("favor", &["es"]),
    ("file", &["en"]),
    ("find", &["en"]),
    ("foi", &["pt"]),
    ("for", &["en"]),
    ("from", &["en"]),
    ("fue", &["es"]),
    ("fur", &["de"]),
    ("get", &["en"]),
    ("gib", &["de"]),
    ("give", &["en"]),
    ("gracias", &["es"]),
    ("ha", &["es"]),
    ("habe", &["de"]),
    ("haben", &["de"]),
    ("has", &["en", "es"]),
    ("hast", &["de"]),
    ("hat", &["de"]),
    ("have", &["en"]),
    ("he", &["en", "es"]),
    ("how", &["en"]),
    ("i", &["en"]),
    ("i'd", &["en"]),
    ("i'll", &["en"]),
    ("i'm", &["en"]),
    ("ich", &["de"]),
    ("if", &["en"]),
    ("ihr", &["de"]),
    ("il", &["fr"]),
    ("ils", &["fr"]),
    ("im", &["en", "de"]),
    ("in", &["en"]),
    ("is", &["en"]),
    ("isn't", &["en"]),
    ("isnt", &["en"]),
    ("isso", &["pt"]),
    ("ist", &["de"]),
    ("isto", &["pt"]),
    ("it", &["en"]),
    ("it's", &["en"]),
    ("its", &["en"]),
    ("j'ai", &["fr"]),
    ("ja", &["de", "pt"]),
    ("je", &["fr"]),
    ("just", &["en"]),
    ("kann", &["de"]),
    ("kannst", &["de"]),
    ("kein", &["de"]),
    ("keine", &["de"]),
    ("keinen", &["de"]),
    ("konnen", &["de"]),
    ("la", &["fr", "es"]),
    ("las", &["es"]),
    ("le", &["fr", "es"]),
    ("les", &["fr"]),
    ("let", &["en"]),
    ("list", &["en"]),
    ("lo", &["es"]),
    ("look", &["en"]),
    ("los", &["es"]),
    ("ma", &["fr"]),
    ("mach", &["de"]),
    ("mais", &["fr", "pt"]),
    ("make", &["en"]),
    ("mal", &["de"]),
    ("mas", &["es", "pt"]),
    ("me", &["en", "fr", "es", "pt"]),
    ("meine", &["de"]),
    ("meinte", &["de"]),
    ("merci", &["fr"]),
    ("mes", &["fr"]),
    ("meu", &["pt"]),
    ("mi", &["es"]),
    ("mich", &["de"]),
    ("minha", &["pt"]),
    ("mir", &["de"]),
    ("mit", &["de"]),
    ("mochte", &["de"]),
    ("mon", &["fr"]),
    ("more", &["en"]),
    ("muito", &["pt"]),
    ("muy", &["es"]),
    ("my", &["en"]),
    ("n'est", &["fr"]),
    ("na", &["pt"]),
    ("nao", &["pt"]),
    ("ne", &["fr"]),
    ("need", &["en"]),
    ("nein", &["de"]),
    ("new", &["en"]),
    ("nicht", &["de"]),
    ("no", &["en", "es", "pt"]),
    ("noch", &["de"]),
    ("non", &["fr"]),
    ("nos", &["pt"]),
    ("not", &["en"]),
    ("nous", &["fr"]),
    ("now", &["en"]),
    ("nur", &["de"]),
    ("o", &["es", "pt"]),
    ("obrigada", &["pt"]),
    ("obrigado", &["pt"]),
    ("oder", &["de"]),
    ("of", &["en"]),
    ("ok", &["en"]),
    ("on", &["en", "fr"]),
    ("onde", &["pt"]),
    ("one", &["en"]),
    ("or", &["en"]),
    ("os", &["pt"]),
    ("ou", &["fr", "pt"]),
    ("oui", &["fr"]),
    ("out", &["en"]),
    ("para", &["es", "pt"]),
    ("pas", &["fr"]),
    ("pero", &["es"]),
    ("plait", &["fr"]),
    ("please", &["en"]),
    ("plus", &["fr"]),
    ("pode", &["pt"]),
    ("podes", &["pt"]),
    ("por", &["es", "pt"]),
    ("porque", &["es", "pt"]),
    ("pour", &["fr"]),
    ("pourquoi", &["fr"]),
    ("puede", &["es"]),
    ("puedes", &["es"]),
    ("quand", &["fr"]),
    ("quando", &["pt"]),
    ("que", &["fr", "es", "pt"]),
    ("quero", &["pt"]),
    ("qui", &["fr"]),
    ("quiero", &["es"]),
    ("quoi", &["fr"]),
    ("s'il", &["fr"]),
    ("sao", &["pt"]),
    ("schon", &["de"]),
    ("se", &["fr", "es", "pt"]),
    ("search", &["en"]),
    ("ser", &["pt"]),
    ("she", &["en"]),
    ("should", &["en"]),
    ("show", &["en"]),
    ("si", &["es"]),
    ("sie", &["de"]),
    ("sigue", &["es"]),
    ("sim", &["pt"]),
    ("sind", &["de"]),
    ("so", &["en", "de"]),
    ("some", &["en"]),
    ("son", &["es"]),
    ("sont", &["fr"]),
    ("still", &["en"]),
    ("stimmt", &["de"]),
    ("su", &["es"]),
    ("suis", &["fr"]),
    ("sur", &["fr"]),
    ("te", &["fr", "es"]),
    ("tell", &["en"]),
    ("thank", &["en"]),
    ("thanks", &["en"]),
    ("that", &["en"]),
    ("that's", &["en"]),
    ("thats", &["en"]),
    ("the", &["en"]),
    ("then", &["en"]),
    ("there", &["en"]),
    ("they", &["en"]),
    ("this", &["en"]),
    ("to", &["en"]),
    ("todavia", &["es"]),
    ("todo", &["es"]),
    ("ton", &["fr"]),
    ("toujours", &["fr"]),
    ("tout", &["fr"]),
    ("tu", &["fr", "es"]),
    ("tudo", &["pt"]),
    ("um", &["pt"]),
    ("uma", &["pt"]),
    ("un", &["fr", "es"]),
    ("una", &["es"]),
    ("und", &["de"]),
    ("une", &["fr"]),
    ("unos", &["es"]),
    ("up", &["en"]),
    ("use", &["en"]),
    ("usted", &["es"]),
    ("voce", &["pt"]),
    ("voces", &["pt"]),
    ("vom", &["de"]),
    ("von", &["de"]),
    ("vos", &["fr"]),
    ("votre", &["fr"]),
    ("vous", &["fr"]),
    ("wann", &["de"]),
    ("want", &["en"]),
    ("war", &["de"]),
    ("warum", &["de"]),
    ("was", &["en", "de"]),
    ("we", &["en"]),
    ("wenn", &["de"]),
    ("wer", &["de"]),
    ("were", &["en"]),
    ("what", &["en"]),
    ("when", &["en"]),
    ("where", &["en"]),
    ("which", &["en"]),
    ("who", &["en"]),
    ("why", &["en"]),
    ("wie", &["de"]),
    ("will", &["en", "de"]),
    ("wir", &["de"]),
    ("with", &["en"]),
    ("wo", &["de"]),
    ("work", &["en"]),
    ("works", &["en"]),
    ("would", &["en"]),
    ("wrong", &["en"]),
    ("y", &["fr", "es"]),
    ("ya", &["es"]),
    ("yes", &["en"]),
    ("yo", &["es"]),
    ("you", &["en"]),
    ("you're", &["en"]),
    ("your", &["en"]),
    ("zeig", &["de"]),
    ("zu", &["de"]),
    ("zum", &["de"]),
    ("zur", &["de"]),
];

/// The languages that are told apart by [`WORDS`]; where two have as many of a message's words,
/// the first wins.
pub(crate) const LATIN: [&str; 5] = ["en", "es", "pt", "fr", "de"];

/// How many words are looked at.
const LOOK: usize = 40;

/// The language that a message's words tell; `None` if they tell none. `added` are function words
/// of further languages, with their languages.
pub(crate) fn guess<'a>(text: &Text, added: &'a FastMap<String, String>) -> Option<&'a str> {
    if let Some(east) = by_script(text) {
        return Some(east);
    }
    let mut counts = [0_u32; LATIN.len()];
    let mut other: Option<&str> = None;
    let mut others = 0_u32;
    for word in text.all_folded().take(LOOK) {
        if let Some(language) = added.get(word) {
            others += u32::from(other.is_none_or(|other| other == language));
            other.get_or_insert(language);
        }
        for language in languages_of(word) {
            let counted = LATIN.iter().zip(&mut counts);
            for (_, count) in counted.filter(|(name, _)| *name == language) {
                *count += 1;
            }
        }
    }
    let best = counts.iter().copied().max().filter(|most| *most > 0);
    if others > best.unwrap_or(0) {
        return other;
    }
    let best = best?;
    let first = LATIN.iter().zip(counts).find(|(_, count)| *count == best);
    first.map(|(language, _)| *language)
}

/// Whether a word is so frequent in one of the built-in languages that it tells nothing of what a
/// text is about.
pub(crate) fn is_function_word(word: &str) -> bool {
    !languages_of(word).is_empty()
}

fn languages_of(word: &str) -> &'static [&'static str] {
    static BY_WORD: LazyLock<FastMap<&str, &[&str]>> =
        LazyLock::new(|| WORDS.iter().copied().collect());
    BY_WORD.get(word).copied().unwrap_or_default()
}

/// Japanese has kana, Chinese none.
fn by_script(text: &Text) -> Option<&'static str> {
    let first = |word: &str| word.chars().next();
    let of_script = |low: char, high: char| {
        let characters = text.all_folded().take(LOOK).filter_map(first);
        characters.filter(move |c| (low..=high).contains(c)).count()
    };
    let kana = of_script('\u{3040}', '\u{30ff}');
    let han = of_script('\u{3400}', '\u{9fff}');
    let all = text.words.len().min(LOOK);
    if (kana + han) * 2 < all || kana + han == 0 {
        return None;
    }
    Some(if kana > 0 { "ja" } else { "zh" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_words_tell_the_language() {
        let added = FastMap::default();
        for (text, language) in [
            ("That is not what I asked for", Some("en")),
            ("Das ist nicht was ich wollte", Some("de")),
            ("Ce n'est pas ce que j'ai demandé", Some("fr")),
            ("Eso no es lo que pedí", Some("es")),
            ("Isso não é o que eu pedi", Some("pt")),
            ("这不是我要的", Some("zh")),
            ("それは違います", Some("ja")),
            ("gracias", Some("es")),
            ("blorp", None),
            ("", None),
        ] {
            assert_eq!(
                guess(&Text::read(text, 100, 100), &added),
                language,
                "{text}"
            );
        }
    }
}
