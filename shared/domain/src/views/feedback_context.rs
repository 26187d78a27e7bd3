//! The feedback on a turn for a planner: section 2 of its context, as Markdown or as JSON.
//!
//! See docs/reference/planner-context.md. It contains only facts: the reason of a rejection is never guessed.

use std::fmt::Write;

use serde::Serialize;
use utoipa::ToSchema;

use crate::feedback::follow_up::{FollowUpCorrection, UserFeedback};
use crate::feedback::message_signal::MessageSignal;
use crate::feedback::sequence::Sequence;
use crate::learning::preferences::{CommunicationStyle, DetailLevel};
use crate::text::prompt::{self, one_line};
use crate::turns::turn::{Summary, TurnCore};
use hearback_detection::FeedbackStatus;

/// The feedback on a turn, for a planner.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FeedbackContext {
    /// The turn.
    pub turn_id: String,
    /// The user's verdict.
    pub status: FeedbackStatus,
    /// The confidence of the verdict, 0 to 1.
    pub confidence: f64,
    /// Details of the rejection; `null` if the turn was not rejected.
    #[schema(required = true)]
    pub rejection: Option<Rejection>,
}

/// Why a turn was rejected, and instructions for the planner.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Rejection {
    /// How the rejection was detected.
    pub detected_by: DetectedBy,
    /// The turn whose message rejects this one, if any.
    #[schema(required = true)]
    pub detected_in_turn: Option<String>,
    /// How the user's message rejects the turn, if one does.
    #[schema(required = true)]
    pub correction_type: Option<FollowUpCorrection>,
    /// What the user wrote, if anything.
    #[schema(required = true)]
    pub user_said: Option<String>,
    /// The strategy that failed, if it is known.
    #[schema(required = true)]
    pub previous_strategy: Option<PreviousStrategy>,
    /// What went wrong, if it is known.
    #[schema(required = true)]
    pub what_went_wrong: Option<String>,
    /// Instructions for the planner, one sentence each.
    pub instructions: Vec<String>,
    /// The number of consecutive rejections.
    #[serde(flatten)]
    pub sequence: Sequence,
    /// A summary of the turn.
    pub conversation: Conversation,
    /// The preferences of the session: the user's own, or the defaults for any other reader.
    pub preferences: SessionPreferences,
}

/// How a rejection was detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DetectedBy {
    /// By explicit feedback of the turn's user.
    User,
    /// By the message of the next turn.
    FollowUp,
    /// By a message that is not a turn, or by a machine reaction.
    Message,
}

/// A strategy and the query that it was used for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PreviousStrategy {
    /// The name of the strategy.
    pub name: String,
    /// The query.
    pub query: String,
}

/// A summary of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Conversation {
    /// The user's message.
    pub user: String,
    /// The answer.
    pub assistant: String,
}

/// How the user prefers to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct SessionPreferences {
    /// The tone.
    pub communication_style: CommunicationStyle,
    /// The level of detail.
    pub detail_level: DetailLevel,
}

/// The explicit rejections of the turn's user that later feedback does not settle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExplicitRejection<'a> {
    /// The texts of the reaction and the comments of events, the latest first. The reason of a message signal is that of
    /// the signal.
    pub words: &'a [&'a str],
    /// The latest of these words and of the reasons of message signals.
    pub user_said: Option<&'a str>,
}

/// The feedback that a rejection is based on.
#[derive(Debug, Clone, Copy)]
pub struct RejectionFacts<'a> {
    /// The explicit rejections by the turn's user, if the latest feedback is one.
    pub explicit: Option<ExplicitRejection<'a>>,
    /// The inferred feedback, if it is a rejection.
    pub inferred: Option<&'a UserFeedback>,
    /// The user's signals on the answer, each with its reason, without those that later feedback settles.
    pub signals: &'a [(MessageSignal, Option<&'a str>)],
    /// The number of consecutive rejections.
    pub sequence: Sequence,
}

