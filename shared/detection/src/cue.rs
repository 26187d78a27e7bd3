//! The cues in messages: the meaning and the confidence of each.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use hearback_wire::wire_names;

/// What a message says about the answer before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DetectedFeedbackType)]
pub enum FeedbackStatus {
    /// The answer was not what was wanted.
    Rejected,
    /// The conversation continued from it, or the user was content.
    Accepted,
    /// Neither can be inferred.
    Neutral,
}

wire_names!(FeedbackStatus {
    Rejected = "rejected",
    Accepted = "accepted",
    Neutral = "neutral",
});

/// How a message rejects an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DetectedCorrectionType)]
pub enum RejectionKind {
    /// It says so explicitly.
    Explicit,
    /// It repeats the previous question in other words.
    Rephrased,
    /// It gives up on the request.
    Abandonment,
}

wire_names!(RejectionKind {
    Explicit = "explicit",
    Rephrased = "rephrased",
    Abandonment = "abandonment",
});

/// The evidence of a detection.
///
/// Cues up to [`Cue::Decline`] are sections of the phrase files. Four more are found by comparing the message with the
/// turn before it. The last three are the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cue {
    /// "No, …", if the answer offered nothing that it could decline.
    Negation,
    /// "I meant …", "I asked for …".
    Correction,
    /// "That's wrong", "you misunderstood".
    Wrong,
    /// "Try again".
    Retry,
    /// "Not helpful", "too long".
    Quality,
    /// "Still broken", "that didn't work".
    Failure,
    /// "I get an error", where the answer gave code or steps.
    Symptom,
    /// "I didn't ask for that", "undo that", "why did you delete …".
    Unasked,
    /// "What are you talking about?"
    Confusion,
    /// "Make it two", "actually, …", "… instead": something other than what was understood.
    Change,
    /// "Gaming, not business".
    Contrast,
    /// "I want gaming laptops", if the user had asked for laptops before.
    Wanted,
    /// "Never mind", "cancel", "let me rephrase".
    Abandonment,
    /// "Thanks".
    Thanks,
    /// "Perfect", "that works".
    Praise,
    /// "Yes", "exactly".
    Agreement,
    /// "I'll go with the first one".
    Chosen,
    /// "That's all".
    Enough,
    /// "Tell me more"; a question that refers to the answer.
    FollowUp,
    /// "What about the …", "which one …".
    DrillDown,
    /// "Compare …".
    Comparison,
    /// "And …", "also …", "what if …".
    Addition,
    /// "Not sure", "I don't mind".
    Unsure,
    /// "No thanks", "not now".
    Decline,
    /// The same question as before.
    Rephrase,
    /// A name, a price or another detail of the answer.
    Mention,
    /// A request that refers to the answer, or a question or a request about the same subject.
    NextRequest,
    /// A question or a request about something else.
    TopicChange,
    /// No phrase: the learned model decided, by the whole message and the turn before it. These words have the highest
    /// weight for its verdict.
    Learned,
    /// The model decided because an earlier turn of the conversation asked for the same.
    AskedBefore,
    /// The model decided because the answer repeats an earlier one of the conversation.
    AnswerRepeated,
}

wire_names!(Cue {
    Negation = "negation",
    Correction = "correction",
    Wrong = "wrong",
    Retry = "retry",
    Quality = "quality",
    Failure = "failure",
    Symptom = "symptom",
    Unasked = "unasked",
    Confusion = "confusion",
    Change = "change",
    Contrast = "contrast",
    Wanted = "wanted",
    Abandonment = "abandonment",
    Thanks = "thanks",
    Praise = "praise",
    Agreement = "agreement",
    Chosen = "chosen",
    Enough = "enough",
    FollowUp = "follow_up",
    DrillDown = "drill_down",
    Comparison = "comparison",
    Addition = "addition",
    Unsure = "unsure",
    Decline = "decline",
    Rephrase = "rephrase",
    Mention = "mention",
    NextRequest = "next_request",
    TopicChange = "topic_change",
    Learned = "learned",
    AskedBefore = "asked_before",
    AnswerRepeated = "answer_repeated",
});

