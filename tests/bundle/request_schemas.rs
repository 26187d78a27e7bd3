//! The schemas of requests in the OpenAPI document have the bounds that the parsers check.

use hearback_domain::events::retention::Retention;
use hearback_local::description::openapi;
use serde_json::{Value, json};

#[test]
fn the_openapi_document_has_the_bounds_of_requests() {
    let document = serde_json::to_value(openapi()).unwrap();
    let members = |schema: &str| document["components"]["schemas"][schema]["properties"].clone();
    let is_identifier = |schema: &Value| {
        schema["minLength"] == 1 && schema["maxLength"] == 256 && schema["pattern"].is_string()
    };
    // That of the response is a literal, because the attribute has no place for a constant.
    for (schema, days) in [
        ("PrivacyFlags", "retentionDays"),
        ("EventPrivacy", "retentionDays"),
        ("TurnReportRequest", "days"),
    ] {
        let most = &members(schema)[days]["maximum"];
        assert_eq!(*most, json!(Retention::MAX_DAYS), "{schema}");
    }
    let (context, turn) = (members("FeedbackEventContext"), members("TurnRequest"));
    for (name, member) in context.as_object().unwrap() {
        assert!(name == "labels" || is_identifier(member), "{name}");
    }
    for name in ["user_id", "trace_id", "agent_id", "strategy", "task_type"] {
        assert!(is_identifier(&turn[name]), "{name}");
    }
    assert!(is_identifier(&members("Answer")["message_id"]));
    for labels in [&context["labels"], &turn["labels"]] {
        assert_eq!(labels["maxProperties"], 16);
        let key = &labels["propertyNames"]["pattern"];
        assert_eq!(*key, "^[A-Za-z0-9_.-]{1,64}$");
        assert!(is_identifier(&labels["additionalProperties"]));
    }
    for schema in ["TurnRequest", "InferRequest", "StrategySearchRequest"] {
        let embedding = &members(schema)["embedding"];
        let bounds = (&embedding["minItems"], &embedding["maxItems"]);
        assert_eq!(bounds, (&json!(1), &json!(4096)), "{schema}");
    }
    for schema in ["TimelineRequest", "TurnReportRequest"] {
        let turns = &members(schema)["turn_ids"];
        assert_eq!(turns["maxItems"], 1000, "{schema}");
        assert!(is_identifier(&turns["items"]), "{schema}");
    }
    let list = &document["paths"]["/conversations/{tenant}/{project}/turns"]["get"];
    let mut parameters = list["parameters"].as_array().unwrap().iter();
    let status = parameters.find(|parameter| parameter["name"] == "user_feedback_status");
    let statuses = &status.unwrap()["schema"]["enum"];
    assert_eq!(*statuses, json!(["rejected", "accepted"]));
}
