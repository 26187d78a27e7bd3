//! The template's effects in an AWS account: the first deployment, small accounts, failures and alarms. The pages about
//! it match the template.

use std::collections::{BTreeMap, BTreeSet};

use hearback_tests::template::{each, resource, resources, template};
use serde_json::{Value, json};

const DEPLOY: &str = include_str!("../../docs/how-to/deploy.md");
const INVOKE: &str = include_str!("../../docs/how-to/invoke-one-function.md");
const SETTINGS: &str = include_str!("../../docs/reference/settings.md");
const ALARMS: &str = include_str!("../../docs/reference/alarms.md");

/// The names that a value refers to, by `!Ref` or `!GetAtt`, at any depth.
fn referred(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, member)| match (name.as_str(), member) {
                ("Ref" | "GetAtt", Value::String(to)) => {
                    BTreeSet::from([to.split('.').next().unwrap().to_owned()])
                }
                _ => referred(member),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(referred).collect(),
        _ => BTreeSet::new(),
    }
}

fn names(kind: &str) -> BTreeSet<String> {
    resources(kind).into_iter().map(|(name, _)| name).collect()
}

/// The resources that the alarms on a metric watch, with the threshold of each.
fn watched(metric: &str) -> BTreeMap<String, Value> {
    let alarms = resources("AWS::CloudWatch::Alarm").into_iter();
    let on_metric =
        alarms.filter(|(_, alarm)| alarm.to_string().contains(&format!("\"{metric}\"")));
    on_metric
        .flat_map(|(_, alarm)| {
            let properties = &alarm["Properties"];
            let threshold = properties["Threshold"].clone();
            let mut watched = referred(&properties["Dimensions"]);
            watched.extend(referred(&properties["Metrics"]));
            watched.into_iter().map(move |to| (to, threshold.clone()))
        })
        .collect()
}

#[test]
fn a_function_may_hand_work_to_its_own_queue_more_than_sixteen_times() {
    let mut recursive = BTreeSet::new();
    for (_, source) in resources("AWS::Lambda::EventSourceMapping") {
        let source = &source["Properties"];
        let function = source["FunctionName"]["Ref"].as_str().unwrap();
        let statements = resource(function)["Policies"][0]["Statement"].clone();
        let sends_to_itself = statements.as_array().unwrap().iter().any(|statement| {
            each(&statement["Action"]).contains(&json!("sqs:SendMessage"))
                && each(&statement["Resource"]).contains(&source["EventSourceArn"])
        });
        let loops = resource(function)["RecursiveLoop"].clone();
        let expected = if sends_to_itself {
            json!("Allow")
        } else {
            Value::Null
        };
        assert_eq!(loops, expected, "{function}");
        if sends_to_itself {
            recursive.insert(function.to_owned());
        }
    }
    let known = [
        "EraserFunction",
        "FanoutFunction",
        "ImportsFunction",
        "WebhookSenderFunction",
    ]
    .map(str::to_owned);
    assert_eq!(recursive, BTreeSet::from(known));
}

#[test]
fn a_first_deployment_that_failed_leaves_nothing_and_can_be_repeated() {
    for name in ["Table", "Bucket", "PseudonymKey"] {
        let kept = &template()["Resources"][name];
        assert_eq!(kept["DeletionPolicy"], "RetainExceptOnCreate", "{name}");
        assert_eq!(kept["UpdateReplacePolicy"], "Retain", "{name}");
    }
    // CloudFormation cannot delete a protected table after a failed deployment.
    let protection = &resource("Table")["DeletionProtectionEnabled"];
    assert_eq!(*protection, json!({"Ref": "TableProtection"}));
    let parameter = &template()["Parameters"]["TableProtection"];
    assert_eq!(parameter["Default"], "false");
}

#[test]
fn no_nats_resources_are_deployed_without_a_server() {
    let template = template();
    assert_eq!(template["Parameters"]["NatsUrl"]["Default"], "");
    assert_eq!(template["Parameters"]["NatsRelay"]["Default"], "false");
    let all = template["Resources"].as_object().unwrap().iter();
    let of_nats: Vec<_> = all.filter(|(name, _)| name.starts_with("Nats")).collect();
    assert!(of_nats.len() > 10, "{}", of_nats.len());
    for (name, resource) in of_nats {
        let condition = resource["Condition"].as_str().unwrap();
        assert!(condition.starts_with("HasNats"), "{name}");
    }
}

