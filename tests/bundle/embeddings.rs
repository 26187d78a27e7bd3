//! Embeddings by a model on Amazon Bedrock, and the built-in embedding that replaces it when it fails.
//!
//! A server on loopback replaces Bedrock. Its responses have the format that Amazon documents.

use std::sync::{Arc, Mutex};

use aws_sdk_bedrockruntime::config::{Builder, Credentials};
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use hearback_lambda::aws::Aws;
use hearback_lambda::embedder::{Bedrock, Embeddings};
use hearback_lambda::http::service;
use hearback_local::engines::KeyPair;
use hearback_tests::engine::Engine;
use hearback_tests::functions::call;
use hearback_tests::turns::{path, turn_body};
use serde_json::{Value, json};

const MODEL: &str = "amazon.titan-embed-text-v2:0";
const NAME: &str = "bedrock:amazon.titan-embed-text-v2:0:256";

/// A model's responses, in order, and the requests that it received.
#[derive(Clone, Default)]
struct Model {
    responses: Arc<Mutex<Vec<(StatusCode, Value)>>>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Model {
    fn respond(&self, uri: &Uri, request: Value) -> (StatusCode, String) {
        self.requests
            .lock()
            .unwrap()
            .push((uri.to_string(), request));
        let (status, response) = self.responses.lock().unwrap().remove(0);
        (status, response.to_string())
    }

    /// Serves on loopback, until the test ends.
    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let model = self.clone();
        let handler = async move |uri: Uri, axum::Json(request)| model.respond(&uri, request);
        tokio::spawn(axum::serve(listener, Router::new().fallback(handler)).into_future());
        format!("http://{address}")
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }
}

/// A vector of 256 numbers, 1 at one of them.
fn vector(at: usize) -> Value {
    let numbers: Vec<f32> = (0..256)
        .map(|number| f32::from(u8::from(number == at)))
        .collect();
    json!({"embedding": numbers, "inputTextTokenCount": 7})
}

fn credentials() -> Credentials {
    KeyPair::random().credentials()
}

struct TestFunctions {
    functions: Router,
    model: Model,
    _engine: Engine,
}

impl TestFunctions {
    async fn with_responses(responses: impl IntoIterator<Item = (StatusCode, Value)>) -> Self {
        let engine = Engine::start().await;
        let model = Model::default();
        model.responses.lock().unwrap().extend(responses);
        let config = Builder::from(&Aws::local(model.serve().await, credentials()).config());
        let mut app = engine.with_blobs(engine.store.clone());
        app.app.embeddings = Embeddings::with(Bedrock::new(config, MODEL).unwrap());
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
async fn a_model_finds_turns_that_share_no_word_with_the_query() {
    let texts = [vector(7), vector(9), vector(7)];
    let bundle = TestFunctions::with_responses(texts.map(|text| (StatusCode::OK, text))).await;
    for (turn, query) in [("t1", "a car for the town"), ("t2", "hamster food")] {
        let body = turn_body(query, "Here are three.");
        let (status, _) = bundle.call(Method::PUT, &path("c", turn), &body).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    let found = bundle.search("small automobile").await;
    assert_eq!(found["embedder"], NAME);
    assert_eq!(found["strategies"][0]["turn_id"], "t1");
    assert_eq!(found["strategies"][0]["similarity"], 1.0);

    let (uri, request) = bundle.model.requests().remove(0);
    assert_eq!(uri, format!("/model/{}/invoke", MODEL.replace(':', "%3A")));
    assert_eq!(
        request,
        json!({"inputText": "a car for the town\nHere are three.", "dimensions": 256, "normalize": true})
    );
}

#[tokio::test]
async fn a_repeat_makes_no_call_to_the_model() {
    let bundle = TestFunctions::with_responses([(StatusCode::OK, vector(7))]).await;
    let body = turn_body("a car for the town", "Here are three.");
    for status in [StatusCode::CREATED, StatusCode::OK] {
        let answered = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
        assert_eq!(answered.0, status);
    }
    assert_eq!(bundle.model.requests().len(), 1);
}

#[tokio::test]
async fn a_turn_with_its_own_embedding_is_not_sent_to_the_model() {
    let bundle = TestFunctions::with_responses([]).await;
    let mut body = turn_body("a car for the town", "Here are three.");
    body["embedding"] = json!([0.6, 0.8]);
    let (status, _) = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(bundle.model.requests().len(), 0);
}

#[tokio::test]
async fn the_built_in_embedding_replaces_a_failing_model() {
    let throttled = json!({"message": "Too many requests"});
    let failures = [
        // Two attempts of the registration, and one useless response to the search.
        (StatusCode::TOO_MANY_REQUESTS, throttled.clone()),
        (StatusCode::TOO_MANY_REQUESTS, throttled),
        (StatusCode::OK, json!({"embedding": [1.0]})),
    ];
    let bundle = TestFunctions::with_responses(failures).await;
    let body = turn_body("a car for the town", "Here are three.");
    let (status, _) = bundle.call(Method::PUT, &path("c", "t1"), &body).await;
    assert_eq!(status, StatusCode::CREATED);
    let found = bundle.search("a town car").await;
    assert_eq!(found["embedder"], "embedded-semantic-384");
    assert_eq!(found["strategies"][0]["turn_id"], "t1");
}

#[test]
fn a_model_with_another_response_format_is_rejected_at_startup() {
    let config = || Builder::from(&Aws::local("http://bedrock.test", credentials()).config());
    let rejected = Bedrock::new(config(), "cohere.embed-english-v3").unwrap_err();
    assert!(rejected.contains("cohere.embed-english-v3"), "{rejected}");
    assert!(Bedrock::new(config(), "us.amazon.titan-embed-text-v2:0").is_ok());
}
