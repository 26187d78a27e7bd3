//! `template.yaml`, to hold against.

use serde_json::{Value, json};
use serde_yaml_ng::Value as Yaml;

/// The template as JSON; CloudFormation's tags (`!Sub x`) become `{"Sub": x}`.
pub fn template() -> Value {
    let text = include_str!("../../template.yaml");
    untagged(serde_yaml_ng::from_str(text).unwrap())
}

fn untagged(yaml: Yaml) -> Value {
    match yaml {
        Yaml::Tagged(tagged) => {
            let name = tagged.tag.to_string();
            json!({ name.trim_start_matches('!'): untagged(tagged.value) })
        }
        Yaml::Mapping(members) => members
            .into_iter()
            .map(|(name, value)| (name.as_str().unwrap().to_owned(), untagged(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Yaml::Sequence(items) => items.into_iter().map(untagged).collect(),
        other => serde_json::to_value(other).unwrap(),
    }
}

/// Resources of a kind, with their names.
pub fn resources(kind: &str) -> Vec<(String, Value)> {
    let template = template();
    let all = template["Resources"].as_object().unwrap().clone();
    all.into_iter()
        .filter(|(_, resource)| resource["Type"] == kind)
        .collect()
}

/// The properties of a resource.
pub fn resource(name: &str) -> Value {
    template()["Resources"][name]["Properties"].clone()
}
