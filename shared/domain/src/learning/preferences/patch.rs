//! Changes by users: a JSON merge patch (RFC 7396) of the preferences.
//!
//! `null` resets a member to its default; a member that is left out keeps its value. Unknown members are ignored,
//! because the schema is open.
//!
//! A merge of JSON documents (the crate `json-patch`) cannot replace these types: an error must name the member that
//! the caller sent, and removing an artifact type or a context also removes what was learned about it.

use std::collections::BTreeMap;

use hearback_wire::{Change, FieldError, Integer, Number, from_json_with, request};
use serde_json::Value;

use super::{
    ArtifactPreference, CodeStyle, CommunicationStyle, Complexity, ContextPreference, DetailLevel,
    Format, GlobalPreferences, Profile, ResponseLength,
};
use crate::identity::identifier::Label;

/// A non-negative integer.
type Natural = Integer<0, { i64::MAX }>;
/// Changes by name: `null` removes the entry.
type ByLabel<T> = BTreeMap<Label, Option<T>>;

request! {
    /// A change of preferences. A member that is left out is kept; `null` resets it to its default.
    pub struct PreferencesPatch, open {
        /// The version that the change is based on; required unless `If-Match` has it.
        "preferenceVersion" => on_version: optional Natural,
        /// By artifact type.
        "artifactPreferences" => artifacts: changed ByLabel<ArtifactPreferencePatch>,
        /// By task type or project.
        "contextPreferences" => contexts: changed ByLabel<ContextPreferencePatch>,
        /// In all contexts.
        "globalPreferences" => global: changed GlobalPreferencesPatch,
    }
    example {"preferenceVersion": 42, "globalPreferences": {"detailLevel": "deep-dive"}}

    /// A change for one artifact type.
    pub struct ArtifactPreferencePatch, open {
        /// The preferred complexity of artifacts.
        "preferredComplexity" => preferred_complexity: changed Complexity,
        /// The preferred format of artifacts.
        "preferredFormat" => preferred_format: changed Format,
        /// The average rating.
        "averageRating" => average_rating: changed Number<1, 5>,
        /// The acceptance rate.
        "acceptanceRate" => acceptance_rate: changed Number<0, 1>,
        /// The number of events in the averages.
        "sampleCount" => sample_count: changed Natural,
    }

    /// A change for one task type or project.
    pub struct ContextPreferencePatch, open {
        /// The preferred agents.
        "preferredAgents" => agents: changed Vec<String>,
        /// The preferred length of answers.
        "preferredResponseLength" => response_length: changed ResponseLength,
        /// The preferred style of code.
        "preferredCodeStyle" => code_style: changed CodeStyle,
    }

    /// A change of global preferences.
    pub struct GlobalPreferencesPatch, open {
        /// The tone of answers.
        "communicationStyle" => communication_style: changed CommunicationStyle,
        /// The level of detail of answers.
        "detailLevel" => detail_level: changed DetailLevel,
        /// Whether feedback updates preferences.
        "learningMode" => learning_mode: changed bool,
    }
}

/// Maximum size of the preferences after a change, in bytes of JSON. The limit of an item in the table is 400 KB, which
/// also includes what is learned.
pub const MAX_BYTES: usize = 100_000;

/// The change would make the preferences larger than [`MAX_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the preferences would have {measured} bytes, more than {MAX_BYTES}")]
pub struct TooLarge {
    /// The size after the change, in bytes of JSON.
    pub measured: usize,
}

impl PreferencesPatch {
    /// Parses a change of `user`'s preferences and reports all errors at once.
    pub fn parse(body: &Value, user: &str) -> Result<Self, Vec<FieldError>> {
        from_json_with(body, |members, errors| {
            let user_id = members
                .has("userId")
                .then(|| members.peek::<String>("userId"));
            if user_id.is_some_and(|user_id| user_id.as_deref() != Some(user)) {
                errors.add("/userId", "must be the user of the path");
            }
        })
    }

    /// The profile after the change. Removing an artifact type or a context also removes what was learned about it. A
    /// learned value that is sent back unchanged is still a learned one.
    pub fn apply(self, to: &Profile) -> Result<Profile, TooLarge> {
        let mut changed = self.merged(to);
        to.keep_learned(&mut changed.preferences);
        let measured =
            serde_json::to_vec(&changed.preferences).map_or(usize::MAX, |json| json.len());
        if measured <= MAX_BYTES {
            Ok(changed)
        } else {
            Err(TooLarge { measured })
        }
    }

