//! What the turns before the last exchange show: that the user asks for something once more, or that the answer is the
//! same again.
//!
//! Neither decides alone: an answer may be repeated because the user asked for that. Each multiplies the odds that the
//! model gives a rejection. docs/detection.md, "Beyond the message", has their precision, and what was measured and left
//! out.

use std::cell::OnceCell;

use hearback_text::Text;
use hearback_text::similarity::{Comparison, Words};

use crate::cue::Cue;
use crate::rephrase::names_one;
use crate::verdict::{Case, READ};

/// The minimum similarity of a message to an earlier query that it asks once more. What is asked again after another
/// answer rarely has the same words.
const ASKED: f64 = 0.4;
/// The minimum similarity of an answer to an earlier one that it repeats.
const REPEATED: f64 = 0.6;
/// The minimum number of words of a request that is made again.
const LEAST_ASKED: usize = 3;
/// The minimum number of words of an answer that is given again: an agent may confirm everything with the same few words.
const LEAST_ANSWERED: usize = 8;
/// The factors of both for the odds of a rejection.
const ODDS_ASKED: f32 = 3.0;
const ODDS_REPEATED: f32 = 2.0;
/// The number of characters of a passage of the answer that a message uses.
const PASSAGE: usize = 20;
/// The bytes of a message that are searched for one.
const SEARCHED: usize = 400;

/// What the earlier turns show, and the factor for the odds of a rejection.
pub(crate) fn evidence(case: &Case<'_>) -> Option<(Cue, f32)> {
    if case.earlier.is_empty() || case.uses_answer() {
        return None;
    }
    let now = Words::of(case.text);
    let asked = (case.earlier.iter()).any(|turn| case.asks_again(turn.query, &now));
    let answer = Words::of(case.response());
    let mut answers = case.earlier.iter().filter_map(|turn| turn.answer);
    let repeated = answers.any(|earlier| repeats(earlier, &answer));
    match (asked, repeated) {
        (true, true) => Some((Cue::AskedBefore, ODDS_ASKED * ODDS_REPEATED)),
        (true, false) => Some((Cue::AskedBefore, ODDS_ASKED)),
        (false, true) => Some((Cue::AnswerRepeated, ODDS_REPEATED)),
        (false, false) => None,
    }
}

impl Case<'_> {
    /// Whether the message asks once more for what an earlier query asked, and not for the same of something else ("and
    /// for girls?"). `words` are those of the message.
    fn asks_again(&self, query: &str, words: &Words<'_>) -> bool {
        let before = Case {
            query: Some(query),
            query_text: OnceCell::new(),
            response_text: OnceCell::new(),
            asked: OnceCell::new(),
            ..*self
        };
        let (asked, now) = (before.query(), self.text);
        // Quoted words are not compared: the same task may be about another text.
        !asked.quotes
            && similar(Words::of(asked), words, LEAST_ASKED, ASKED)
                .is_some_and(|compared| !is_replaced(asked, now, &compared))
            && !before.adds_continuation()
    }

    /// Whether the message contains a passage of the answer: a text that is worked on is repeated with each change.
    fn uses_answer(&self) -> bool {
        let answer = self.response.unwrap_or_default();
        let starts = self.message.char_indices().filter(|(at, _)| {
            let before = self.message.get(..*at).unwrap_or_default();
            !before.ends_with(char::is_alphanumeric)
        });
        let mut starts = starts.take_while(|(at, _)| *at < SEARCHED);
        starts.any(|(at, _)| {
            let passage = self.message.get(at..).unwrap_or_default();
            let end = passage.char_indices().nth(PASSAGE).map(|(end, _)| end);
            let passage = end.and_then(|end| passage.get(..end));
            passage.is_some_and(|passage| answer.contains(passage))
        })
    }
}

/// Whether a message asks the same as the query, of something else.
pub(crate) fn asks_of_another(query: &Text, message: &Text, compared: &Comparison<'_>) -> bool {
    let words = query.words.len().min(message.words.len());
    words >= LEAST_ASKED && compared.similarity > ASKED && is_replaced(query, message, compared)
}

/// Whether the same is asked of something else: "where is order 17?", "how do I cook rice?". A name or a number is
/// replaced, or nothing but significant words are, each in its place.
fn is_replaced(before: &Text, now: &Text, compared: &Comparison<'_>) -> bool {
    let (old, new) = (&compared.only_first, &compared.only_second);
    let in_place = || {
        let pairs = before.all_folded().zip(now.all_folded());
        let mut changed = pairs.filter(|(before, now)| before != now);
        before.words.len() == now.words.len()
            && changed.all(|(before, now)| old.contains(&before) && new.contains(&now))
    };
    !old.is_empty()
        && !new.is_empty()
        && ((names_one(before, old) && names_one(now, new)) || in_place())
}

/// Whether the answer, which has these words, repeats an earlier one.
fn repeats(earlier: &str, words: &Words<'_>) -> bool {
    let earlier = Text::read(earlier, READ, READ);
    similar(Words::of(&earlier), words, LEAST_ANSWERED, REPEATED).is_some()
}

/// The comparison of two texts, if they have so many words and are so similar.
fn similar<'a>(
    before: Words<'a>,
    now: &Words<'a>,
    words: usize,
    least: f64,
) -> Option<Comparison<'a>> {
    let is_long = before.count().min(now.count()) >= words;
    let compared = is_long.then(|| Comparison::of(before, now.clone()));
    compared.filter(|compared| compared.similarity > least)
}