impl RejectionFacts<'_> {
    /// The user's comments on the answer itself, the latest first.
    fn comments(&self) -> Vec<&str> {
        let explicit = self.explicit.map_or(&[][..], |explicit| explicit.words);
        let words = explicit.iter().filter(|text| !text.trim().is_empty());
        let mut comments: Vec<&str> = words.copied().collect();
        if comments.is_empty() {
            // The text of a machine reaction without a correction type is about the answer, too.
            let inferred = self
                .inferred
                .filter(|inferred| inferred.correction_type.is_none());
            comments.extend(inferred.and_then(|inferred| inferred.user_said.as_deref()));
        }
        comments
    }

    /// The negative signals, in words, each with its reason.
    fn complaints(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        self.signals.iter().filter_map(|(signal, reason)| {
            let complaint = match signal {
                MessageSignal::NotHelpful => "not helpful",
                MessageSignal::Inaccurate => "inaccurate",
                MessageSignal::Unsafe => "unsafe",
                MessageSignal::Helpful | MessageSignal::Edit | MessageSignal::Regenerate => {
                    return None;
                }
            };
            Some((complaint, *reason))
        })
    }

    fn correction(&self) -> Option<FollowUpCorrection> {
        self.inferred.and_then(|inferred| inferred.correction_type)
    }

    fn user_said(&self) -> Option<String> {
        let inferred = || {
            self.inferred
                .and_then(|inferred| inferred.user_said.as_deref())
        };
        let reason = || self.complaints().find_map(|(_, reason)| reason);
        let latest = self.explicit.and_then(|explicit| explicit.user_said);
        let comment = || self.comments().first().copied();
        let text = latest.or_else(comment).or_else(inferred).or_else(reason);
        text.map(ToOwned::to_owned)
    }

    fn what_went_wrong(&self) -> Option<String> {
        // In quotes, a user's words cannot continue with what the system would say.
        let mut problems: Vec<String> = (self.comments().into_iter()).map(prompt::quoted).collect();
        for (complaint, reason) in self.complaints() {
            let reason = reason.map_or_else(String::new, |reason| {
                format!(": {}", prompt::quoted(reason))
            });
            problems.push(format!("The user marked the answer as {complaint}{reason}"));
        }
        let correction = self.correction().map(|correction| match correction {
            FollowUpCorrection::ExplicitCorrection => {
                "The user says that the answer is wrong, or not what they asked for"
            }
            FollowUpCorrection::Rephrased => {
                "The answer did not settle the question: the user asks the same again"
            }
            FollowUpCorrection::Abandonment => "The user gave up on this approach",
        });
        problems.extend(correction.map(ToOwned::to_owned));
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    /// Instructions for the planner after the rejection of a turn.
    fn instructions(&self, turn: &str) -> Vec<String> {
        let mut instructions = vec![format!(
            "Do NOT reuse the strategy from Turn {}",
            number(turn)
        )];
        let message = self
            .inferred
            .and_then(|inferred| inferred.user_said.as_deref());
        let quoted = message.map_or_else(String::new, |message| {
            format!(": {}", prompt::quoted(message))
        });
        instructions.extend(self.correction().map(|correction| match correction {
            FollowUpCorrection::ExplicitCorrection => format!("Follow the user's correction{quoted}"),
            FollowUpCorrection::Rephrased => format!("Answer the question that the user asks again, in another way than before{quoted}"),
            FollowUpCorrection::Abandonment => {
                "Do not go on with what the user gave up; help with what they turn to, or ask what they want instead".to_owned()
            }
        }));
        instructions.extend(self.comments().into_iter().map(|comment| {
            let quoted = prompt::quoted(comment);
            format!("Take the user's comment into account: {quoted}")
        }));
        for (signal, _) in self.signals {
            let instruction = match signal {
                MessageSignal::Inaccurate => "Check the facts before you state them again",
                MessageSignal::Unsafe => "Leave out what the user marked as unsafe",
                MessageSignal::NotHelpful
                | MessageSignal::Helpful
                | MessageSignal::Edit
                | MessageSignal::Regenerate => continue,
            };
            instructions.push(instruction.to_owned());
        }
        let advice = self.sequence.advice();
        instructions.extend(advice.map(|advice| format!("{advice}; consider CLARIFY")));
        instructions
    }
}