/// Asserts that what a parameter with the default `false` turns on, more than `least` resources, has its condition.
fn assert_optional(prefix: &str, parameter: &str, least: usize) {
    let template = template();
    assert_eq!(template["Parameters"][parameter]["Default"], "false");
    let all = template["Resources"].as_object().unwrap().iter();
    let optional: Vec<_> = all.filter(|(name, _)| name.starts_with(prefix)).collect();
    assert!(optional.len() > least, "{}", optional.len());
    for (name, resource) in optional {
        assert_eq!(resource["Condition"], format!("Has{parameter}"), "{name}");
    }
}

#[test]
fn no_webhook_resources_are_deployed_by_default() {
    assert_optional("Webhook", "Webhooks", 15);
}

#[test]
fn no_console_is_deployed_by_default() {
    assert_optional("Console", "Console", 3);
    assert_optional("Operations", "Console", 3);
}

#[test]
fn only_the_console_needs_no_token() {
    for (function, resource) in resources("AWS::Serverless::Function") {
        let events = resource["Properties"]["Events"].as_object().cloned();
        for (name, event) in events.unwrap_or_default() {
            let authorizer = &event["Properties"]["Auth"]["Authorizer"];
            let is_open = authorizer == "NONE";
            assert_eq!(is_open, function == "ConsoleFunction", "{function}: {name}");
        }
    }
}

#[test]
fn a_paused_webhook_raises_an_alarm() {
    let filter = resource("WebhooksPaused");
    assert_eq!(
        filter["LogGroupName"],
        json!({"Ref": "WebhookSenderLogGroup"})
    );
    assert_eq!(filter["FilterPattern"], "{ $.paused IS TRUE }");
    let metric = &filter["MetricTransformations"][0];
    let alarm = resource("WebhooksPausedAlarm");
    assert_eq!(alarm["MetricName"], metric["MetricName"]);
    assert_eq!(alarm["Namespace"], metric["MetricNamespace"]);
}

#[test]
fn every_queue_has_an_alarm() {
    let dead = watched("ApproximateNumberOfMessagesVisible");
    let old = watched("ApproximateAgeOfOldestMessage");
    for queue in names("AWS::SQS::Queue") {
        let watched = if queue.ends_with("DeadLetters") {
            &dead
        } else {
            &old
        };
        assert!(watched.contains_key(&queue), "no alarm watches {queue}");
    }
    assert!(dead.values().all(|threshold| *threshold == 0), "{dead:?}");
    // The alarm is raised before messages expire.
    for (queue, threshold) in old {
        let kept = resource(&queue)["MessageRetentionPeriod"].as_u64().unwrap();
        assert!(threshold.as_u64().unwrap() * 2 < kept, "{queue}");
    }
}

#[test]
fn every_function_has_an_alarm_for_throttles() {
    let watched: BTreeSet<_> = watched("Throttles").into_keys().collect();
    assert_eq!(watched, names("AWS::Serverless::Function"));
}

#[test]
fn intermittent_throttling_of_queues_raises_an_alarm() {
    let alarm = resource("QueueThrottlesAlarm");
    let periods = |name: &str| alarm[name].as_u64().unwrap();
    let (breaching, all) = (periods("DatapointsToAlarm"), periods("EvaluationPeriods"));
    assert!(
        breaching * 2 < all,
        "{breaching} of {all} minutes: throttling every other minute must be noticed"
    );
}

#[test]
fn a_flood_of_rejected_requests_raises_an_alarm_and_the_log_names_their_tenant() {
    let watched = watched("4xx");
    assert_eq!(watched["Api"], json!({"Ref": "RejectionsThreshold"}));
    let log = resource("Api")["AccessLogSettings"]["Format"].clone();
    let fields: Value = serde_json::from_str(log.as_str().unwrap().trim()).unwrap();
    assert_eq!(fields["tenant"], "$context.authorizer.claims.tenant");
    for private in ["path", "claims.sub", "header", "sourceIp"] {
        assert!(!log.to_string().contains(private), "{private} is logged");
    }
}

#[test]
fn a_pipe_with_partial_failures_raises_an_alarm_and_logs_the_cause_without_the_records() {
    let pipes = names("AWS::Pipes::Pipe");
    for metric in ["ExecutionFailed", "ExecutionPartiallyFailed"] {
        let watched: BTreeSet<_> = watched(metric).into_keys().collect();
        assert_eq!(watched, pipes, "{metric}");
    }
    for pipe in pipes {
        let logs = resource(&pipe)["LogConfiguration"].clone();
        assert_eq!(logs["Level"], "ERROR", "{pipe}");
        assert_eq!(logs["IncludeExecutionData"], Value::Null, "{pipe}");
        let group = referred(&logs["CloudwatchLogsLogDestination"]);
        assert_eq!(group.len(), 1, "{pipe}");
        let group = group.first().unwrap();
        let retention = &resource(group)["RetentionInDays"];
        assert_eq!(*retention, json!({"Ref": "LogRetentionDays"}), "{group}");
    }
}

