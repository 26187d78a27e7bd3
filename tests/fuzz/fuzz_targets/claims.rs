//! A list of projects is read from its claim as it was written, or the token names no caller.

#![no_main]

use std::collections::HashMap;

use hearback_domain::identity::claims::{ProjectsClaim, caller};
use libfuzzer_sys::fuzz_target;

/// The projects and scopes of a token with these claims.
fn read(projects: &str, scope: &str, form: ProjectsClaim) -> Option<(Vec<String>, Vec<String>)> {
    let claims = [
        ("sub", "ada"),
        ("tenant", "acme"),
        ("projects", projects),
        ("scope", scope),
    ];
    let claims: HashMap<_, _> = claims
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let caller = caller(&claims, form)?;
    Some((
        caller.projects.into_iter().map(Into::into).collect(),
        caller.scopes,
    ))
}

fuzz_target!(|input: &str| {
    let names: Vec<&str> = input.split('\n').collect();
    // A list of names, written in each of the forms.
    let json = serde_json::to_string(&names).unwrap();
    if let Some((projects, _)) = read(&json, "", ProjectsClaim::Json) {
        assert_eq!(projects, names);
    }
    // One name that is empty is written as no name is.
    if !input.is_empty()
        && !input.contains(' ')
        && let Some((projects, _)) =
            read(&format!("[{}]", names.join(" ")), "", ProjectsClaim::List)
    {
        assert_eq!(projects, names);
    }
    if let Some((projects, _)) = read(input, "", ProjectsClaim::Name) {
        assert_eq!(projects, [input]);
    }
    // A claim as it came: each form has one way to write what it reads.
    if let Some((projects, _)) = read(input, "", ProjectsClaim::List) {
        assert_eq!(format!("[{}]", projects.join(" ")), input);
    }
    if let Some((projects, _)) = read(input, "", ProjectsClaim::Json) {
        assert_eq!(
            serde_json::from_str::<Vec<String>>(input).unwrap(),
            projects
        );
    }
    let (_, scopes) = read("[]", input, ProjectsClaim::List).expect("any scope is read");
    let expected: Vec<_> = input.split(' ').filter(|scope| !scope.is_empty()).collect();
    assert_eq!(scopes, expected);
});
