//! How alike two texts are in what they say, from 0 to 1, by their words alone.
//!
//! Two questions about one thing differ in the one word that matters ("their address", "their
//! phone number"), and two ways to ask the same in many that do not ("can you find me", "please
//! show"). Strings of three characters see it the other way round, for most characters are in the
//! frame and few in the word that matters. So words are compared, those that every text has count
//! little, and spelling counts only between words that have no equal on the other side: a typo, a
//! plural, a compound.

use crate::Text;
use crate::language::is_function_word;

/// What a word counts that every text has.
const FREQUENT: f64 = 0.2;
/// How alike the letters of two words must be to pass for one word.
const SAME_WORD: f64 = 0.6;
/// Words without an equal that are still compared by their letters, each with each.
const COMPARED: usize = 24;
/// Bytes that are read at either end of a text.
const READ: usize = 2_000;

/// How alike two texts are: 1 if they have the same words, 0 if they share none. What is quoted
/// in them does not count. Symmetric; linear in the texts.
#[must_use]
pub fn similarity(one: &str, other: &str) -> f64 {
    let (one, other) = (Text::read(one, READ, READ), Text::read(other, READ, READ));
    Comparison::of(&one, &other).similarity
}

/// Two texts compared.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// From 0 to 1.
    pub similarity: f64,
    /// The words that matter of the first that the second has nothing like.
    pub only_first: Vec<&'a str>,
    /// Those of the second that the first has nothing like.
    pub only_second: Vec<&'a str>,
}

/// A word, and what it counts.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    word: &'a str,
    weight: f64,
}

impl<'a> Counted<'a> {
    /// A word, which counts little if it is light or every text has it.
    #[must_use]
    pub fn of(word: &'a str, light: bool) -> Self {
        let weight = if light || is_function_word(word) {
            FREQUENT
        } else {
            1.0
        };
        Self { word, weight }
    }

    /// Whether it may tell what a text is about.
    #[must_use]
    pub fn matters(&self) -> bool {
        self.weight > FREQUENT
    }
}

impl<'a> Comparison<'a> {
    /// Compares two texts.
    #[must_use]
    pub fn of(one: &'a Text, other: &'a Text) -> Self {
        let words = |text: &'a Text| text.all_folded().map(|word| Counted::of(word, false));
        Self::by(words(one), words(other))
    }

    /// Compares the words of two texts.
    pub fn by(
        one: impl Iterator<Item = Counted<'a>>,
        other: impl Iterator<Item = Counted<'a>>,
    ) -> Self {
        let (mut first, mut second) = (sorted(one), sorted(other));
        let weight = |words: &[Counted<'_>]| words.iter().map(|word| word.weight).sum::<f64>();
        let all = weight(&first) + weight(&second);
        remove_equal(&mut first, &mut second);
        let alike = alike(&mut first, &mut second);
        let left = weight(&first) + weight(&second) + alike;
        let words = |left: Vec<Counted<'a>>| {
            let matters = left.into_iter().filter(Counted::matters);
            matters.map(|word| word.word).collect()
        };
        Self {
            similarity: if all > 0.0 {
                (1.0 - left / all).clamp(0.0, 1.0)
            } else {
                0.0
            },
            only_first: words(first),
            only_second: words(second),
        }
    }
}

fn sorted<'a>(words: impl Iterator<Item = Counted<'a>>) -> Vec<Counted<'a>> {
    let mut words: Vec<_> = words.collect();
    words.sort_unstable_by_key(|counted| counted.word);
    words
}

/// Leaves what has no equal on the other side.
fn remove_equal<'a>(first: &mut Vec<Counted<'a>>, second: &mut Vec<Counted<'a>>) {
    let mut others = std::mem::take(second).into_iter().peekable();
    first.retain(|counted| {
        while let Some(smaller) = others.next_if(|other| other.word < counted.word) {
            second.push(smaller);
        }
        others.next_if(|other| other.word == counted.word).is_none()
    });
    second.extend(others);
}

/// Takes out the words that are spelled alike, and returns what they differ by.
fn alike(first: &mut Vec<Counted<'_>>, second: &mut Vec<Counted<'_>>) -> f64 {
    if first.len() > COMPARED || second.len() > COMPARED {
        return 0.0;
    }
    let mut spellings: Vec<_> = second.iter().map(|other| pairs(other.word)).collect();
    let mut difference = 0.0;
    first.retain(|counted| {
        let spelling = pairs(counted.word);
        let best = spellings
            .iter()
            .map(|other| in_common(&spelling, other))
            .enumerate()
            .max_by(|(_, one), (_, other)| one.total_cmp(other));
        let Some((at, likeness)) = best.filter(|(_, likeness)| *likeness >= SAME_WORD) else {
            return true;
        };
        spellings.swap_remove(at);
        let other = second.swap_remove(at);
        difference += (1.0 - likeness) * (counted.weight + other.weight);
        false
    });
    difference
}

/// Letters of a word that is long enough to be told by its spelling.
const TELLING: usize = 4;

/// The pairs of neighbouring letters of a word, its edges counted in, in order. None of a short
/// word and of one with a digit, which are alike only if they are the same: 5 is not 6.
fn pairs(word: &str) -> Vec<(char, char)> {
    if word.len() < TELLING || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let edged = std::iter::once(' ').chain(word.chars());
    let mut pairs: Vec<_> = edged.zip(word.chars().chain([' '])).collect();
    pairs.sort_unstable();
    pairs
}

/// The share of pairs that two words have in common.
fn in_common(one: &[(char, char)], other: &[(char, char)]) -> f64 {
    let (mut at, mut common) = (0, 0);
    for pair in one {
        let rest = other.get(at..).unwrap_or_default();
        at += rest.iter().take_while(|other| *other < pair).count();
        if other.get(at) == Some(pair) {
            at += 1;
            common += 2;
        }
    }
    ratio(common, one.len() + other.len())
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
    number(part) / number(whole).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_matters_counts() {
        let other_thing = similarity("What is their phone number?", "What is their address?");
        assert!(other_thing < 0.5, "{other_thing}");
        let other_words = similarity(
            "Can you find me cheap flights to Rome?",
            "please find cheap flight to rome",
        );
        assert!(other_words > 0.8, "{other_words}");
    }

    #[test]
    fn a_text_is_itself_and_order_is_nothing() {
        assert!((similarity("gaming laptops", "laptops, gaming!") - 1.0).abs() < 1e-9);
        assert!(similarity("gaming laptops", "hamster food").abs() < 1e-9);
        assert!(similarity("", "").abs() < 1e-9);
    }
}