#[test]
fn published_messages_are_encrypted_and_none_is_lost_between_topic_and_queue() {
    for (topic, properties) in resources("AWS::SNS::Topic") {
        let key = &properties["Properties"]["KmsMasterKeyId"];
        assert_eq!(*key, "alias/aws/sns", "{topic}");
    }
    let role = resource("ResultsPipeRole")["Policies"].clone();
    for action in ["kms:GenerateDataKey", "kms:Decrypt"] {
        assert!(role.to_string().contains(action), "{action}");
    }
    let may_send = [
        "SubjectQueuesPolicy",
        "FanoutQueuesPolicy",
        "NatsQueuesPolicy",
        "WebhooksQueuesPolicy",
    ]
    .map(|policy| resource(policy)["Queues"].clone());
    let may_send = json!(may_send);
    for (name, subscription) in resources("AWS::SNS::Subscription") {
        let dead_letters = referred(&subscription["Properties"]["RedrivePolicy"]);
        assert_eq!(dead_letters.len(), 1, "{name} has no dead letters");
        for queue in dead_letters.union(&referred(&subscription["Properties"]["Endpoint"])) {
            assert!(referred(&may_send).contains(queue), "{queue} of {name}");
        }
    }
    for (name, queue) in resources("AWS::SQS::Queue") {
        assert_eq!(queue["Properties"]["SqsManagedSseEnabled"], true, "{name}");
    }
}

#[test]
fn requests_without_tls_are_denied() {
    let is_tls_only = |policy: &Value| {
        let statements = policy["PolicyDocument"]["Statement"].as_array().unwrap();
        statements.iter().any(|statement| {
            statement["Effect"] == "Deny"
                && statement["Principal"] == "*"
                && statement["Condition"] == json!({"Bool": {"aws:SecureTransport": "false"}})
        })
    };
    let mut policies = BTreeSet::new();
    for kind in ["SQS::Queue", "SNS::Topic", "S3::Bucket"] {
        for (name, policy) in resources(&format!("AWS::{kind}Policy")) {
            let policy = &policy["Properties"];
            assert!(is_tls_only(policy), "{name}");
            for member in ["Queues", "Topics", "Bucket"] {
                for resource in referred(&policy[member]) {
                    // A second policy would replace the first.
                    assert!(
                        policies.insert(resource.clone()),
                        "{resource} has two policies"
                    );
                }
            }
        }
        for (name, _) in resources(&format!("AWS::{kind}")) {
            assert!(policies.contains(&name), "{name} has no policy");
        }
    }
}

#[test]
fn the_deployment_page_has_the_concurrency_of_the_template() {
    let sources = resources("AWS::Lambda::EventSourceMapping").into_iter();
    let most = sources.map(|(_, source)| {
        let scaling = &source["Properties"]["ScalingConfig"];
        scaling["MaximumConcurrency"].as_u64().unwrap()
    });
    let most: u64 = most.sum();
    let documented = format!("{most} functions at once");
    assert!(DEPLOY.contains(&documented), "{documented}");
}

#[test]
fn the_alarms_page_lists_exactly_the_alarms_of_the_template() {
    let alarms = names("AWS::CloudWatch::Alarm");
    let table = section(ALARMS, "## Every alarm");
    let documented: BTreeSet<_> = table
        .split('`')
        .filter(|word| word.ends_with("Alarm"))
        .map(ToOwned::to_owned)
        .collect();
    assert_eq!(documented, alarms);
}

#[test]
fn damaged_data_raises_an_alarm() {
    let filters = resources("AWS::Logs::MetricFilter").into_iter();
    let filters: BTreeMap<_, _> = filters
        .filter(|(name, _)| name.ends_with("DamagedData"))
        .map(|(_, filter)| {
            let properties = &filter["Properties"];
            let [group] = referred(&properties["LogGroupName"])
                .into_iter()
                .collect::<Vec<_>>()
                .try_into()
                .unwrap();
            (group, properties.clone())
        })
        .collect();
    let alarm = &resource("DamagedDataAlarm");
    for function in names("AWS::Serverless::Function") {
        let group = function.replace("Function", "LogGroup");
        let filter = &filters[&group];
        assert_eq!(filter["FilterPattern"], "{ $.damaged IS TRUE }", "{group}");
        let metric = &filter["MetricTransformations"][0];
        let counted = (&metric["MetricNamespace"], &metric["MetricName"]);
        assert_eq!(counted, (&alarm["Namespace"], &alarm["MetricName"]));
    }
}

