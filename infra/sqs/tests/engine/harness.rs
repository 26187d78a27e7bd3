//! An engine on an ephemeral port, and an SDK client for it.

use std::net::Ipv4Addr;

use aws_credential_types::Credentials;
use aws_sdk_sqs::{
    Client,
    config::{BehaviorVersion, Config, Region, retry::RetryConfig},
    types::{Message, MessageSystemAttributeName, QueueAttributeName},
};
use aws_smithy_http_client::Builder;
use hearback_sqs::Sqs;
use tokio::{net::TcpListener, task::JoinHandle};

pub(crate) struct Engine {
    pub(crate) sqs: Client,
    pub(crate) address: String,
    server: JoinHandle<()>,
}

impl Engine {
    pub(crate) async fn start() -> Self {
        Self::serve(Sqs::in_memory("us-east-1").unwrap()).await
    }

    pub(crate) async fn serve(engine: Sqs) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move {
            axum::serve(listener, engine.router()).await.unwrap();
        });
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(format!("http://{address}"))
            .retry_config(RetryConfig::disabled())
            .http_client(Builder::new().build_http())
            .build();
        Self {
            sqs: Client::from_conf(config),
            address,
            server,
        }
    }

    /// A queue with these attributes; its URL.
    pub(crate) async fn queue(
        &self,
        name: &str,
        attributes: &[(QueueAttributeName, &str)],
    ) -> String {
        let mut request = self.sqs.create_queue().queue_name(name);
        for (key, value) in attributes {
            request = request.attributes(key.clone(), *value);
        }
        request.send().await.unwrap().queue_url.unwrap()
    }

    pub(crate) async fn send(&self, queue: &str, body: &str) {
        self.sqs
            .send_message()
            .queue_url(queue)
            .message_body(body)
            .send()
            .await
            .unwrap();
    }

    /// Up to ten messages that are due now, with all system attributes.
    pub(crate) async fn receive(&self, queue: &str) -> Vec<Message> {
        self.wait_for(queue, 0).await
    }

    /// Up to ten messages, as soon as there are any.
    pub(crate) async fn wait_for(&self, queue: &str, seconds: i32) -> Vec<Message> {
        self.sqs
            .receive_message()
            .queue_url(queue)
            .max_number_of_messages(10)
            .wait_time_seconds(seconds)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send()
            .await
            .unwrap()
            .messages
            .unwrap_or_default()
    }

    pub(crate) async fn delete(&self, queue: &str, message: &Message) {
        let handle = message.receipt_handle().unwrap();
        self.sqs
            .delete_message()
            .queue_url(queue)
            .receipt_handle(handle)
            .send()
            .await
            .unwrap();
    }

    /// Hides a message for this many seconds; zero makes it due again.
    pub(crate) async fn hide(&self, queue: &str, message: &Message, seconds: i32) {
        self.sqs
            .change_message_visibility()
            .queue_url(queue)
            .receipt_handle(message.receipt_handle().unwrap())
            .visibility_timeout(seconds)
            .send()
            .await
            .unwrap();
    }

    pub(crate) async fn attribute(&self, queue: &str, name: QueueAttributeName) -> String {
        let answer = self
            .sqs
            .get_queue_attributes()
            .queue_url(queue)
            .attribute_names(name.clone())
            .send()
            .await
            .unwrap();
        answer
            .attributes
            .and_then(|mut all| all.remove(&name))
            .unwrap_or_default()
    }

    /// The numbers of visible, in-flight and delayed messages.
    pub(crate) async fn counts(&self, queue: &str) -> [String; 3] {
        [
            self.attribute(queue, QueueAttributeName::ApproximateNumberOfMessages)
                .await,
            self.attribute(
                queue,
                QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            )
            .await,
            self.attribute(
                queue,
                QueueAttributeName::ApproximateNumberOfMessagesDelayed,
            )
            .await,
        ]
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.server.abort();
    }
}

pub(crate) fn system(message: &Message, name: &MessageSystemAttributeName) -> Option<String> {
    message.attributes()?.get(name).cloned()
}

pub(crate) fn receive_count(message: &Message) -> String {
    system(
        message,
        &MessageSystemAttributeName::ApproximateReceiveCount,
    )
    .unwrap()
}

pub(crate) fn bodies(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message.body().unwrap())
        .collect()
}
