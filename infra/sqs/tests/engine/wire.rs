//! Headers, statuses and requests that no SDK shows or sends.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::Engine;

/// Posts a body for an operation, and returns the whole response in lower case.
async fn post(engine: &Engine, target: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(&engine.address).await.unwrap();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: queues.example:80\r\nx-amz-target: {target}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.to_lowercase()
}

#[tokio::test]
async fn an_error_has_its_type_in_the_body_and_its_query_code_in_a_header() {
    let engine = Engine::start().await;
    let answer = post(
        &engine,
        "AmazonSQS.PurgeQueue",
        r#"{"QueueUrl":"http://x/0/none"}"#,
    )
    .await;
    assert!(answer.starts_with("http/1.1 400 "));
    assert!(answer.contains("content-type: application/x-amz-json-1.0\r\n"));
    let header = "x-amzn-query-error: aws.simplequeueservice.nonexistentqueue;sender\r\n";
    assert!(answer.contains(header));
    assert!(answer.contains(r#""__type":"com.amazonaws.sqs#queuedoesnotexist""#));
}

#[tokio::test]
async fn queue_url_has_the_host_of_the_request() {
    let engine = Engine::start().await;
    let answer = post(&engine, "AmazonSQS.CreateQueue", r#"{"QueueName":"jobs"}"#).await;
    assert!(answer.ends_with(r#"{"queueurl":"http://queues.example:80/000000000000/jobs"}"#));
    engine
        .send("https://sqs.elsewhere.example/123456789012/jobs", "x")
        .await;
    let answer = post(
        &engine,
        "AmazonSQS.ReceiveMessage",
        r#"{"QueueUrl":"jobs"}"#,
    )
    .await;
    assert!(answer.contains(r#""body":"x""#));
    let answer = post(
        &engine,
        "AmazonSQS.ReceiveMessage",
        r#"{"QueueUrl":"jobs"}"#,
    )
    .await;
    assert!(answer.ends_with("{}"), "an empty list is left out");
}

#[tokio::test]
async fn unparsable_request_is_rejected() {
    let engine = Engine::start().await;
    let answer = post(&engine, "AmazonSQS.Explode", "{}").await;
    assert!(answer.starts_with("http/1.1 400 ") && answer.contains("unknownoperationexception"));
    let answer = post(&engine, "AmazonSQS.SendMessage", "{").await;
    assert!(answer.starts_with("http/1.1 400 ") && answer.contains("serializationexception"));
    let answer = post(&engine, "AmazonSQS.SendMessage", r#"{"MessageBody":"x"}"#).await;
    assert!(answer.contains("missing field `queueurl`"));
}