impl Rejection {
    /// The details of the rejection of a turn.
    #[must_use]
    pub fn of(
        turn: &TurnCore,
        summary: &Summary,
        known: RejectionFacts<'_>,
        preferences: SessionPreferences,
    ) -> Self {
        let detected_in = known
            .inferred
            .and_then(|inferred| inferred.detected_in_turn.as_ref());
        let detected_in = detected_in.filter(|_| known.explicit.is_none());
        let detected_by = match (known.inferred, detected_in) {
            (Some(_), Some(_)) => DetectedBy::FollowUp,
            (Some(_), None) if known.explicit.is_none() => DetectedBy::Message,
            (Some(_) | None, _) => DetectedBy::User,
        };
        Self {
            detected_by,
            detected_in_turn: detected_in.map(ToString::to_string),
            correction_type: known.correction(),
            user_said: known.user_said(),
            previous_strategy: turn.strategy.as_ref().map(|strategy| PreviousStrategy {
                name: strategy.to_string(),
                query: summary.user.clone(),
            }),
            what_went_wrong: known.what_went_wrong(),
            instructions: known.instructions(turn.at.turn.as_str()),
            sequence: known.sequence,
            conversation: Conversation {
                user: summary.user.clone(),
                assistant: summary.assistant.clone(),
            },
            preferences,
        }
    }

    fn write(&self, turn: &str, out: &mut String) -> std::fmt::Result {
        let rejected = number(turn);
        match (
            self.detected_by,
            self.detected_in_turn.as_deref().map(number),
        ) {
            (DetectedBy::FollowUp, Some(detected_in)) => writeln!(
                out,
                "**Detected:** Turn {detected_in} detected that Turn {rejected} was rejected"
            )?,
            (DetectedBy::FollowUp | DetectedBy::Message, _) => writeln!(
                out,
                "**Detected:** A later message rejected Turn {rejected}"
            )?,
            (DetectedBy::User, _) => {
                writeln!(out, "**Detected:** The user rejected Turn {rejected}")?;
            }
        }
        if let Some(text) = &self.user_said {
            writeln!(out, "**User said:** {}", prompt::quoted(text))?;
        }
        if let Some(PreviousStrategy { name, query }) = &self.previous_strategy {
            let (name, query) = (prompt::name(name), prompt::quoted(query));
            writeln!(out, "**Previous strategy:** {name} with query {query}")?;
        }
        if let Some(problem) = &self.what_went_wrong {
            writeln!(out, "**What went wrong:** {}", one_line(problem))?;
        }
        writeln!(out, "\n**Instruction for Planner:**")?;
        for instruction in &self.instructions {
            writeln!(out, "- {}", one_line(instruction))?;
        }
        let Conversation { user, assistant } = &self.conversation;
        writeln!(out, "\n### Conversation Context")?;
        writeln!(
            out,
            "- User: {}\n- Assistant: {}",
            one_line(user),
            one_line(assistant)
        )?;
        let SessionPreferences {
            communication_style,
            detail_level,
        } = self.preferences;
        writeln!(out, "\n### Session Preferences")?;
        writeln!(
            out,
            "- communication style: {}",
            communication_style.as_str()
        )?;
        writeln!(out, "- detail level: {}", detail_level.as_str())
    }
}

impl FeedbackContext {
    /// The section as Markdown, with a line feed after each line. Users' texts stay on one line, so that they cannot
    /// forge a part of the section.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let status = self.status.as_str().to_uppercase();
        let mut out = format!("{HEAD}**Status:** {status}\n");
        if let Some(rejection) = &self.rejection {
            // Writing to a string cannot fail.
            let _ = rejection.write(&self.turn_id, &mut out);
        }
        out
    }
}

/// The beginning of the section.
const HEAD: &str = "## 2. Gathered Context\n\n### Previous Response Feedback\n";

/// The number in a turn id such as `turn_001234`; any other id unchanged.
fn number(turn: &str) -> String {
    let digits = turn
        .strip_prefix("turn_")
        .map(|id| id.trim_start_matches('0'));
    let number = digits.filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()));
    prompt::name(number.unwrap_or(turn))
}

#[cfg(test)]
mod tests;
