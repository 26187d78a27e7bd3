//! The handler of the webhooks' queue, with targets and clients that fail.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use chrono::{TimeDelta, Utc};
use hearback_domain::identity::identifier::{ProjectId, TenantId, WebhookName};
use hearback_domain::views::webhook::{PauseReason, Readiness, Webhook, WebhookRequest};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::{DeadLetters, REASON};
use hearback_lambda::queue::RECIPIENT;
use hearback_relay::{Relay, Sender, WebhookRegistry, Webhooks};
use hearback_tests::app::eventually;
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::queue::{self, batch, count};
use hearback_tests::rows::{damage, rows};
use hearback_tests::webhook_target::{Answer, Target};
use hearback_wire::from_json;
use serde_json::{Value, json};
use uuid::Uuid;

/// A tenant with webhooks.
struct World {
    engine: Engine,
    tenant: TenantId,
    clock: Clock,
}

impl World {
    async fn new(clock: Clock) -> Self {
        Self {
            engine: Engine::start().await,
            tenant: "acme".try_into().unwrap(),
            clock,
        }
    }

    fn sender() -> Sender {
        Sender::new("127.0.0.0/8".parse().unwrap()).unwrap()
    }

    async fn put(&self, name: &str, target: &Target) {
        self.put_by(name, target, None).await;
    }

    /// Puts a webhook as an administrator whose token has these projects.
    async fn put_by(&self, name: &str, target: &Target, projects: Option<Vec<ProjectId>>) {
        let store = self.engine.store.clone();
        let registry = WebhookRegistry::new(store, Self::sender(), self.clock);
        let request: WebhookRequest = from_json(&json!({"url": target.url()})).unwrap();
        let name: WebhookName = name.try_into().unwrap();
        let put = registry.put(&self.tenant, &name, &request, projects);
        put.await.unwrap();
    }

    async fn webhook(&self, name: &str) -> Webhook {
        let name = name.try_into().unwrap();
        let webhook = self.engine.store.webhook(&self.tenant, &name);
        webhook.await.unwrap().unwrap().value
    }

    /// The consumer of the queue, whose clients fail as planned.
    fn relay(&self, faults: &Faults) -> Relay<Webhooks> {
        let engine = &self.engine;
        let sqs = aws_sdk_sqs::Client::new(&faults.config(&engine.access.sqs().config()));
        let dead_letters = DeadLetters::new(sqs.clone(), &engine.queues.webhooks_dead_letters);
        Relay::to_webhooks(
            engine.failing_store(faults),
            Self::sender(),
            self.clock,
            (sqs, engine.queues.webhooks.clone()),
            dead_letters,
        )
    }

    async fn handle(&self, messages: impl IntoIterator<Item = SqsMessage>) -> Vec<String> {
        let handled = self.relay(&Faults::none()).handle(batch(messages)).await;
        let failed = handled.batch_item_failures.into_iter();
        failed.map(|failure| failure.item_identifier).collect()
    }

    /// Handles the messages of the queue until it is empty, delayed ones included.
    async fn drain(
        &self,
        handle: impl AsyncFn(SqsEvent) -> aws_lambda_events::sqs::SqsBatchResponse,
    ) {
        let (sqs, url) = (&self.engine.clients.sqs, &self.engine.queues.webhooks);
        eventually(|| async {
            while queue::step(sqs, url, |batch| handle(batch)).await.is_some() {}
            queue::is_empty(sqs, url).await.then_some(())
        })
        .await;
    }

    async fn waiting(&self) -> usize {
        count(&self.engine.clients.sqs, &self.engine.queues.webhooks).await
    }
}

/// A published message with this text in it.
fn published(about: &str) -> SqsMessage {
    let id = Uuid::new_v4();
    let body =
        json!({"id": id, "eventType": "feedback.processed", "tenant": "acme", "about": about});
    let mut message = SqsMessage::default();
    message.message_id = Some(id.to_string());
    message.body = Some(body.to_string());
    message
}

