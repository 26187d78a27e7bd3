//! A user's reactions in a conversation, and the user to whom an unreadable reaction belongs.
//!
//! The key of a user's reaction and of a message signal names its user. That of a machine reaction or of an event names
//! its feedback act only: it is the user's if the act or the turn is.

use std::collections::BTreeSet;

use hearback_domain::export::erasure::ErasureIds;
use hearback_domain::identity::identifier::{TurnId, UserId};
use hearback_domain::turns::turn::{ConversationRef, TurnRef};
use uuid::Uuid;

use super::RowGroup;
use super::kept::text_names;
use crate::item::Item;
use crate::keys::{ReactionAuthor, ReactionKey};
use crate::reactions::{KeyRange, ReactionRow, row};
use crate::reads::{self, Key};
use crate::{Error, Store, keys, turn_rows};

/// A user's reaction, or feedback that counts as one.
#[derive(Debug, Clone, PartialEq)]
pub struct UserReaction {
    /// The turn; `None` if the row cannot be read and neither its key nor the turn's row names the turn.
    pub at: Option<TurnRef>,
    /// The feedback act; `None` if it is not known, or the reaction is of an older system.
    pub act: Option<Uuid>,
    /// Whether it is a message signal or event that counts as a reaction, and is stored elsewhere.
    pub counted: bool,
    /// Its row.
    pub unit: RowGroup,
}

/// A user's reactions in a conversation.
#[derive(Debug, Default)]
pub struct UserReactions {
    own: Vec<UserReaction>,
    unknown: Vec<UnknownReaction>,
}

/// A row that cannot be read and whose key names no user.
#[derive(Debug)]
struct UnknownReaction {
    /// The turn, as in keys.
    turn: String,
    reaction: UserReaction,
}

impl UserReactions {
    /// Whether there are rows that belong to the user only according to the traces.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// The user's reactions, including unreadable rows whose acts or turns are the user's.
    #[must_use]
    pub fn with_traced(self, within: &ConversationRef, traces: &ErasureIds) -> Vec<UserReaction> {
        let (project, conversation) = (within.project.as_str(), within.conversation.as_str());
        let is_here = |(of_project, of_conversation, _): &&(String, String, String)| {
            of_project == project && of_conversation == conversation
        };
        let turns = traces.turns.iter().filter(|_| self.has_unknown());
        let turns: BTreeSet<String> = turns
            .filter(is_here)
            .map(|(_, _, turn)| keys::reaction_part(turn))
            .collect();
        let known = self.unknown.into_iter().filter(|unknown| {
            let is_traced = |act| traces.acts.contains(&act);
            unknown.reaction.act.is_some_and(is_traced) || turns.contains(&unknown.turn)
        });
        let known = known.map(|unknown| unknown.reaction);
        self.own.into_iter().chain(known).collect()
    }
}

impl Store {
    /// A user's reactions in a conversation, including machine reactions, those of an older system,
    /// and feedback that counts as a reaction. One call for each MB; one more for each hundred turns with long names
    /// whose reactions cannot be read.
    pub async fn reactions_by(
        &self,
        user: &UserId,
        within: &ConversationRef,
    ) -> Result<UserReactions, Error> {
        let mut found = UserReactions::default();
        // By the row of the turn, which a key with a digest does not name.
        let mut unnamed: Vec<(Key, UserReaction)> = Vec::new();
        let mut from = None;
        loop {
            let span = KeyRange::from(None);
            let (page, next) = self.reaction_page(within, &span, from).await?;
            for item in &page {
                let Some(key) = reads::key_of(item) else {
                    continue;
                };
                let unit = RowGroup::of(key.clone(), []);
                let row = row(item);
                let counted = matches!(row, ReactionRow::Counted(_));
                match row {
                    ReactionRow::Reaction(reaction) | ReactionRow::Counted(reaction) => {
                        if reaction.core.user_id == *user {
                            found.own.push(UserReaction {
                                at: Some(turn_in(within, reaction.core.at.turn)),
                                act: Some(reaction.core.id),
                                counted,
                                unit,
                            });
                        }
                    }
                    ReactionRow::Legacy(..) | ReactionRow::Unreadable => {
                        let Some(named) = keys::reaction_key(&key.1) else {
                            continue;
                        };
                        let reaction = by_key(within, &named, unit);
                        if named.is_by(user) || text_names(item, "user_id", user) {
                            if reaction.at.is_none() {
                                let turn = format!("{}{}", keys::TURN_PREFIX, named.turn);
                                unnamed.push(((key.0, turn), reaction));
                            } else {
                                found.own.push(reaction);
                            }
                        } else if !matches!(named.author, ReactionAuthor::User(_)) {
                            let turn = named.turn.to_owned();
                            found.unknown.push(UnknownReaction { turn, reaction });
                        }
                    }
                }
            }
            from = next;
            if from.is_none() {
                break;
            }
        }
        found.own.extend(self.with_turns(unnamed).await?);
        Ok(found)
    }

    /// Adds the turns of reactions, by the turns' rows.
    async fn with_turns(
        &self,
        mut unnamed: Vec<(Key, UserReaction)>,
    ) -> Result<Vec<UserReaction>, Error> {
        let turns: BTreeSet<Key> = unnamed.iter().map(|(turn, _)| turn.clone()).collect();
        let turns: Vec<Key> = turns.into_iter().collect();
        let rows = self.get_batch(&turns).await?;
        for (turn, row) in turns.iter().zip(rows) {
            let core = row.and_then(|row| turn_rows::core(&row).ok());
            let at = core.map(|core| core.at);
            for (_, reaction) in unnamed.iter_mut().filter(|(of, _)| of == turn) {
                reaction.at.clone_from(&at);
            }
        }
        Ok(unnamed.into_iter().map(|(_, reaction)| reaction).collect())
    }
}

fn turn_in(within: &ConversationRef, turn: TurnId) -> TurnRef {
    let within = within.clone();
    TurnRef { within, turn }
}

/// What the key of a reaction shows.
fn by_key(within: &ConversationRef, named: &ReactionKey<'_>, unit: RowGroup) -> UserReaction {
    let turn = keys::named(named.turn).and_then(|turn| TurnId::try_from(turn).ok());
    UserReaction {
        at: turn.map(|turn| turn_in(within, turn)),
        act: match named.author {
            ReactionAuthor::Act(act) => Some(act),
            ReactionAuthor::User(_) | ReactionAuthor::Unknown => None,
        },
        counted: named.counted,
        unit,
    }
}

/// Whether the key of an unreadable reaction, or the readable part of its text, names the user.
pub(super) fn is_by(item: &Item, user: &UserId) -> bool {
    let key = reads::key_of(item);
    let named = key.as_ref().and_then(|(_, sk)| keys::reaction_key(sk));
    named.is_some_and(|named| named.is_by(user)) || text_names(item, "user_id", user)
}
