//! A change that a user makes: a JSON merge patch (RFC 7396) over the preferences.
//!
//! `null` takes a member back to its default; a member that is left out stays as it is. Members
//! that the schema does not name are ignored, as it leaves them open.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    ArtifactPreference, CodeStyle, CommunicationStyle, Complexity, ContextPreference, DetailLevel,
    Format, GlobalPreferences, Profile, ResponseLength,
};
use crate::identifier::Label;
use crate::parse::{
    Errors, FieldError, Object, boolean, identifier, integer, integer_in, number_in, one_of,
    strings,
};

/// A member of a merge patch: left out, taken back, or set.
#[derive(Debug, Clone, Default, PartialEq)]
enum Change<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

impl<T> Change<T> {
    fn read<'a, E: ToString>(
        object: Object<'a>,
        name: &str,
        errors: &mut Errors,
        read: impl FnOnce(&'a Value) -> Result<T, E>,
    ) -> Self {
        match object.get(name) {
            None => Self::Keep,
            Some(Value::Null) => Self::Clear,
            Some(_) => object
                .optional(name, errors, read)
                .map_or(Self::Keep, Self::Set),
        }
    }

    fn apply(self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = None,
            Self::Set(value) => *to = Some(value),
        }
    }

    fn apply_or(self, to: &mut T, default: T) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = default,
            Self::Set(value) => *to = value,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct ArtifactPatch {
    preferred_complexity: Change<Complexity>,
    preferred_format: Change<Format>,
    average_rating: Change<f64>,
    acceptance_rate: Change<f64>,
    sample_count: Change<u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct ContextPatch {
    agents: Change<Vec<String>>,
    response_length: Change<ResponseLength>,
    code_style: Change<CodeStyle>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct GlobalPatch {
    communication_style: Change<CommunicationStyle>,
    detail_level: Change<DetailLevel>,
    learning_mode: Change<bool>,
}

type ByLabel<T> = Change<BTreeMap<Label, Change<T>>>;

/// Largest preferences that a change may make, in bytes as JSON. An item of the table holds
/// 400 KB, and what is learned needs room as well.
pub const MAX_BYTES: usize = 100_000;

/// The preferences would be larger than [`MAX_BYTES`] after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the preferences would have {measured} bytes, more than {MAX_BYTES}")]
pub struct TooLarge {
    /// Their bytes as JSON.
    pub measured: usize,
}

/// A change that was read and found good.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The version that the change was made on, if the body says so.
    pub on_version: Option<u64>,
    artifacts: ByLabel<ArtifactPatch>,
    contexts: ByLabel<ContextPatch>,
    global: Change<GlobalPatch>,
}

impl Patch {
    /// Reads a change of `user`'s preferences, or says what is wrong with each member.
    pub fn parse(body: &Value, user: &str) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let root = Object::root(body, &mut errors);
        root.optional("userId", &mut errors, |value| {
            if value.as_str() == Some(user) {
                Ok(())
            } else {
                Err("must be the user of the path")
            }
        });
        let patch = Self {
            on_version: root.optional("preferenceVersion", &mut errors, version),
            artifacts: by_label(root, "artifactPreferences", &mut errors, read_artifact),
            contexts: by_label(root, "contextPreferences", &mut errors, read_context),
            global: read_object(root, "globalPreferences", &mut errors, read_global),
        };
        if errors.is_empty() {
            Ok(patch)
        } else {
            Err(errors.into_vec())
        }
    }

    /// The profile after the change, unless the preferences would be larger than can be kept. What is taken
    /// back whole, an artifact type or a context, is forgotten: nothing that was learned of it stays.
    pub fn apply(self, to: &Profile) -> Result<Profile, TooLarge> {
        let changed = self.merged(to);
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
            (
                &mut preferences.artifact_preferences,
                &mut learning.artifacts,
            ),
            apply_artifact,
        );
        merge(
            self.contexts,
            (&mut preferences.context_preferences, &mut learning.contexts),
            apply_context,
        );
        let default = GlobalPreferences::default();
        let global = &mut preferences.global_preferences;
        match self.global {
            Change::Keep => {}
            Change::Clear => *global = default,
            Change::Set(patch) => {
                patch
                    .communication_style
                    .apply_or(&mut global.communication_style, default.communication_style);
                patch
                    .detail_level
                    .apply_or(&mut global.detail_level, default.detail_level);
                patch
                    .learning_mode
                    .apply_or(&mut global.learning_mode, default.learning_mode);
            }
        }
        profile
    }
}

fn version(value: &Value) -> Result<u64, &'static str> {
    integer(value)
        .ok()
        .and_then(|number| u64::try_from(number).ok())
        .ok_or("must be an integer of at least 0")
}

