//! Who makes vectors of texts: a model on Amazon Bedrock, and what stands in when it does not answer.
//!
//! There is no Bedrock on one machine: its answers, of the form that Amazon documents, are given by a
//! server on loopback, which the SDK calls.

use std::sync::{Arc, Mutex};

use aws_sdk_bedrockruntime::config::Builder;
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use hearback_lambda::aws::Aws;
use hearback_lambda::embedder::{Bedrock, Embeddings};
use hearback_lambda::http::service;
use hearback_tests::engine::Engine;
use hearback_tests::functions::call;
use hearback_tests::turns::{path, said};
use serde_json::{Value, json};

const MODEL: &str = "amazon.titan-embed-text-v2:0";
const NAME: &str = "bedrock:amazon.titan-embed-text-v2:0:256";

/// What a model answers, one after the other, and what it was asked.
#[derive(Clone, Default)]
struct Model {
    answers: Arc<Mutex<Vec<(StatusCode, Value)>>>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Model {
    fn answer(&self, uri: &Uri, asked: Value) -> (StatusCode, String) {
        self.asked.lock().unwrap().push((uri.to_string(), asked));
        let (status, answer) = self.answers.lock().unwrap().remove(0);
        (status, answer.to_string())
    }

    /// Serves on loopback, until the test ends.
    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let model = self.clone();
        let answer = async move |uri: Uri, axum::Json(asked)| model.answer(&uri, asked);
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        format!("http://{address}")
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
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
    model: Model,
    _engine: Engine,
}

impl WithModel {
    async fn answering(answers: impl IntoIterator<Item = (StatusCode, Value)>) -> Self {
        let engine = Engine::start().await;
        let model = Model::default();
        model.answers.lock().unwrap().extend(answers);
        let config = Builder::from(&Aws::local(model.serve().await).config());
        let mut app = engine.with_blobs(engine.store.clone());
        app.app.embeddings = Embeddings::by(Bedrock::new(config, MODEL).unwrap());
        Self {
            functions: service(hearback_local::gateway::functions(app, engine.erasures())),
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
    let bundle = WithModel::answering(texts.map(|text| (StatusCode::OK, text))).await;
    for (turn, query) in [("t1", "a car for the town"), ("t2", "hamster food")] {
        let body = said(query, "Here are three.");
        let (status, _) = bundle.call(Method::PUT, &path("c", turn), &body).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    let found = bundle.search("small automobile").await;
    assert_eq!(found["embedder"], NAME);
    assert_eq!(found["strategies"][0]["turn_id"], "t1");
    assert_eq!(found["strategies"][0]["similarity"], 1.0);

    let (uri, asked) = bundle.model.asked().remove(0);
    assert_eq!(uri, format!("/model/{}/invoke", MODEL.replace(':', "%3A")));
    assert_eq!(
        asked,
        json!({"inputText": "a car for the town\nHere are three.", "dimensions": 256, "normalize": true})
    );
}

#[tokio::test]
async fn a_repeat_asks_the_model_for_nothing() {
    let bundle = WithModel::answering([(StatusCode::OK, vector(7))]).await;
    let body = said("a car for the town", "Here are three.");
    for status in [StatusCode::CREATED, StatusCode::OK] {
        let answered = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
        assert_eq!(answered.0, status);
    }
    assert_eq!(bundle.model.asked().len(), 1);
}

#[tokio::test]
async fn what_a_caller_embedded_is_not_sent_to_the_model() {
    let bundle = WithModel::answering([]).await;
    let mut body = said("a car for the town", "Here are three.");
    body["embedding"] = json!([0.6, 0.8]);
    let (status, _) = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(bundle.model.asked().len(), 0);
}

#[tokio::test]
async fn the_embedded_one_stands_in_for_a_model_that_fails() {
    let throttled = json!({"message": "Too many requests"});
    let failures = [
        // A registration takes two tries, and the search after it one useless answer.
        (StatusCode::TOO_MANY_REQUESTS, throttled.clone()),
        (StatusCode::TOO_MANY_REQUESTS, throttled),
        (StatusCode::OK, json!({"embedding": [1.0]})),
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
