//! The similarity of two texts in meaning, from 0 to 1, by their words alone.
//!
//! Different questions may differ in one significant word ("their address", "their phone number"), and forms of the
//! same question in many insignificant words ("can you find me", "please show"). Strings of three characters would
//! weigh that the other way round, because most characters are in insignificant words. So words are compared, words
//! that are in every text weigh little, and spelling counts only between words without an equal in the other text: a
//! typo, a plural, a compound.

use crate::Text;
use crate::language::is_function_word;

/// The weight of a word that is in every text.
const FREQUENT: f64 = 0.2;
/// The minimum similarity in spelling of two words that count as the same word.
const SAME_WORD: f64 = 0.6;
/// The maximum number of words of a text that the other text does not contain. If there are more, spellings are not
/// compared, because each word is compared with each.
const COMPARED: usize = 24;
/// Bytes that are read at the start and at the end of a text.
const READ: usize = 2_000;

/// The similarity of two texts: 1 if they have the same words, 0 if they share none. Quotations do not count.
/// Symmetric; linear in the texts.
#[must_use]
pub fn similarity(one: &str, other: &str) -> f64 {
    let (one, other) = (Text::read(one, READ, READ), Text::read(other, READ, READ));
    Comparison::of(Words::of(&one), Words::of(&other)).similarity
}

/// The comparison of two texts.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// From 0 to 1.
    pub similarity: f64,
    /// Significant words of the first text without a similar word in the second.
    pub only_first: Vec<&'a str>,
    /// Significant words of the second text without a similar word in the first.
    pub only_second: Vec<&'a str>,
}

/// A word and its weight.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    word: &'a str,
    /// Its first eight bytes: in the order of the words, and faster to compare.
    start: u64,
    weight: f64,
}

impl<'a> Counted<'a> {
    /// A word, with little weight if it is `light` or a function word.
    #[must_use]
    pub fn of(word: &'a str, light: bool) -> Self {
        let weight = if light || is_function_word(word) {
            FREQUENT
        } else {
            1.0
        };
        Self {
            word,
            start: start(word),
            weight,
        }
    }

    /// Sorts as the word does.
    fn key(&self) -> (u64, &'a str) {
        (self.start, self.word)
    }

    /// Whether it may say what a text is about.
    #[must_use]
    pub fn matters(&self) -> bool {
        self.weight > FREQUENT
    }
}

/// The words of a text, sorted, to compare it with others.
#[derive(Debug, Clone)]
pub struct Words<'a>(Vec<Counted<'a>>);

impl<'a> Words<'a> {
    /// All words of a text.
    #[must_use]
    pub fn of(text: &'a Text) -> Self {
        (text.all_folded())
            .map(|word| Counted::of(word, false))
            .collect()
    }

    /// The number of words.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl<'a> FromIterator<Counted<'a>> for Words<'a> {
    fn from_iter<T: IntoIterator<Item = Counted<'a>>>(words: T) -> Self {
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_unstable_by_key(Counted::key);
        Self(words)
    }
}

impl<'a> Comparison<'a> {
    /// Compares two texts.
    #[must_use]
    pub fn of(one: Words<'a>, other: Words<'a>) -> Self {
        let (Words(mut first), Words(mut second)) = (one, other);
        let weight = |words: &[Counted<'_>]| words.iter().map(|word| word.weight).sum::<f64>();
        let all = weight(&first) + weight(&second);
        remove_equal(&mut first, &mut second);
        let differences = remove_similar(&mut first, &mut second);
        let left = weight(&first) + weight(&second) + differences;
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

/// The first eight bytes of a word as a number, with zeros after a shorter one.
fn start(word: &str) -> u64 {
    let mut start = [0; 8];
    for (byte, first) in start.iter_mut().zip(word.bytes()) {
        *byte = first;
    }
    u64::from_be_bytes(start)
}

/// Keeps the words without an equal in the other text.
fn remove_equal<'a>(first: &mut Vec<Counted<'a>>, second: &mut Vec<Counted<'a>>) {
    let mut others = std::mem::take(second).into_iter().peekable();
    first.retain(|counted| {
        while let Some(smaller) = others.next_if(|other| other.key() < counted.key()) {
            second.push(smaller);
        }
        others
            .next_if(|other| other.key() == counted.key())
            .is_none()
    });
    second.extend(others);
}

/// Removes pairs of words with similar spelling, and returns the weight of their differences.
fn remove_similar(first: &mut Vec<Counted<'_>>, second: &mut Vec<Counted<'_>>) -> f64 {
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

/// The minimum number of bytes of a word that is compared by its spelling.
const LEAST_SPELLED: usize = 4;

/// The sorted pairs of neighbouring letters of a word, including its edges. None for a short word and for one with a
/// digit, which must be equal: 5 is not 6.
fn pairs(word: &str) -> Vec<(char, char)> {
    if word.len() < LEAST_SPELLED || word.bytes().any(|byte| byte.is_ascii_digit()) {
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
    fn significant_words_weigh_more() {
        let other_thing = similarity("What is their phone number?", "What is their address?");
        assert!(other_thing < 0.5, "{other_thing}");
        let other_words = similarity(
            "Can you find me cheap flights to Rome?",
            "please find cheap flight to rome",
        );
        assert!(other_words > 0.8, "{other_words}");
    }

    #[test]
    fn similarity_is_reflexive_and_ignores_order() {
        assert!((similarity("gaming laptops", "laptops, gaming!") - 1.0).abs() < 1e-9);
        assert!(similarity("gaming laptops", "hamster food").abs() < 1e-9);
        assert!(similarity("", "").abs() < 1e-9);
    }
}
