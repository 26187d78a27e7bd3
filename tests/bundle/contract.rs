//! Things that are defined twice are equal: template, routers, OpenAPI and the local stack.

use std::collections::{BTreeMap, BTreeSet};

use hearback_detection as detection;
use hearback_domain::events::event::{Channel, FeedbackType};
use hearback_domain::learning::preferences::{CommunicationStyle, DetailLevel};
use hearback_domain::learning::publication::Subject;
use hearback_lambda::queue::{LAST_RECEIVES, OUTLET_RECEIVES, REDRIVE_RECEIVES};
use hearback_local::description::openapi;
use hearback_local::names::Names;
use hearback_local::provision::SUBJECT_RECEIVES;
use hearback_operations::DeadLetterQueue;
use hearback_storage::stream::{RESULTS, SUBMITTED};
use hearback_storage::table::{EXPIRES_AT, INDEXES, PK, SK};
use hearback_tests::app::TestApp;
use hearback_tests::template::{resource, resources};
use serde_json::{Value, json};

/// Method and path of each HTTP route of the template, with the function that has it.
fn template_routes() -> BTreeSet<(String, String, String)> {
    let mut routes = BTreeSet::new();
    for (function, resource) in resources("AWS::Serverless::Function") {
        let Some(events) = resource["Properties"]["Events"].as_object() else {
            continue;
        };
        for event in events.values().filter(|event| event["Type"] == "HttpApi") {
            let properties = &event["Properties"];
            let method = properties["Method"].as_str().unwrap().to_uppercase();
            let path = properties["Path"].as_str().unwrap().to_owned();
            routes.insert((method, path, function.clone()));
        }
    }
    routes
}

/// Method and path of each operation of the routers, with the function that has it.
fn router_operations() -> BTreeSet<(String, String, String)> {
    let described = [
        ("SubmitFunction", hearback_submit::routes().description()),
        ("BatchFunction", hearback_batch::routes().description()),
        (
            "RetrievalFunction",
            hearback_retrieval::routes().description(),
        ),
        ("TurnsFunction", hearback_turns::routes().description()),
        (
            "PreferencesFunction",
            hearback_preferences::routes().description(),
        ),
        ("ErasureFunction", hearback_erasure::routes().description()),
        ("StreamFunction", hearback_stream::routes().description()),
        (
            "WebhooksFunction",
            hearback_relay::webhook_routes().description(),
        ),
        (
            "OperationsFunction",
            hearback_operations::routes().description(),
        ),
    ];
    let mut operations = BTreeSet::new();
    for (function, description) in described {
        let document = serde_json::to_value(description).unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                operations.insert((method.to_uppercase(), path.clone(), function.to_owned()));
            }
        }
    }
    operations
}

#[test]
fn every_operation_is_routed_to_its_function() {
    let routes = template_routes();
    let operations = router_operations();
    assert_eq!(operations.len(), 39);
    // The route that names the method wins over ANY.
    let reached: BTreeSet<_> = operations
        .iter()
        .map(|(method, path, _)| {
            let route = |named: &str| {
                let mut routes = routes.iter();
                routes.find(|(method, of, _)| method == named && of == path)
            };
            let (_, _, function) = route(method)
                .or_else(|| route("ANY"))
                .unwrap_or_else(|| panic!("no route for {method} {path}"));
            (method.clone(), path.clone(), function.clone())
        })
        .collect();
    assert_eq!(reached, operations);
}

#[test]
fn a_wrong_method_reaches_a_function_that_answers_405() {
    let operations = router_operations();
    let known: BTreeSet<_> = operations
        .iter()
        .map(|(_, path, function)| (path, function))
        .collect();
    let routes = template_routes();
    // The console is a page and its files, no operation.
    for (_, path, function) in routes.iter().filter(|(_, _, of)| of != "ConsoleFunction") {
        let is_known = known.contains(&(path, function));
        assert!(is_known, "{function} has no operation at {path}");
    }
    for (path, _) in known {
        let any = routes
            .iter()
            .filter(|(method, of, _)| method == "ANY" && of == path);
        assert_eq!(any.count(), 1, "{path} needs one ANY route");
    }
}

