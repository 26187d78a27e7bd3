//! The claims of a token as API Gateway passes them on: each is a string, and an array becomes `[a b]`.
//!
//! Each claim has an exact grammar, and a token whose claims do not match it is rejected: a project name that could be
//! parsed in two ways would give the users of one project access to another.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::identity::caller::Caller;
use crate::identity::identifier::ProjectId;

/// The format of the claim `projects`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProjectsClaim {
    /// An array as API Gateway passes it on: `[support billing]`. Names cannot contain spaces, brackets or quotes.
    #[default]
    List,
    /// A string with a JSON array: `["support", "my project"]`. Names may contain any character.
    Json,
    /// The name of one project.
    Name,
}

impl ProjectsClaim {
    /// The projects in a claim; `None` if it does not have this format.
    fn read(self, claim: &str) -> Option<Vec<ProjectId>> {
        let names: Vec<Cow<'_, str>> = match self {
            Self::List => {
                let names = claim.strip_prefix('[')?.strip_suffix(']')?;
                let names: Vec<_> = match names {
                    "" => Vec::new(),
                    names => names.split(' ').map(Cow::Borrowed).collect(),
                };
                let reserved = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '"');
                if names.iter().any(|name| name.contains(reserved)) {
                    return None;
                }
                names
            }
            Self::Json => serde_json::from_str(claim).ok()?,
            Self::Name => vec![Cow::Borrowed(claim)],
        };
        let names = names.iter().map(|name| name.as_ref().try_into());
        names.collect::<Result<_, _>>().ok()
    }
}

/// The caller with these claims. `None` without a user or a tenant, or if a claim does not match its grammar.
#[must_use]
#[expect(clippy::implicit_hasher, reason = "the claims come in this map")]
pub fn caller(claims: &HashMap<String, String>, form: ProjectsClaim) -> Option<Caller> {
    let claim = |name: &str| claims.get(name).map(String::as_str);
    Some(Caller {
        user: claim("sub")?.try_into().ok()?,
        tenant: claim("tenant")?.try_into().ok()?,
        projects: match claim("projects") {
            Some(projects) => form.read(projects)?,
            None => Vec::new(),
        },
        // RFC 6749: scopes are separated by spaces, and by no other character.
        scopes: (claim("scope").unwrap_or_default().split(' '))
            .filter(|scope| !scope.is_empty())
            .map(ToOwned::to_owned)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(form: ProjectsClaim, claim: &str) -> Option<Vec<String>> {
        let read = form.read(claim)?;
        Some(read.into_iter().map(Into::into).collect())
    }

    #[test]
    fn a_claim_is_parsed_only_in_its_own_format() {
        use ProjectsClaim::{Json, List, Name};
        let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        assert_eq!(
            read(List, "[support billing]"),
            names(&["support", "billing"])
        );
        assert_eq!(read(List, "[]"), names(&[]));
        assert_eq!(
            read(Json, r#"["my project", "b"]"#),
            names(&["my project", "b"])
        );
        assert_eq!(read(Json, "[]"), names(&[]));
        assert_eq!(read(Name, "[victim]"), names(&["[victim]"]));
        for (form, claim) in [
            (List, ""),
            (List, "victim"),
            (List, "[[victim]]"),
            (List, r#"["victim"]"#),
            (List, r#"[""victim""]"#),
            (List, "[x\u{a0}victim]"),
            (List, "[x\tvictim]"),
            (List, "[a  b]"),
            (List, "[ a]"),
            (List, "[a"),
            (Json, "[victim]"),
            (Json, r#"[["victim"]]"#),
            (Json, r#""victim""#),
            (Json, r#"["victim", 1]"#),
            (Json, ""),
            (Name, ""),
        ] {
            assert_eq!(read(form, claim), None, "{form:?} {claim:?}");
        }
    }

    #[test]
    fn scopes_are_separated_by_spaces_only() {
        let claims = |scope: &str| {
            let claims = [("sub", "ada"), ("tenant", "acme"), ("scope", scope)];
            claims
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        };
        let scopes = |scope| caller(&claims(scope), ProjectsClaim::List).unwrap().scopes;
        assert_eq!(scopes("a  feedback:report"), ["a", "feedback:report"]);
        for hidden in [
            "a\u{a0}feedback:admin",
            "a\tfeedback:admin",
            "[feedback:admin]",
        ] {
            assert_eq!(scopes(hidden), [hidden]);
        }
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            r#"[\[\]" ,a-b\u{a0}\u{2003}\t\\]{1,8}"#,
            "[a-z0-9_.-]{1,12}",
            "\\PC{1,20}",
        ]
    }

    proptest! {
        /// A serialized list of names gives exactly these projects, or none.
        #[test]
        fn a_project_name_never_parses_as_another_project(names in prop::collection::vec(name(), 0..5)) {
            let json = serde_json::to_string(&names).unwrap();
            if let Some(read) = read(ProjectsClaim::Json, &json) {
                prop_assert_eq!(&read, &names);
            }
            // In this format, a name with a space cannot be distinguished from two names.
            if !names.iter().any(|name| name.contains(' ')) {
                let list = format!("[{}]", names.join(" "));
                if let Some(read) = read(ProjectsClaim::List, &list) {
                    prop_assert_eq!(&read, &names);
                }
            }
            for name in names {
                if let Some(read) = read(ProjectsClaim::Name, &name) {
                    prop_assert_eq!(read, [name]);
                }
            }
        }
    }
}
