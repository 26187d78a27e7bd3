//! Guesses the language of a message from its words.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use crate::Text;
use crate::hash::FastMap;

/// The built-in languages that share a script, each with frequent words, without accents. A word of several languages
/// counts for each. If two languages have equally many words of a message, the first wins.
const WORDS: [(&str, &str); 5] = [
    (
        "en",
        "a an the and or you that this is are was were it its not what i my me of to in for \
         on at by as if from with about have has do does did can could would should will how \
         why when where which who please your just but so we they he she there then be been \
         thanks thank no yes ok don't didn't doesn't isn't it's that's i'm i'd i'll you're \
         dont didnt doesnt isnt thats im wrong still want need find show get give look search \
         make list tell use let now more some any all out up one new file code work works",
    ),
    (
        "es",
        "el la los las un una unos y o es son no yo tu usted con de del al para por lo que en \
         se mi me te le su pero esta este esto estos eso esa muy como cuando donde quiero \
         puedes puede si gracias porque todavia sigue mas fue era has ha he favor estoy ya \
         bien todo",
    ),
    (
        "pt",
        "o a os as um uma e ou sao nao eu voce voces com de para por do da no na dos das em \
         mas que se isso isto esse essa este esta muito como quando onde quero pode podes meu \
         minha me foi era sim obrigado obrigada porque ainda estou ele ela mais ja tudo bem \
         nos ao ser",
    ),
    (
        "fr",
        "le la les des du de un une et ou est sont pas je tu il elle on nous vous ils avec \
         pour dans sur que qui quoi ce cette ces ca mais c'est j'ai n'est d'un au aux mon ma \
         mes ton votre vos s'il plait non oui merci pourquoi comment quand etait suis as a \
         encore toujours ne me te se y en plus tout",
    ),
    (
        "de",
        "der die das und oder ist sind war nicht ich du er sie wir ihr es ein eine einen \
         einem einer mit auf fur den dem des wie was wer wo warum wann bitte aber auch noch \
         kein keine keinen mir mich dir dich hat habe hast haben kann kannst konnen von zu \
         zum zur im vom bei nur schon mal so doch nein ja danke falsch stimmt will mochte \
         zeig mach gib dass wenn meinte meine",
    ),
];

/// The built-in languages that share the Latin script.
pub const LATIN: [&str; 5] = ["en", "es", "pt", "fr", "de"];

/// How many words are read.
const READ: usize = 40;

/// The language of a message by its words; `None` if it has no known word. `added` maps function words of further
/// languages to their languages.
#[must_use]
pub fn guess<'a, S: BuildHasher>(
    text: &Text,
    added: &'a HashMap<String, String, S>,
) -> Option<&'a str> {
    if let Some(east) = by_script(text) {
        return Some(east);
    }
    let mut counts = [0_u32; LATIN.len()];
    let mut other: Option<&str> = None;
    let mut others = 0_u32;
    for word in text.all_folded().take(READ) {
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

/// Whether a word is so frequent in a built-in language that it says nothing about the subject of a text.
#[must_use]
pub fn is_function_word(word: &str) -> bool {
    !languages_of(word).is_empty()
}

fn languages_of(word: &str) -> &'static [&'static str] {
    static BY_WORD: LazyLock<FastMap<&str, Vec<&str>>> = LazyLock::new(|| {
        let mut by_word: FastMap<&str, Vec<&str>> = FastMap::default();
        for (language, words) in WORDS {
            for word in words.split(' ') {
                by_word.entry(word).or_default().push(language);
            }
        }
        by_word
    });
    BY_WORD.get(word).map_or(&[], Vec::as_slice)
}

/// Japanese has kana, Chinese none.
fn by_script(text: &Text) -> Option<&'static str> {
    let first = |word: &str| word.chars().next();
    let of_script = |low: char, high: char| {
        let characters = text.all_folded().take(READ).filter_map(first);
        characters.filter(move |c| (low..=high).contains(c)).count()
    };
    let kana = of_script('\u{3040}', '\u{30ff}');
    let han = of_script('\u{3400}', '\u{9fff}');
    let all = text.words.len().min(READ);
    if (kana + han) * 2 < all || kana + han == 0 {
        return None;
    }
    Some(if kana > 0 { "ja" } else { "zh" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_guessed_from_a_few_words() {
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