#[test]
fn the_deployment_page_counts_the_resources_of_the_template() {
    let queues = names("AWS::SQS::Queue");
    let dead = queues.iter().filter(|name| name.ends_with("DeadLetters"));
    let deploy = section(DEPLOY, "## What the stack contains").replace('\n', " ");
    for documented in [
        format!("{} functions", names("AWS::Serverless::Function").len()),
        format!("{} dead-letter queues", dead.count()),
        format!("{} alarms", names("AWS::CloudWatch::Alarm").len()),
    ] {
        assert!(deploy.contains(&documented), "{documented}");
    }
}

#[test]
fn the_deployment_page_lists_every_parameter_with_its_default() {
    let parameters = template()["Parameters"].as_object().unwrap().clone();
    let rows = rows(section(DEPLOY, "## Parameters"));
    let documented: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1].clone()))
        .collect();
    let actual: BTreeMap<_, _> = parameters
        .iter()
        .map(|(name, parameter)| {
            let default = match &parameter["Default"] {
                Value::Null => String::new(),
                Value::String(text) if text.is_empty() => "none".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (name.clone(), default)
        })
        .collect();
    assert_eq!(documented, actual);
}

/// The variables that the template sets, each with the functions that it sets it for.
fn variables() -> BTreeMap<String, BTreeSet<String>> {
    let mut variables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, function) in resources("AWS::Serverless::Function") {
        let binary = function["Metadata"]["BuildProperties"]["Binary"].as_str();
        let own = function["Properties"]["Environment"]["Variables"].as_object();
        for name in own.into_iter().flat_map(|own| own.keys()) {
            let functions = variables.entry(name.clone()).or_default();
            functions.insert(binary.unwrap().to_owned());
        }
    }
    variables
}

#[test]
fn the_settings_page_lists_which_function_reads_which_setting() {
    let rows = rows(section(SETTINGS, "## Environment variables"));
    for (variable, functions) in variables() {
        let name = format!("`{variable}`");
        let row = rows.iter().find(|row| row[0] == name);
        let row = row.unwrap_or_else(|| panic!("no row documents {variable}"));
        let documented: BTreeSet<_> = row[1]
            .split(", ")
            .map(|name| name.trim_matches('`').to_owned())
            .collect();
        assert_eq!(documented, functions, "{variable}");
    }
}

#[test]
fn the_invocation_page_names_every_function_with_the_settings_it_needs() {
    for (name, function) in resources("AWS::Serverless::Function") {
        let binary = function["Metadata"]["BuildProperties"]["Binary"].as_str();
        let binary = format!("`{}`", binary.unwrap());
        assert!(INVOKE.contains(&binary), "{name}");
    }
    // Optional, or not used on one machine.
    let optional = [
        "HEARBACK_MIRROR_PROJECTS",
        "HEARBACK_EMBEDDING_MODEL",
        "HEARBACK_TURN_RETENTION_DAYS",
        "HEARBACK_NATS_PREFIX",
        "HEARBACK_NATS_CREDENTIALS",
        "HEARBACK_WEBHOOK_NETWORKS",
        "HEARBACK_CONSOLE_CLIENT_ID",
        "HEARBACK_CONSOLE_ISSUER",
        "HEARBACK_CONSOLE_AUDIENCE",
        "HEARBACK_CONSOLE_SCOPE",
        "HEARBACK_CONSOLE_ORIGINS",
    ];
    let needed = variables().into_keys().chain(["HEARBACK_TABLE".to_owned()]);
    let needed: BTreeSet<_> = needed
        .filter(|name| !optional.contains(&name.as_str()))
        .collect();
    let exported: BTreeSet<_> = INVOKE
        .lines()
        .filter(|line| line.starts_with("export "))
        .flat_map(|line| line.split(' '))
        .filter_map(|word| word.split_once('='))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with("HEARBACK_"))
        .collect();
    assert_eq!(exported, needed);
}

/// A section of a page, up to the next heading.
fn section<'a>(page: &'a str, from: &str) -> &'a str {
    let (_, section) = page.split_once(from).unwrap();
    section.split("\n## ").next().unwrap()
}

/// The rows of the first table of a section, without the header.
fn rows(section: &str) -> Vec<Vec<String>> {
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells = row.split('|').skip(1);
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}