    fn merged(self, to: &Profile) -> Profile {
        let mut profile = to.clone();
        let Profile {
            preferences,
            learning,
        } = &mut profile;
        merge(
            self.artifacts,
            &mut preferences.artifact_preferences,
            &mut learning.artifacts,
            ArtifactPreferencePatch::apply,
        );
        merge(
            self.contexts,
            &mut preferences.context_preferences,
            &mut learning.contexts,
            ContextPreferencePatch::apply,
        );
        let global = &mut preferences.global_preferences;
        match self.global {
            Change::Keep => {}
            Change::Clear => *global = GlobalPreferences::default(),
            Change::Set(patch) => patch.apply(global),
        }
        profile
    }
}

fn merge<P, T: Default, L>(
    changes: Change<ByLabel<P>>,
    to: &mut BTreeMap<Label, T>,
    learned: &mut BTreeMap<Label, L>,
    apply: impl Fn(P, &mut T),
) {
    match changes {
        Change::Keep => {}
        Change::Clear => {
            to.clear();
            learned.clear();
        }
        Change::Set(changes) => {
            for (label, change) in changes {
                if let Some(patch) = change {
                    apply(patch, to.entry(label).or_default());
                } else {
                    to.remove(&label);
                    learned.remove(&label);
                }
            }
        }
    }
}

impl ArtifactPreferencePatch {
    fn apply(self, to: &mut ArtifactPreference) {
        self.preferred_complexity
            .apply(&mut to.preferred_complexity);
        self.preferred_format.apply(&mut to.preferred_format);
        self.average_rating
            .map(|rating| rating.0)
            .apply(&mut to.average_rating);
        self.acceptance_rate
            .map(|rate| rate.0)
            .apply(&mut to.acceptance_rate);
        self.sample_count
            .map(Integer::to)
            .apply(&mut to.sample_count);
    }
}

impl ContextPreferencePatch {
    fn apply(self, to: &mut ContextPreference) {
        self.agents.apply(&mut to.preferred_agents);
        self.response_length
            .apply(&mut to.preferred_response_length);
        self.code_style.apply(&mut to.preferred_code_style);
    }
}

impl GlobalPreferencesPatch {
    fn apply(self, to: &mut GlobalPreferences) {
        let default = GlobalPreferences::default();
        self.communication_style
            .apply_or(&mut to.communication_style, default.communication_style);
        self.detail_level
            .apply_or(&mut to.detail_level, default.detail_level);
        self.learning_mode
            .apply_or(&mut to.learning_mode, default.learning_mode);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_changes_the_members_it_names_and_null_resets_them() {
        let patch = json!({
            "preferenceVersion": 0,
            "artifactPreferences": {"checklist": {"preferredFormat": "table", "averageRating": 4}},
            "globalPreferences": {"detailLevel": "deep-dive"},
        });
        let first = PreferencesPatch::parse(&patch, "ada")
            .unwrap()
            .apply(&Profile::default())
            .unwrap();
        let global = &first.preferences.global_preferences;
        assert_eq!(global.detail_level, DetailLevel::DeepDive);
        let reset = json!({
            "artifactPreferences": {"checklist": {"preferredFormat": null}},
            "globalPreferences": null,
        });
        let second = PreferencesPatch::parse(&reset, "ada")
            .unwrap()
            .apply(&first)
            .unwrap();
        let second = second.preferences;
        assert_eq!(second.global_preferences, GlobalPreferences::default());
        let checklist = &second.artifact_preferences["checklist"];
        assert_eq!(checklist.preferred_format, None);
        assert_eq!(checklist.average_rating, Some(4.0));
    }

    #[test]
    fn preferences_that_are_too_large_are_rejected() {
        let agents: Vec<_> = (0..20).map(|_| "x".repeat(6000)).collect();
        let patch = json!({"contextPreferences": {"review": {"preferredAgents": agents}}});
        let patch = PreferencesPatch::parse(&patch, "ada").unwrap();
        let large = patch.apply(&Profile::default()).unwrap_err();
        assert!(large.measured > 20 * 6000, "{large}");
    }

    #[test]
    fn each_invalid_value_is_reported_with_its_pointer() {
        let patch = json!({
            "userId": "eve",
            "preferenceVersion": -1,
            "artifactPreferences": {"a/b": {"preferredFormat": "origami", "averageRating": 0.5}},
            "contextPreferences": {"review": 3},
            "globalPreferences": {"learningMode": "yes"},
        });
        let errors = PreferencesPatch::parse(&patch, "ada").unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|e| e.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/preferenceVersion",
                "/artifactPreferences/a~1b/preferredFormat",
                "/artifactPreferences/a~1b/averageRating",
                "/contextPreferences/review",
                "/globalPreferences/learningMode",
                "/userId"
            ]
        );
    }
}
