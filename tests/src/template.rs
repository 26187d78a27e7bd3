//! `template.yaml`, for comparison.

use serde_json::{Map, Value, json};
use serde_yaml_ng::Value as Yaml;

/// The template as JSON, with its loops expanded; CloudFormation's tags (`!Sub x`) become `{"Sub": x}`.
pub fn template() -> Value {
    let text = include_str!("../../template.yaml");
    let mut template = untagged(serde_yaml_ng::from_str(text).unwrap());
    for section in ["Resources", "Outputs"] {
        template[section] = expanded(&template[section], &template["Mappings"]);
    }
    template
}

/// A section in which each `Fn::ForEach` is replaced by what it creates.
fn expanded(section: &Value, mappings: &Value) -> Value {
    let mut all = Map::new();
    for (name, value) in section.as_object().unwrap() {
        if !name.starts_with("Fn::ForEach::") {
            all.insert(name.clone(), value.clone());
            continue;
        }
        let variable = value[0].as_str().unwrap();
        for item in value[1].as_array().unwrap() {
            let variables = json!({ variable: item });
            for (name, body) in value[2].as_object().unwrap() {
                let name = substituted(name, &variables);
                let earlier = all.insert(name.clone(), evaluated(body, &variables, mappings));
                assert!(earlier.is_none(), "two loops create {name}");
            }
        }
    }
    Value::Object(all)
}

/// A value of a loop's body, with the functions evaluated that use the loop's variable.
fn evaluated(value: &Value, variables: &Value, mappings: &Value) -> Value {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(items) => {
            let items = items.iter();
            return items
                .map(|item| evaluated(item, variables, mappings))
                .collect();
        }
        other => return other.clone(),
    };
    let members: Map<_, _> = members
        .iter()
        .map(|(name, member)| (name.clone(), evaluated(member, variables, mappings)))
        .collect();
    let mut functions = members.iter().filter(|_| members.len() == 1);
    match functions
        .next()
        .map(|(name, argument)| (name.as_str(), argument))
    {
        Some(("Ref", Value::String(to))) if variables[to].is_string() => variables[to].clone(),
        Some(("FindInMap", argument)) => {
            let [map, key, attribute] = [0, 1, 2].map(|at| argument[at].as_str().unwrap());
            let found = &mappings[map][key][attribute];
            assert!(!found.is_null(), "no mapping has {argument}");
            found.clone()
        }
        Some(("Sub", argument)) => {
            let (text, more) = match argument {
                Value::Array(argument) => (&argument[0], argument[1].clone()),
                text => (text, json!({})),
            };
            let text = substituted(text.as_str().unwrap(), variables);
            let text = substituted(&text, &more);
            if text.contains("${") {
                json!({ "Sub": text })
            } else {
                text.into()
            }
        }
        Some(("GetAtt", Value::Array(argument))) => {
            let [resource, attribute] = [0, 1].map(|at| argument[at].as_str().unwrap());
            json!({ "GetAtt": format!("{resource}.{attribute}") })
        }
        _ => Value::Object(members),
    }
}

/// A text in which the value of each variable replaces `${variable}`.
fn substituted(text: &str, variables: &Value) -> String {
    let variables = variables.as_object().unwrap().iter();
    variables.fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("${{{name}}}"), value.as_str().unwrap())
    })
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
            .collect::<Map<_, _>>()
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

/// The items of a list, or the single value that replaces it; the template may have either.
pub fn each(value: &Value) -> Vec<Value> {
    value
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![value.clone()])
}
