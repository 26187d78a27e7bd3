//! Who makes vectors of texts: a model on Amazon Bedrock, and what stands in when it does not answer.
//!
//! Its answers are of the form that Amazon documents, given by the SDK's own replay of traffic: there
//! is no Bedrock on one machine.

use aws_sdk_bedrockruntime::config::Builder;
use aws_smithy_http_client::test_util::{ReplayEvent, StaticReplayClient};
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::http::{Method, Request, Response, StatusCode};
use hearback_lambda::aws::Aws;
use hearback_lambda::embedder::{Bedrock, Embeddings};
use hearback_lambda::http::service;
use hearback_tests::engine::Engine;
use hearback_tests::functions::call;
use hearback_tests::turns::{path, said};
use serde_json::{Value, json};

const MODEL: &str = "amazon.titan-embed-text-v2:0";
const NAME: &str = "bedrock:amazon.titan-embed-text-v2:0:256";

/// The answer to one request.
fn answer(status: StatusCode, body: &Value) -> ReplayEvent {
    let response = Response::builder().status(status);
    ReplayEvent::new(
        Request::new(SdkBody::empty()),
        response.body(SdkBody::from(body.to_string())).unwrap(),
    )
}

/// A vector of 256 numbers, 1 at one of them.
fn vector(at: usize) -> Value {
    let numbers: Vec<f32> = (0..256)
        .map(|number| f32::from(u8::from(number == at)))
        .collect();
    json!({"embedding": numbers, "inputTextTokenCount": 7})
}

/// The functions, with a model that gives these answers.
struct WithModel {
    functions: Router,
    model: StaticReplayClient,
    _engine: Engine,
}

impl WithModel {
    async fn answering(answers: impl IntoIterator<Item = ReplayEvent>) -> Self {
        let engine = Engine::start().await;
        let model = StaticReplayClient::new(answers.into_iter().collect());
        let config = Aws::local("http://bedrock.test").config();
        let config = Builder::from(&config).http_client(model.clone());
        let mut app = engine.with_blobs(engine.store.clone());
        app.app.embeddings = Embeddings::by(Bedrock::new(config, MODEL).unwrap());
        Self {
            functions: service(hearback_local::gateway::functions(app)),
            model,
            _engine: engine,
        }
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let caller = ("order-service", "");
        call(&self.functions, caller, (method, path), body).await
    }

    async fn search(&self, query: &str) -> Value {
        let search = "/conversations/acme/order-service/strategies/search";
        let (status, found) = self
            .call(Method::POST, search, &json!({ "query": query }))
            .await;
        assert_eq!(status, StatusCode::OK, "{found}");
        found
    }
}

#[tokio::test]
async fn a_model_finds_what_shares_no_word() {
    let texts = [vector(7), vector(9), vector(7)];
    let bundle = WithModel::answering(texts.map(|text| answer(StatusCode::OK, &text))).await;
    for (turn, query) in [("t1", "a car for the town"), ("t2", "hamster food")] {
        let body = said(query, "Here are three.");
        let (status, _) = bundle.call(Method::PUT, &path("c", turn), &body).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    let found = bundle.search("small automobile").await;
    assert_eq!(found["embedder"], NAME);
    assert_eq!(found["strategies"][0]["turn_id"], "t1");
    assert_eq!(found["strategies"][0]["similarity"], 1.0);

    let sent: Vec<_> = bundle.model.actual_requests().collect();
    let uri = format!("/model/{}/invoke", MODEL.replace(':', "%3A"));
    assert!(sent[0].uri().ends_with(&uri), "{}", sent[0].uri());
    let body: Value = serde_json::from_slice(sent[0].body().bytes().unwrap()).unwrap();
    assert_eq!(
        body,
        json!({"inputText": "a car for the town\nHere are three.", "dimensions": 256, "normalize": true})
    );
}

#[tokio::test]
async fn a_repeat_asks_the_model_for_nothing() {
    let bundle = WithModel::answering([answer(StatusCode::OK, &vector(7))]).await;
    let body = said("a car for the town", "Here are three.");
    for status in [StatusCode::CREATED, StatusCode::OK] {
        let answered = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
        assert_eq!(answered.0, status);
    }
    assert_eq!(bundle.model.actual_requests().count(), 1);
}

#[tokio::test]
async fn what_a_caller_embedded_is_not_sent_to_the_model() {
    let bundle = WithModel::answering([]).await;
    let mut body = said("a car for the town", "Here are three.");
    body["embedding"] = json!([0.6, 0.8]);
    let (status, _) = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(bundle.model.actual_requests().count(), 0);
}

#[tokio::test]
async fn the_embedded_one_stands_in_for_a_model_that_fails() {
    let throttled = json!({"message": "Too many requests"});
    let failures = [
        // A registration takes two tries, and the search after it one useless answer.
        answer(StatusCode::TOO_MANY_REQUESTS, &throttled),
        answer(StatusCode::TOO_MANY_REQUESTS, &throttled),
        answer(StatusCode::OK, &json!({"embedding": [1.0]})),
    ];
    let bundle = WithModel::answering(failures).await;
    let body = said("a car for the town", "Here are three.");
    let (status, _) = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
    assert_eq!(status, StatusCode::CREATED);
    let found = bundle.search("a town car").await;
    assert_eq!(found["embedder"], "embedded-lexical-256");
    assert_eq!(found["strategies"][0]["turn_id"], "t1");
}

#[test]
fn a_model_of_another_form_is_refused_at_the_start() {
    let config = || Builder::from(&Aws::local("http://bedrock.test").config());
    let refused = Bedrock::new(config(), "cohere.embed-english-v3").unwrap_err();
    assert!(refused.contains("cohere.embed-english-v3"), "{refused}");
    assert!(Bedrock::new(config(), "us.amazon.titan-embed-text-v2:0").is_ok());
}
