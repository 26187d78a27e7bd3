//! The cost card: calls and capacity units of every operation, by `ReturnConsumedCapacity`.
//! `docs/data-model.md` shows the same figures. A change that costs more fails here.

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use hearback_lambda::http::service;
use hearback_tests::engine::{Cost, Engine, Meter};
use hearback_tests::events::acceptance;
use lambda_http::request::RequestContext;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The functions on a table whose calls are counted.
struct Metered {
    engine: Engine,
    meter: Meter,
    functions: Router,
}

impl Metered {
    async fn start() -> Self {
        let engine = Engine::start().await;
        let meter = Meter::default();
        let app = engine.with_blobs(engine.store_with(meter.clone()));
        Self {
            engine,
            meter,
            functions: service(hearback_local::gateway::functions(app)),
        }
    }

    /// Calls a function as API Gateway does, and answers what that cost.
    async fn call(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Cost) {
        let claims =
            json!({"sub": "ada", "tenant": "acme", "projects": "[shop support]", "scope": ""});
        let context = json!({
            "authorizer": {"jwt": {"claims": claims}}, "http": {"method": "POST"}
        });
        let context: RequestContext =
            RequestContext::ApiGatewayV2(serde_json::from_value(context).unwrap());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .extension(context)
            .body(Body::from(body.to_string()))
            .unwrap();
        let response = self.functions.clone().oneshot(request).await.unwrap();
        (response.status(), self.meter.take())
    }

    /// Delivers stored events to the signal generator as one batch.
    async fn generate(&self, events: &[Value]) -> Cost {
        let generator = self
            .engine
            .generator(self.engine.store_with(self.meter.clone()));
        let mut batch = SqsEvent::default();
        for event in events {
            let stored = self
                .engine
                .store
                .event(
                    &"acme".try_into().unwrap(),
                    event["feedbackId"].as_str().unwrap().parse().unwrap(),
                )
                .await
                .unwrap()
                .unwrap();
            let core = serde_json::to_string(&stored.core).unwrap();
            let mut message = SqsMessage::default();
            message.body =
                Some(json!({"dynamodb": {"NewImage": {"core": {"S": core}}}}).to_string());
            batch.records.push(message);
        }
        assert!(generator.handle(batch).await.batch_item_failures.is_empty());
        self.meter.take()
    }
}

fn cost(calls: u32, reads: f64, writes: f64) -> Cost {
    Cost {
        calls,
        reads,
        writes,
    }
}

#[tokio::test]
async fn a_submit_is_one_call_and_one_write_unit() {
    let metered = Metered::start().await;
    let submit = "/v1/feedback/submit";
    let event = acceptance("ada");
    let spent = metered.call(Method::POST, submit, &event).await;
    assert_eq!(spent, (StatusCode::ACCEPTED, cost(1, 0.0, 1.0)));
    // A repeat is refused by the same single call.
    let spent = metered.call(Method::POST, submit, &event).await;
    assert_eq!(spent, (StatusCode::CONFLICT, cost(1, 0.0, 1.0)));
    // What is refused by the rules costs nothing.
    let mut broken = acceptance("ada");
    broken["data"]["rating"] = json!(9);
    let spent = metered.call(Method::POST, submit, &broken).await;
    assert_eq!(spent, (StatusCode::BAD_REQUEST, cost(0, 0.0, 0.0)));
    let spent = metered.call(Method::POST, submit, &acceptance("eve")).await;
    assert_eq!(spent, (StatusCode::FORBIDDEN, cost(0, 0.0, 0.0)));
}

#[tokio::test]
async fn an_event_is_worked_off_in_three_more_write_units_and_half_a_read() {
    let metered = Metered::start().await;
    let event = acceptance("ada");
    metered
        .call(Method::POST, "/v1/feedback/submit", &event)
        .await;
    // The user's newest version; claim, version, outcome.
    assert_eq!(
        metered.generate(std::slice::from_ref(&event)).await,
        cost(4, 0.5, 3.0)
    );
    // A redelivery: the version again, the claim that is held, the outcome that is there.
    assert_eq!(metered.generate(&[event]).await, cost(3, 1.0, 1.0));
}

#[tokio::test]
async fn a_batch_of_one_user_shares_the_version() {
    let metered = Metered::start().await;
    let events: Vec<_> = (0..10).map(|_| acceptance("ada")).collect();
    for event in &events {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    // Ten claims, ten outcomes, and one version for all of them.
    assert_eq!(metered.generate(&events).await, cost(22, 0.5, 21.0));
}

#[tokio::test]
async fn reads_cost_what_the_card_says() {
    let metered = Metered::start().await;
    let event = acceptance("ada");
    metered
        .call(Method::POST, "/v1/feedback/submit", &event)
        .await;
    metered.generate(std::slice::from_ref(&event)).await;
    let get = |path: String| {
        let metered = &metered;
        async move { metered.call(Method::GET, &path, &Value::Null).await }
    };
    let event_path = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
    assert_eq!(get(event_path).await, (StatusCode::OK, cost(1, 1.0, 0.0)));
    for page in ["", "/history", "/resolved"] {
        let spent = get(format!("/v1/preferences/ada{page}")).await;
        assert_eq!(spent, (StatusCode::OK, cost(1, 1.0, 0.0)), "{page}");
    }
    // Another user's is refused before anything is read.
    for page in ["", "/history", "/resolved"] {
        let spent = get(format!("/v1/preferences/eve{page}")).await;
        assert_eq!(spent, (StatusCode::FORBIDDEN, cost(0, 0.0, 0.0)), "{page}");
    }
}

#[tokio::test]
async fn changing_preferences_is_one_read_and_one_write() {
    let metered = Metered::start().await;
    let change = json!({"preferenceVersion": 0});
    let spent = metered
        .call(Method::PUT, "/v1/preferences/ada", &change)
        .await;
    // Reading a user who has none costs half of a consistent read.
    assert_eq!(spent, (StatusCode::OK, cost(2, 1.0, 1.0)));
    let spent = metered
        .call(Method::POST, "/v1/preferences/ada/reset", &Value::Null)
        .await;
    assert_eq!(spent, (StatusCode::OK, cost(2, 1.0, 1.0)));
}