fn read_object<T>(
    parent: Object<'_>,
    name: &str,
    errors: &mut Errors,
    read: impl FnOnce(Object<'_>, &mut Errors) -> T,
) -> Change<T> {
    match parent.get(name) {
        None => Change::Keep,
        Some(Value::Null) => Change::Clear,
        Some(value) => {
            let pointer = parent.pointer(name);
            let object = Object::at(value, &pointer, errors);
            Change::Set(read(object, errors))
        }
    }
}

fn by_label<T>(
    root: Object<'_>,
    name: &str,
    errors: &mut Errors,
    read: impl Fn(Object<'_>, &mut Errors) -> T,
) -> ByLabel<T> {
    read_object(root, name, errors, |entries, errors| {
        let mut changes = BTreeMap::new();
        for (key, _) in entries.members() {
            let change = read_object(entries, key, errors, &read);
            match identifier::<Label>(&Value::String(key.clone())) {
                Ok(label) => {
                    changes.insert(label, change);
                }
                Err(detail) => errors.add(entries.pointer(key), format!("the name {detail}")),
            }
        }
        changes
    })
}

fn read_artifact(artifact: Object<'_>, errors: &mut Errors) -> ArtifactPatch {
    ArtifactPatch {
        preferred_complexity: Change::read(
            artifact,
            "preferredComplexity",
            errors,
            one_of(Complexity::NAMES),
        ),
        preferred_format: Change::read(artifact, "preferredFormat", errors, one_of(Format::NAMES)),
        average_rating: Change::read(artifact, "averageRating", errors, number_in(1.0, 5.0)),
        acceptance_rate: Change::read(artifact, "acceptanceRate", errors, number_in(0.0, 1.0)),
        sample_count: Change::read(artifact, "sampleCount", errors, |value| {
            integer_in(0, i64::MAX)(value)
                .and_then(|n| u64::try_from(n).map_err(|error| error.to_string()))
        }),
    }
}

fn read_context(context: Object<'_>, errors: &mut Errors) -> ContextPatch {
    ContextPatch {
        agents: Change::read(context, "preferredAgents", errors, strings),
        response_length: Change::read(
            context,
            "preferredResponseLength",
            errors,
            one_of(ResponseLength::NAMES),
        ),
        code_style: Change::read(
            context,
            "preferredCodeStyle",
            errors,
            one_of(CodeStyle::NAMES),
        ),
    }
}

fn read_global(global: Object<'_>, errors: &mut Errors) -> GlobalPatch {
    GlobalPatch {
        communication_style: Change::read(
            global,
            "communicationStyle",
            errors,
            one_of(CommunicationStyle::NAMES),
        ),
        detail_level: Change::read(global, "detailLevel", errors, one_of(DetailLevel::NAMES)),
        learning_mode: Change::read(global, "learningMode", errors, boolean),
    }
}

fn merge<P, T: Default, L>(
    changes: ByLabel<P>,
    (to, learned): (&mut BTreeMap<Label, T>, &mut BTreeMap<Label, L>),
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
                match change {
                    Change::Keep => {}
                    Change::Clear => {
                        to.remove(&label);
                        learned.remove(&label);
                    }
                    Change::Set(patch) => apply(patch, to.entry(label).or_default()),
                }
            }
        }
    }
}

fn apply_artifact(patch: ArtifactPatch, to: &mut ArtifactPreference) {
    patch
        .preferred_complexity
        .apply(&mut to.preferred_complexity);
    patch.preferred_format.apply(&mut to.preferred_format);
    patch.average_rating.apply(&mut to.average_rating);
    patch.acceptance_rate.apply(&mut to.acceptance_rate);
    patch.sample_count.apply(&mut to.sample_count);
}

fn apply_context(patch: ContextPatch, to: &mut ContextPreference) {
    patch.agents.apply(&mut to.preferred_agents);
    patch
        .response_length
        .apply(&mut to.preferred_response_length);
    patch.code_style.apply(&mut to.preferred_code_style);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_changes_what_it_names_and_null_takes_it_back() {
        let patch = json!({
            "preferenceVersion": 0,
            "artifactPreferences": {"checklist": {"preferredFormat": "table", "averageRating": 4}},
            "globalPreferences": {"detailLevel": "deep-dive"},
        });
        let first = Patch::parse(&patch, "ada")
            .unwrap()
            .apply(&Profile::default())
            .unwrap();
        let global = &first.preferences.global_preferences;
        assert_eq!(global.detail_level, DetailLevel::DeepDive);
        let back = json!({
            "artifactPreferences": {"checklist": {"preferredFormat": null}},
            "globalPreferences": null,
        });
        let second = Patch::parse(&back, "ada").unwrap().apply(&first).unwrap();
        let second = second.preferences;
        assert_eq!(second.global_preferences, GlobalPreferences::default());
        let checklist = &second.artifact_preferences["checklist"];
        assert_eq!(checklist.preferred_format, None);
        assert_eq!(checklist.average_rating, Some(4.0));
    }

    #[test]
    fn preferences_that_could_not_be_kept_are_refused() {
        let agents: Vec<_> = (0..20).map(|_| "x".repeat(6000)).collect();
        let patch = json!({"contextPreferences": {"review": {"preferredAgents": agents}}});
        let patch = Patch::parse(&patch, "ada").unwrap();
        let large = patch.apply(&Profile::default()).unwrap_err();
        assert!(large.measured > 20 * 6000, "{large}");
    }

    #[test]
    fn a_value_outside_its_set_is_named_by_its_pointer() {
        let patch = json!({
            "userId": "eve",
            "preferenceVersion": -1,
            "artifactPreferences": {"a/b": {"preferredFormat": "origami", "averageRating": 0.5}},
            "contextPreferences": {"review": 3},
            "globalPreferences": {"learningMode": "yes"},
        });
        let errors = Patch::parse(&patch, "ada").unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|e| e.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/userId",
                "/preferenceVersion",
                "/artifactPreferences/a~1b/preferredFormat",
                "/artifactPreferences/a~1b/averageRating",
                "/contextPreferences/review",
                "/globalPreferences/learningMode"
            ]
        );
    }
}