/// The purpose of a phrase in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is a cue.
    Cue(Cue),
    /// It says that something succeeded, or nothing about the answer: phrases within it are not cues.
    Harmless,
    /// The user made the mistake, or found it: not a cancellation.
    OwnFault,
    /// The user changed something: to try again is not a complaint.
    UserFixed,
    /// Its clause complains about something other than the answer: "my order", "a test that".
    Aside,
    /// The attempt works now.
    Overcome,
    /// The user knows why something fails, and it is not the answer.
    Expected,
    /// It is about the future: "from now on".
    Standing,
    /// The message is nothing but an "ok".
    Acknowledgement,
    /// It may precede a cue that starts a sentence: "oh", "sorry, but", "I think".
    Opener,
    /// It starts a question.
    Question,
    /// It starts a request.
    Request,
    /// It asks for the continuation, even if it is repeated: "next", "tell me more".
    Onward,
    /// It contradicts something in the answer: "wasn't that", "it was".
    Doubt,
    /// It refers to what was said before: "it", "the second one".
    Refers,
    /// It looks like a reference but is not: "what time is it".
    Dummy,
    /// It asks for something of a kind.
    Seeks(Kind),
    /// In an answer: what it asks of the user.
    Asks(Asks),
    /// In an answer: it did something, or gives steps that the user takes, and either may fail.
    Actionable,
}

/// What an answer asks of the user, as far as phrases show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Whether there is anything else.
    More,
    /// Whether it has understood.
    Confirmation,
    /// Whether the user likes a proposal: "how about …?"
    Suggestion,
    /// Whether it should do something.
    Offer,
    /// Something that it needs to know.
    Detail,
}

/// The kind of thing that a question word asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// "What", "which". A request without a question word asks for it too.
    Thing,
    /// "Who".
    Person,
    /// "Where".
    Place,
    /// "When".
    Time,
    /// "Why", "how come".
    Reason,
    /// "How".
    Manner,
    /// "How many".
    Amount,
}

impl Kind {
    /// Its bit in a set of kinds.
    pub(crate) fn bit(self) -> u8 {
        match self {
            Self::Thing => 1,
            Self::Person => 1 << 1,
            Self::Place => 1 << 2,
            Self::Time => 1 << 3,
            Self::Reason => 1 << 4,
            Self::Manner => 1 << 5,
            Self::Amount => 1 << 6,
        }
    }
}

/// The other sections of a phrase file, in addition to the cues.
const OTHERS: &[(&str, Role)] = &[
    ("harmless", Role::Harmless),
    ("own_fault", Role::OwnFault),
    ("user_fixed", Role::UserFixed),
    ("aside", Role::Aside),
    ("overcome", Role::Overcome),
    ("expected", Role::Expected),
    ("standing", Role::Standing),
    ("acknowledgement", Role::Acknowledgement),
    ("opener", Role::Opener),
    ("question", Role::Question),
    ("request", Role::Request),
    ("onward", Role::Onward),
    ("doubt", Role::Doubt),
    ("refers", Role::Refers),
    ("dummy", Role::Dummy),
];

/// The sections for what a question word asks for.
const QUESTIONS: &[(&str, Role)] = &[
    ("thing", Role::Seeks(Kind::Thing)),
    ("person", Role::Seeks(Kind::Person)),
    ("place", Role::Seeks(Kind::Place)),
    ("time", Role::Seeks(Kind::Time)),
    ("reason", Role::Seeks(Kind::Reason)),
    ("manner", Role::Seeks(Kind::Manner)),
    ("amount", Role::Seeks(Kind::Amount)),
];

/// The sections for what an answer asks or does.
const REPLIES: &[(&str, Role)] = &[
    ("more", Role::Asks(Asks::More)),
    ("confirmation", Role::Asks(Asks::Confirmation)),
    ("suggestion", Role::Asks(Asks::Suggestion)),
    ("offer", Role::Asks(Asks::Offer)),
    ("detail", Role::Asks(Asks::Detail)),
    ("actionable", Role::Actionable),
];