#[test]
fn every_operation_documents_its_errors_and_its_scopes() {
    let document = serde_json::to_value(openapi()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("401"), "{method} {path}");
            assert_eq!(
                operation["security"],
                json!([{"bearer": []}]),
                "{method} {path}"
            );
            assert!(operation["summary"].is_string(), "{method} {path}");
            for (status, response) in responses {
                let shared = response["$ref"].as_str();
                let response = shared.map_or(response, |name| {
                    document.pointer(name.trim_start_matches('#')).unwrap()
                });
                let content = response["content"]
                    .as_object()
                    .map(|content| content.keys());
                let media_types: Vec<_> = content.into_iter().flatten().collect();
                if status.starts_with(['4', '5']) {
                    assert_eq!(media_types, ["application/problem+json"], "{method} {path}");
                }
            }
        }
    }
}

#[test]
fn schema_names_in_the_openapi_document_are_unique() {
    let mut parts = Vec::new();
    parts.extend(hearback_submit::routes().descriptions());
    parts.extend(hearback_batch::routes().descriptions());
    parts.extend(hearback_retrieval::routes().descriptions());
    parts.extend(hearback_turns::routes().descriptions());
    parts.extend(hearback_preferences::routes().descriptions());
    parts.extend(hearback_stream::routes().descriptions());
    parts.extend(hearback_relay::webhook_routes().descriptions());
    parts.extend(hearback_operations::routes().descriptions());
    let mut shapes = BTreeMap::new();
    for components in parts.into_iter().filter_map(|part| part.components) {
        for (name, shape) in components.schemas {
            let shape = serde_json::to_value(shape).unwrap();
            let known = shapes.entry(name.clone()).or_insert_with(|| shape.clone());
            assert_eq!(*known, shape, "{name}");
        }
    }
}

fn names<T>(set: &[(&str, T)]) -> Value {
    set.iter().map(|(name, _)| json!(name)).collect()
}

#[test]
fn the_openapi_document_has_the_member_names_of_the_responses() {
    let document = serde_json::to_value(openapi()).unwrap();
    for (shape, names) in [
        ("Channel", names(Channel::NAMES)),
        ("CommunicationStyle", names(CommunicationStyle::NAMES)),
        ("DetailLevel", names(DetailLevel::NAMES)),
        (
            "DetectedFeedbackType",
            names(detection::FeedbackStatus::NAMES),
        ),
        ("FeedbackType", names(FeedbackType::NAMES)),
    ] {
        assert_eq!(document["components"]["schemas"][shape]["enum"], names);
    }
}

#[test]
fn the_pipes_of_the_template_and_the_relay_select_the_same_records() {
    let patterns = |pipe: &str| -> Vec<Value> {
        let filters = resource(pipe)
            .pointer("/SourceParameters/FilterCriteria/Filters")
            .unwrap()
            .clone();
        let filters = filters.as_array().unwrap().iter();
        filters
            .map(|filter| serde_json::from_str(filter["Pattern"].as_str().unwrap()).unwrap())
            .collect()
    };
    for (name, pipe) in [("SubmittedPipe", SUBMITTED), ("ResultsPipe", RESULTS)] {
        assert_eq!(patterns(name), pipe.patterns(), "{name}");
    }
    let sent = resource("SubmittedPipe")["TargetParameters"]["InputTemplate"].clone();
    let sent = sent.as_str().unwrap();
    for attribute in SUBMITTED.attributes.unwrap() {
        assert!(
            sent.contains(&format!("<$.dynamodb.NewImage.{attribute}>")),
            "{attribute}"
        );
    }
    assert!(!sent.contains("text"), "the pipe sends no free text");
    assert_eq!(
        sent.matches("NewImage.").count(),
        SUBMITTED.attributes.unwrap().len()
    );
}

#[test]
fn every_frame_of_a_websocket_reaches_its_function() {
    let routes = resources("AWS::ApiGatewayV2::Route").into_iter();
    let keys = routes.map(|(name, route)| {
        let route = &route["Properties"];
        assert_eq!(
            route["Target"],
            json!({"Sub": "integrations/${StreamIntegration}"}),
            "{name}"
        );
        route["RouteKey"].clone()
    });
    let keys: Vec<_> = keys.collect();
    assert_eq!(keys, ["$connect", "$default", "$disconnect"]);
    let called = resource("StreamIntegration")["IntegrationUri"].to_string();
    assert!(called.contains("${StreamFunction.Arn}"), "{called}");
}