/// What a target has received.
fn about(target: &Target) -> BTreeSet<String> {
    let calls = target.calls().into_iter();
    calls
        .map(|call| call.body["about"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_webhook_that_fails_delays_no_other_and_receives_a_copy_of_its_own() {
    let world = World::new(Clock::system()).await;
    let (failing, working) = (Target::start().await, Target::start().await);
    failing.answers([Answer::Status(503)], Answer::Status(503));
    world.put("failing", &failing).await;
    world.put("working", &working).await;
    assert_eq!(
        world.handle([published("a"), published("b")]).await,
        [] as [String; 0]
    );
    assert_eq!((working.calls().len(), failing.calls().len()), (2, 2));
    assert_eq!(world.waiting().await, 2);
    // While the target is unavailable, nothing is sent to it.
    assert_eq!(world.handle([published("c")]).await.len(), 0);
    assert_eq!((working.calls().len(), failing.calls().len()), (3, 2));
    assert_eq!(world.waiting().await, 3);
}

/// The offset of the clock of one test, in seconds.
static LATER: AtomicI64 = AtomicI64::new(0);

#[tokio::test]
async fn one_message_tries_a_target_that_was_unavailable_and_the_others_follow_it() {
    let clock = Clock::of(|| Utc::now() + TimeDelta::seconds(LATER.load(Ordering::SeqCst)));
    let world = World::new(clock).await;
    let target = Target::start().await;
    target.answers([], Answer::Hanging);
    world.put("crm", &target).await;
    let to_crm = |about: &str| {
        let mut message = published(about);
        let mut recipient = SqsMessageAttribute::default();
        recipient.string_value = Some("crm".to_owned());
        message
            .message_attributes
            .insert(RECIPIENT.to_owned(), recipient);
        message
    };
    let messages = ["a", "b", "c"].map(to_crm);
    assert_eq!(world.handle(messages[..1].to_vec()).await.len(), 1);
    let failing = world.webhook("crm").await.failing.unwrap();
    assert_eq!(failing.last, "the target did not answer in time");
    target.answers([Answer::Status(500)], Answer::Status(200));
    LATER.store(60, Ordering::SeqCst);
    // One call, which fails, for three messages.
    assert_eq!(world.handle(messages.to_vec()).await.len(), 3);
    assert_eq!(target.calls().len(), 2);
    LATER.store(600, Ordering::SeqCst);
    assert_eq!(world.handle(messages.to_vec()).await.len(), 0);
    assert_eq!(target.calls().len(), 5);
    assert_eq!(world.webhook("crm").await.failing, None);
    // After a day without a success it is paused, and a message for it becomes a dead letter.
    target.answers([], Answer::Status(500));
    assert_eq!(world.handle(messages[..1].to_vec()).await.len(), 1);
    LATER.store(600 + 24 * 3600, Ordering::SeqCst);
    assert_eq!(world.handle(messages[..1].to_vec()).await.len(), 1);
    let webhook = world.webhook("crm").await;
    assert_eq!(webhook.readiness(clock.now()), Readiness::Paused);
    assert_eq!(
        webhook.failing.unwrap().paused.unwrap().1,
        PauseReason::Failing
    );
    assert_eq!(world.handle(messages[..1].to_vec()).await.len(), 0);
    assert_eq!(target.calls().len(), 7);
    // Nothing new is sent to it either, until it is put again.
    assert_eq!(world.handle([published("d")]).await.len(), 0);
    assert_eq!((target.calls().len(), world.waiting().await), (7, 0));
    target.answers([], Answer::Status(200));
    world.put("crm", &target).await;
    assert_eq!(world.handle([published("e")]).await.len(), 0);
    assert_eq!(target.calls().len(), 8);
}

#[tokio::test]
async fn a_message_that_the_target_rejects_stops_no_other() {
    let world = World::new(Clock::system()).await;
    let target = Target::start().await;
    target.answers([], Answer::Rejecting("poison"));
    world.put("crm", &target).await;
    let messages = ["a", "poison", "b", "c"].map(published);
    assert_eq!(world.handle(messages).await.len(), 0);
    assert_eq!(about(&target).len(), 4);
    assert_eq!(
        world.webhook("crm").await.failing,
        None,
        "the others succeeded"
    );
    assert_eq!(world.waiting().await, 1);
    assert_eq!(world.handle([published("d")]).await.len(), 0);
    assert!(about(&target).contains("d"));
}

#[tokio::test]
async fn a_target_that_is_gone_is_paused_and_its_messages_become_dead_letters() {
    let world = World::new(Clock::system()).await;
    let (gone, other) = (Target::start().await, Target::start().await);
    gone.answers([], Answer::Status(410));
    world.put("gone", &gone).await;
    world.put("other", &other).await;
    assert_eq!(world.handle([published("a")]).await.len(), 0);
    let relay = world.relay(&Faults::none());
    world.drain(async |batch| relay.handle(batch).await).await;
    assert_eq!((gone.calls().len(), other.calls().len()), (1, 1));
    let paused = world.webhook("gone").await.failing.unwrap().paused.unwrap();
    assert_eq!(paused.1, PauseReason::Gone);
    let receive = world.engine.clients.sqs.receive_message();
    let receive = receive.queue_url(&world.engine.queues.webhooks_dead_letters);
    let received = receive.message_attribute_names("All").send().await.unwrap();
    let attributes = received.messages.unwrap()[0]
        .message_attributes
        .clone()
        .unwrap();
    let text = |name: &str| attributes[name].string_value.clone().unwrap();
    assert_eq!(text(RECIPIENT), "gone");
    assert_eq!(text(REASON), "the webhook is paused");
}

#[tokio::test]
async fn a_copy_is_not_sent_to_a_webhook_that_was_put_again_and_may_not_receive_it() {
    let world = World::new(Clock::system()).await;
    let (first, second) = (Target::start().await, Target::start().await);
    first.answers([], Answer::Status(500));
    world.put("crm", &first).await;
    let mut message = published("a");
    let mut body: Value = serde_json::from_str(&message.body.unwrap()).unwrap();
    body["projectId"] = json!("order-service");
    message.body = Some(body.to_string());
    assert_eq!(world.handle([message]).await.len(), 0);
    assert_eq!((first.calls().len(), world.waiting().await), (1, 1));
    // By an administrator who does not have the project.
    let billing = "billing".try_into().unwrap();
    world.put_by("crm", &second, Some(vec![billing])).await;
    let relay = world.relay(&Faults::none());
    world.drain(async |batch| relay.handle(batch).await).await;
    assert_eq!((first.calls().len(), second.calls().len()), (1, 0));
}

#[tokio::test]
async fn a_success_during_a_rotation_ends_the_failing_and_keeps_the_new_secret() {
    let clock = Clock::of(|| Utc::now() + TimeDelta::hours(1));
    let world = World::new(Clock::system()).await;
    let target = Target::start().await;
    target.answers(
        [Answer::Status(500)],
        Answer::After(Duration::from_secs(1), 200),
    );
    world.put("crm", &target).await;
    assert_eq!(world.handle([published("a")]).await.len(), 0);
    let world = World { clock, ..world };
    let store = world.engine.store.clone();
    let registry = WebhookRegistry::new(store, World::sender(), clock);
    let name = "crm".try_into().unwrap();
    let rotate = async {
        target.received(2).await;
        registry.rotate(&world.tenant, &name).await.unwrap()
    };
    let (failed, rotated) = tokio::join!(world.handle([published("b")]), rotate);
    assert_eq!(failed.len(), 0);
    let webhook = world.webhook("crm").await;
    assert_eq!(webhook.secret, rotated.secret);
    assert_eq!(webhook.failing, None);
}

#[tokio::test]
async fn a_slow_rejection_counts_as_unavailable() {
    let world = World::new(Clock::system()).await;
    let target = Target::start().await;
    target.answers([], Answer::After(Duration::from_millis(2_100), 400));
    world.put("crm", &target).await;
    assert_eq!(world.handle([published("a")]).await.len(), 0);
    let webhook = world.webhook("crm").await;
    assert_ne!(
        webhook.readiness(Utc::now() - TimeDelta::seconds(5)),
        Readiness::Ready
    );
}

#[tokio::test]
async fn a_copy_waits_for_a_webhook_whose_row_is_damaged() {
    let world = World::new(Clock::system()).await;
    let target = Target::start().await;
    world.put("crm", &target).await;
    let (dynamodb, table) = (&world.engine.clients.dynamodb, world.engine.names.table());
    let [row] = rows(dynamodb, &table).await.try_into().unwrap();
    damage(dynamodb, &table, &row, "core").await;
    let mut copy = published("a");
    let mut recipient = SqsMessageAttribute::default();
    recipient.string_value = Some("crm".to_owned());
    copy.message_attributes
        .insert(RECIPIENT.to_owned(), recipient);
    assert_eq!(world.handle([copy.clone()]).await.len(), 1);
    let repair = dynamodb.put_item().table_name(&table);
    repair.set_item(Some(row)).send().await.unwrap();
    assert_eq!(world.handle([copy]).await.len(), 0);
    assert_eq!(target.calls().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let world = World::new(Clock::system()).await;
    let (target, inside) = (Target::start().await, Target::start().await);
    target.answers([], Answer::With(307, "location", inside.url()));
    world.put("crm", &target).await;
    assert_eq!(world.handle([published("a")]).await.len(), 0);
    let failing = world.webhook("crm").await.failing.unwrap();
    assert_eq!(failing.last, "the target answered 307");
    assert_eq!(inside.calls().len(), 0);
}

#[tokio::test]
async fn each_webhook_receives_each_message_whatever_call_fails() {
    for fault in [Fault::Unreachable, Fault::Unanswered, Fault::Crashed] {
        let mut points = 0;
        let calls = Faults::at_each_call(fault, async |faults| {
            // The first attempt of a target fails, so that a copy is sent, and the state is stored.
            static HOURS: AtomicI64 = AtomicI64::new(0);
            let clock = Clock::of(|| Utc::now() + TimeDelta::hours(HOURS.load(Ordering::SeqCst)));
            HOURS.store(0, Ordering::SeqCst);
            let world = World::new(clock).await;
            let (failing, working) = (Target::start().await, Target::start().await);
            failing.answers([Answer::Status(500)], Answer::Status(200));
            world.put("failing", &failing).await;
            world.put("working", &working).await;
            let send = world.engine.clients.sqs.send_message();
            let send = send.queue_url(&world.engine.queues.webhooks);
            send.message_body(published("a").body.unwrap())
                .send()
                .await
                .unwrap();
            let (faulty, sound) = (world.relay(faults), world.relay(&Faults::none()));
            world
                .drain(async |batch| {
                    // Each message is handled after the target may be called again.
                    HOURS.fetch_add(1, Ordering::SeqCst);
                    if faults.crashed() {
                        return sound.handle(batch).await;
                    }
                    let handled = faulty.handle(batch.clone()).await;
                    if faults.crashed() {
                        // Nobody learns what it has handled.
                        return sound.handle(batch).await;
                    }
                    handled
                })
                .await;
            for (name, target) in [("failing", &failing), ("working", &working)] {
                assert_eq!(
                    about(target).len(),
                    1,
                    "{name}: {fault:?} at {}",
                    faults.at_call()
                );
            }
            let webhook = world.webhook("failing").await;
            assert_ne!(webhook.readiness(clock.now()), Readiness::Paused);
            points += 1;
        })
        .await;
        assert!(calls >= 5 && points > calls, "{calls}");
    }
}
