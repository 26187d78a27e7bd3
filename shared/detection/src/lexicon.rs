//! The phrases of one language, compiled: a vocabulary, and a tree of steps that match the words of a text.
//!
//! A step matches at most one word, and phrases have at most twelve steps and skip at most two fillers. So the work for
//! each word is bounded, and matching is linear in the text.

use crate::cue::Role;
use crate::pattern::Pattern;
use crate::synonyms::Synonyms;
use crate::tree::{Ending, ROOT, Tree};
use crate::vocabulary::Vocabulary;

/// How many bytes of a file result in one node of the tree, approximately.
const BYTES_OF_NODE: usize = 8;

/// The phrases of one language.
#[derive(Debug, Clone)]
pub(crate) struct Lexicon {
    /// Its words.
    pub vocabulary: Vocabulary,
    /// Words with the same meaning.
    pub synonyms: Synonyms,
    /// Phrases of messages.
    pub messages: Tree,
    /// Phrases of answers.
    pub answers: Tree,
    /// Question words.
    pub questions: Tree,
}

impl Lexicon {
    /// A lexicon without phrases, with capacity for a file of this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let room = bytes / BYTES_OF_NODE;
        Self {
            vocabulary: Vocabulary::new(),
            synonyms: Synonyms::default(),
            messages: Tree::new(room),
            answers: Tree::new(room / 8),
            questions: Tree::new(room / 64),
        }
    }

    /// Adds a phrase.
    pub(crate) fn phrase(&mut self, role: Role, written: &str) -> Result<(), String> {
        let pattern = Pattern::read(written)?;
        let tree = match role {
            Role::Asks(_) | Role::Actionable => &mut self.answers,
            Role::Seeks(_) => &mut self.questions,
            Role::Cue(_)
            | Role::Harmless
            | Role::OwnFault
            | Role::UserFixed
            | Role::Aside
            | Role::Overcome
            | Role::Expected
            | Role::Standing
            | Role::Acknowledgement
            | Role::Opener
            | Role::Question
            | Role::Request
            | Role::Onward
            | Role::Doubt
            | Role::Refers
            | Role::Dummy => &mut self.messages,
        };
        let mut labels = Vec::new();
        let mut reached = vec![ROOT];
        let mut next = Vec::new();
        for alternatives in pattern.elements() {
            for way in alternatives {
                labels.clear();
                for step in way {
                    self.vocabulary.labels(*step, &mut labels)?;
                }
                let way = reached.iter().map(|node| tree.way(*node, &labels));
                next.extend(way);
            }
            next.sort_unstable();
            next.dedup();
            tree.join(&mut next);
            reached.clone_from(&next);
            next.clear();
        }
        for node in reached {
            let ending = Ending {
                role,
                start: pattern.start,
                end: pattern.end,
            };
            tree.end(node, ending);
        }
        Ok(())
    }
}