#[test]
fn a_pipe_sends_a_record_without_free_text() {
    let record = json!({
        "eventName": "INSERT",
        "eventID": "1",
        "dynamodb": {
            "Keys": {"PK": {"S": "EVENT#acme#1"}, "SK": {"S": "EVENT"}},
            "NewImage": {"core": {"S": "{}"}, "text": {"S": "private"}, "expires_at": {"N": "1"}}
        }
    });
    assert!(SUBMITTED.takes(&record));
    assert!(!RESULTS.takes(&record));
    assert_eq!(
        SUBMITTED.send(&record),
        json!({
            "eventName": "INSERT",
            "dynamodb": {
                "Keys": {"PK": {"S": "EVENT#acme#1"}, "SK": {"S": "EVENT"}},
                "NewImage": {"core": {"S": "{}"}}
            }
        })
    );
    let mut expired = record.clone();
    expired["eventName"] = json!("REMOVE");
    assert!(!SUBMITTED.takes(&expired));
}

#[test]
fn the_table_of_the_template_equals_that_of_the_code() {
    let (_, table) = resources("AWS::DynamoDB::Table").pop().unwrap();
    let table = &table["Properties"];
    assert_eq!(
        table["KeySchema"],
        json!([
            {"AttributeName": PK, "KeyType": "HASH"},
            {"AttributeName": SK, "KeyType": "RANGE"}
        ])
    );
    assert_eq!(
        table["TimeToLiveSpecification"]["AttributeName"],
        EXPIRES_AT
    );
    assert_eq!(
        table["StreamSpecification"]["StreamViewType"],
        "NEW_AND_OLD_IMAGES"
    );
    assert_eq!(table["BillingMode"], "PAY_PER_REQUEST");
    let indexes = INDEXES.map(|index| {
        let projection = if index.attributes.is_empty() {
            json!({"ProjectionType": "KEYS_ONLY"})
        } else {
            json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": index.attributes})
        };
        json!({
            "IndexName": index.name,
            "KeySchema": [
                {"AttributeName": index.partition, "KeyType": "HASH"},
                {"AttributeName": index.sort, "KeyType": "RANGE"}
            ],
            "Projection": projection
        })
    });
    assert_eq!(table["GlobalSecondaryIndexes"], json!(indexes));
}

#[test]
fn no_route_invokes_the_export_function() {
    let routed = template_routes();
    assert!(
        routed
            .iter()
            .all(|(_, _, function)| function != "ExportFunction")
    );
    assert_eq!(resource("ExportFunction")["Events"], Value::Null);
}