impl Role {
    /// The roles that phrases of messages may have, by the names of their sections.
    pub(crate) fn of_messages() -> impl Iterator<Item = (&'static str, Self)> {
        let cues = Cue::NAMES.iter().filter(|(_, cue)| cue.has_phrases());
        cues.map(|(name, cue)| (*name, Self::Cue(*cue)))
            .chain(OTHERS.iter().copied())
    }

    /// Whether only the longest of overlapping phrases with such roles counts.
    pub(crate) fn competes(self) -> bool {
        match self {
            Self::Cue(_)
            | Self::Harmless
            | Self::OwnFault
            | Self::UserFixed
            | Self::Opener
            | Self::Seeks(_)
            | Self::Asks(_) => true,
            Self::Aside
            | Self::Overcome
            | Self::Expected
            | Self::Standing
            | Self::Acknowledgement
            | Self::Question
            | Self::Request
            | Self::Onward
            | Self::Doubt
            | Self::Refers
            | Self::Dummy
            | Self::Actionable => false,
        }
    }

    /// The roles that question words may have, by the names of their sections.
    pub(crate) fn of_questions() -> impl Iterator<Item = (&'static str, Self)> {
        QUESTIONS.iter().copied()
    }

    /// The roles that phrases of answers may have, by the names of their sections.
    pub(crate) fn of_answers() -> impl Iterator<Item = (&'static str, Self)> {
        REPLIES.iter().copied()
    }
}

impl Cue {
    /// Whether it is evidence against the answer.
    pub(crate) fn rejects(self) -> bool {
        match self {
            Self::Negation
            | Self::Correction
            | Self::Wrong
            | Self::Retry
            | Self::Quality
            | Self::Failure
            | Self::Symptom
            | Self::Unasked
            | Self::Confusion
            | Self::Change
            | Self::Contrast
            | Self::Wanted
            | Self::Abandonment
            | Self::Rephrase
            | Self::AskedBefore
            | Self::AnswerRepeated => true,
            Self::Thanks
            | Self::Praise
            | Self::Agreement
            | Self::Chosen
            | Self::Enough
            | Self::FollowUp
            | Self::DrillDown
            | Self::Comparison
            | Self::Addition
            | Self::Unsure
            | Self::Decline
            | Self::Mention
            | Self::NextRequest
            | Self::TopicChange
            | Self::Learned => false,
        }
    }

    /// Whether it accepts by what the user says of the answer, rather than by how the conversation continues.
    pub(crate) fn is_content(self) -> bool {
        matches!(
            self,
            Self::Thanks | Self::Praise | Self::Agreement | Self::Enough
        )
    }

    /// Whether it accepts by continuing from the answer.
    pub(crate) fn goes_on(self) -> bool {
        matches!(
            self,
            Self::FollowUp | Self::DrillDown | Self::Comparison | Self::Addition | Self::Chosen
        )
    }

    /// Whether phrases show it, rather than a comparison with the turn before.
    pub(crate) fn has_phrases(self) -> bool {
        !matches!(
            self,
            Self::Rephrase
                | Self::Mention
                | Self::NextRequest
                | Self::TopicChange
                | Self::Learned
                | Self::AskedBefore
                | Self::AnswerRepeated
        )
    }
}

impl Cue {
    /// The confidence of a verdict with this cue (docs/reference/rules.md, "Confidence of a cue"). The confidence of a
    /// rephrase is its similarity.
    #[must_use]
    pub fn confidence(self) -> f64 {
        match self {
            Self::Negation
            | Self::Correction
            | Self::Wrong
            | Self::Retry
            | Self::Quality
            | Self::Failure
            | Self::Unasked => 0.9,
            Self::Abandonment => 0.85,
            Self::Confusion
            | Self::Change
            | Self::Contrast
            | Self::Rephrase
            | Self::Learned
            | Self::AskedBefore
            | Self::AnswerRepeated => 0.8,
            Self::Symptom | Self::Wanted => 0.75,
            Self::Thanks
            | Self::Praise
            | Self::Agreement
            | Self::Chosen
            | Self::Enough
            | Self::FollowUp
            | Self::DrillDown
            | Self::Comparison
            | Self::Addition
            | Self::Mention => 0.7,
            Self::NextRequest | Self::TopicChange => 0.6,
            Self::Unsure | Self::Decline => 0.5,
        }
    }
}
