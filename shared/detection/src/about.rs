//! What a message means as a whole, and whether a cue in it is about the answer.
//!
//! A complaint is not about the answer if its clause is about something else ("my order came broken", "a test that
//! fails"), if its reason is over ("but now it works"), or if the user names another cause.

use crate::cue::{Cue, Role};
use crate::matching::{Found, Matched};
use crate::reply::Asked;
use crate::verdict::Case;
use crate::vocabulary::Trait;

/// Words of a long message. The middle of a long message is rarely about the answer.
const LONG: usize = 80;
/// Words at the start of a long message, and at its end, that may be about the answer.
const ABOUT: (usize, usize) = (40, 25);

/// Cues that say that all is well, or that it does not matter.
pub(crate) const CONTENT: [Cue; 6] = [
    Cue::Thanks,
    Cue::Praise,
    Cue::Chosen,
    Cue::Enough,
    Cue::Decline,
    Cue::Unsure,
];

impl Case<'_> {
    /// The first phrase for a cue that is meant and may be about the answer.
    pub(crate) fn first(&self, cue: Cue) -> Option<Found> {
        self.matched
            .of_cue(cue)
            .find(|found| self.is_meant(cue, *found))
    }

    /// Whether a cue is there, is meant, and may be about the answer.
    pub(crate) fn has(&self, cue: Cue) -> bool {
        self.first(cue).is_some()
    }

    /// Whether one of these cues is.
    pub(crate) fn has_any(&self, cues: &[Cue]) -> bool {
        cues.iter().any(|cue| self.has(*cue))
    }

    /// Where the message says that the attempt works now.
    pub(crate) fn overcome(&self) -> Option<Found> {
        let mut found = self.matched.of_role(Role::Overcome);
        found.find(|found| !self.matched.is_denied(*found))
    }

    /// Whether the message says that all is well, or that it does not matter.
    pub(crate) fn is_content(&self) -> bool {
        // "Yes, but …" is not.
        let yes = self.first(Cue::Agreement);
        let agrees = yes.is_some_and(|yes| {
            let next = self.matched.tokens.get(yes.to);
            next.is_none_or(|token| !token.is(Trait::Adversative))
        });
        agrees || self.has_any(&CONTENT)
    }

    /// "No, thanks, that's all", where it is not known what the "no" declines.
    pub(crate) fn closes(&self) -> bool {
        let content = self.has_any(&[Cue::Enough, Cue::Praise]);
        self.asked() == Asked::Unknown && content && !self.has(Cue::Unsure)
    }

    /// "Ok" alone agrees if the answer asked something. Otherwise it only says that the answer was read, which is
    /// neutral.
    pub(crate) fn only_acknowledges(&self) -> bool {
        let mut ok = self.matched.of_role(Role::Acknowledgement);
        let all = self.matched.tokens.len();
        ok.any(|ok| (ok.from, ok.to) == (0, all))
            && matches!(self.asked(), Asked::Unknown | Asked::Nothing)
    }

    fn is_meant(&self, cue: Cue, found: Found) -> bool {
        if !self.is_near_an_end(found) || self.matched.is_denied(found) {
            return false;
        }
        if matches!(cue, Cue::Change | Cue::Contrast) {
            // "Use tabs from now on" says nothing about what was done so far.
            return !self.matched.has(Role::Standing);
        }
        let reports = matches!(cue, Cue::Failure | Cue::Unasked);
        if reports && self.has_answered_nothing() {
            return false;
        }
        let complains = matches!(cue, Cue::Wrong | Cue::Quality | Cue::Failure | Cue::Symptom);
        !complains || self.is_about_answer(found)
    }

    /// Whether the answer only asked "Anything else?". Then "it never arrived" is no complaint about it.
    fn has_answered_nothing(&self) -> bool {
        self.asked() == Asked::Closing && {
            let query = self.query();
            let matched = Matched::message(query, self.lexicon);
            let closed = [Cue::Thanks, Cue::Praise, Cue::Agreement, Cue::Enough];
            let mut closed = closed.into_iter();
            query.words.is_empty() || closed.any(|cue| matched.of_cue(cue).next().is_some())
        }
    }

    /// Whether a phrase is in a part of the message that is about the answer: the ends of a long message.
    fn is_near_an_end(&self, found: Found) -> bool {
        let all = self.matched.tokens.len();
        all <= LONG || found.from < ABOUT.0 || found.to + ABOUT.1 > all
    }

    /// Whether a complaint is about the answer.
    fn is_about_answer(&self, found: Found) -> bool {
        !self.is_aside(found) && !self.is_overcome(found) && !self.is_expected(found)
    }

    /// Whether its clause is about something else: "my order came broken".
    fn is_aside(&self, complaint: Found) -> bool {
        let clause = self.matched.clause(complaint.from);
        let mut asides = self.matched.of_role(Role::Aside);
        let aside = |aside: &Found| clause.contains(&aside.from) && aside.from != complaint.from;
        asides.any(|found| aside(&found)) && !self.lasts(complaint)
    }

    /// Whether the message says that the reason of the complaint is over, or that it followed a success: "that works,
    /// now I get another error".
    fn is_overcome(&self, complaint: Found) -> bool {
        let Some(overcome) = self.overcome() else {
            return false;
        };
        if overcome.from > complaint.from {
            return true;
        }
        let between = self.matched.tokens.get(overcome.to..=complaint.from);
        let mut between = between.unwrap_or_default().iter();
        let set_against = between.any(|token| token.is(Trait::Adversative));
        !set_against && !self.lasts(complaint)
    }

    /// Whether the same sentence names the cause: "because I have not saved it yet".
    fn is_expected(&self, complaint: Found) -> bool {
        let sentence = self.matched.sentence(complaint.from);
        let mut expected = self.matched.of_role(Role::Expected);
        expected.any(|found| sentence.contains(&found.from) && !self.matched.is_denied(found))
    }

    /// Whether the clause of a complaint says that it lasts: "my router is still down".
    fn lasts(&self, complaint: Found) -> bool {
        let clause = self.matched.tokens.get(self.matched.clause(complaint.from));
        let mut clause = clause.unwrap_or_default().iter();
        clause.any(|token| token.is(Trait::Lasting))
    }
}