#[test]
fn the_queues_of_the_template_are_named_as_in_the_local_bundle() {
    let names = Names::new("${AWS::StackName}");
    let template: BTreeSet<_> = resources("AWS::SQS::Queue")
        .into_iter()
        .map(|(_, queue)| {
            queue["Properties"]["QueueName"]["Sub"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let local: BTreeSet<_> = [
        names.signals(),
        names.signals_bulk(),
        names.dead_letters(),
        names.ingest(),
        names.ingest_dead_letters(),
        names.imports(),
        names.imports_dead_letters(),
        names.erasures(),
        names.erasures_dead_letters(),
        names.insights(),
        names.insights_dead_letters(),
        names.fanout(),
        names.fanout_dead_letters(),
        names.nats(),
        names.nats_dead_letters(),
        names.webhooks(),
        names.webhooks_dead_letters(),
        names.stream_dead_letters(),
        names.subjects_dead_letters(),
    ]
    .into_iter()
    .chain(
        Subject::NAMES
            .iter()
            .map(|(_, subject)| names.subject(*subject)),
    )
    // The queue of a topic, which the local bundle does not have.
    .chain(["${AWS::StackName}-deliveries-dead-letters".to_owned()])
    .collect();
    assert_eq!(template, local);
    // Those that operators see.
    let dead_letters = DeadLetterQueue::all().map(DeadLetterQueue::queue);
    let shown: BTreeSet<_> = hearback_operations::work_queues()
        .map(|queue| queue.name)
        .chain(dead_letters)
        .map(|name| format!("${{AWS::StackName}}-{name}"))
        .collect();
    assert_eq!(template, shown);
    // The function sends a message to the DLQ before the queue's redrive policy does.
    const { assert!(LAST_RECEIVES < REDRIVE_RECEIVES) };
    for (queue, receives) in [
        ("SignalsQueue", REDRIVE_RECEIVES),
        ("SignalsBulkQueue", REDRIVE_RECEIVES),
        ("ImportsQueue", REDRIVE_RECEIVES),
        ("ErasuresQueue", REDRIVE_RECEIVES),
        ("IngestQueue", REDRIVE_RECEIVES),
        ("FanoutQueue", REDRIVE_RECEIVES),
        ("NatsQueue", OUTLET_RECEIVES),
        ("WebhooksQueue", OUTLET_RECEIVES),
        ("FeedbackProcessedQueue", SUBJECT_RECEIVES),
        ("RewardQueue", SUBJECT_RECEIVES),
        ("PolicyQueue", SUBJECT_RECEIVES),
        ("ExplorationQueue", SUBJECT_RECEIVES),
    ] {
        let queue = resource(queue);
        let redrive = &queue["RedrivePolicy"];
        assert_eq!(redrive["maxReceiveCount"], receives, "{queue}");
    }
    // What fails each time becomes a dead letter before it expires. The other queues keep messages for 14 days.
    let fanout = resource("FanoutQueue");
    let seconds = |name: &str| fanout[name].as_u64().unwrap();
    let given_up = seconds("VisibilityTimeout") * u64::from(REDRIVE_RECEIVES);
    assert!(given_up < seconds("MessageRetentionPeriod"));
}

#[test]
fn outlets_receive_the_messages_of_every_subject() {
    for outlet in ["Nats", "Webhooks"] {
        let subscription = resource(&format!("{outlet}Subscription"));
        let queue = json!({"GetAtt": format!("{outlet}Queue.Arn")});
        assert_eq!(subscription["Endpoint"], queue);
        assert_eq!(subscription["RawMessageDelivery"], true);
        let published = [
            "feedback.processed",
            "feedback.retracted",
            "learning.signal.generated",
        ];
        assert_eq!(
            subscription["FilterPolicy"],
            json!({"eventType": published})
        );
    }
}

/// The members of a schema, as pointers below `at`, each with whether it may be null.
fn members(document: &Value, schema: &Value, at: &str, found: &mut Vec<(String, bool)>) {
    let schema = resolved(document, schema);
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{at}/{name}");
        let null = json!("null");
        let alternatives = member["oneOf"].as_array().cloned().unwrap_or_default();
        let is_null = |schema: &Value| {
            let kind = &schema["type"];
            *kind == null || kind.as_array().is_some_and(|kinds| kinds.contains(&null))
        };
        found.push((
            pointer.clone(),
            is_null(member) || alternatives.iter().any(is_null),
        ));
        for schema in alternatives.iter().chain([member]) {
            members(document, schema, &pointer, found);
        }
    }
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str();
    let target = reference.and_then(|reference| document.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// An object in which this member is null.
fn with_null(pointer: &str) -> Value {
    let names = pointer.trim_start_matches('/').rsplit('/');
    names.fold(Value::Null, |inner, name| json!({name: inner}))
}

#[tokio::test]
async fn a_member_accepts_null_exactly_where_the_openapi_document_allows_it() {
    let app = TestApp::start().await;
    let token = app.token_of("ada", "acme", "feedback:on-behalf feedback:admin");
    let document = serde_json::to_value(openapi()).unwrap();
    let mut checked = 0;
    let mut wrong = Vec::new();
    for (route, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let mut found = Vec::new();
            members(&document, schema, "", &mut found);
            let path = [
                ("{tenant}", "acme"),
                ("{project}", "order-service"),
                ("{conversation_id}", "c"),
                ("{turn_id}", "t"),
                ("{userId}", "ada"),
                ("{name}", "crm"),
            ];
            let path = (path.iter()).fold(route.clone(), |path, (name, value)| {
                path.replace(name, value)
            });
            for (pointer, nullable) in found {
                let method = method.to_uppercase().parse().unwrap();
                let request = app.request(method, &path).bearer_auth(&token);
                let response = app.send(request.json(&with_null(&pointer))).await;
                let errors = response.body["errors"].as_array().cloned();
                let named = errors.into_iter().flatten().any(|error| {
                    error["pointer"] == pointer.as_str() && error["detail"] != "is required"
                });
                if named == nullable {
                    wrong.push(format!(
                        "{route} {pointer}: nullable {nullable}, {:?}",
                        response.body
                    ));
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked}");
    assert_eq!(wrong, [""; 0]);
}
