//! The signal generator, both exports and an erasure run over a table in which one attribute of one row is damaged.
//! Everything about the other conversation is still processed, exported and erased.

use aws_lambda_events::sqs::SqsMessage;
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_tests::queue::{batch, pipe_message};

use super::*;
use crate::erasure_steps::world::World;

/// One in this many kinds of damage is tested. Each commit selects different ones.
const VISITED: usize = 12;

/// A table and a bucket that can be restored.
struct Copy {
    engine: Engine,
    rows: Vec<Row>,
    objects: BTreeMap<String, Vec<u8>>,
}

fn is_about_first(row: &Row) -> bool {
    format!("{row:?}").contains("conv-one")
}

impl Copy {
    /// Copies the table and the bucket of a bundle to an engine without workers.
    async fn of(app: &TestApp) -> Self {
        let (clients, names) = (&app.bundle.clients, Names::default());
        let engine = Engine::start().await;
        let mut rows = rows(&clients.dynamodb, &names.table()).await;
        for row in &mut rows {
            let uri = attribute(row, "hosted_uri").replace(&names.bucket(), &engine.names.bucket());
            if !uri.is_empty() {
                row.insert("hosted_uri".to_owned(), AttributeValue::S(uri));
            }
        }
        Self {
            objects: Stored::read(clients, &names).await.objects,
            engine,
            rows,
        }
    }

    async fn put(&self, row: &Row) -> bool {
        let put = self.engine.clients.dynamodb.put_item();
        let put = put.table_name(self.engine.names.table());
        put.set_item(Some(row.clone())).send().await.is_ok()
    }

    async fn delete(&self, row: &Row) {
        let delete = self.engine.clients.dynamodb.delete_item();
        let delete = delete.table_name(self.engine.names.table());
        let delete = delete
            .key("PK", row["PK"].clone())
            .key("SK", row["SK"].clone());
        delete.send().await.unwrap();
    }

    async fn current(&self) -> Vec<Row> {
        rows(&self.engine.clients.dynamodb, &self.engine.names.table()).await
    }

    async fn restore(&self) {
        let key = |row: &Row| {
            (
                attribute(row, "PK").to_owned(),
                attribute(row, "SK").to_owned(),
            )
        };
        let known: BTreeMap<_, _> = self.rows.iter().map(|row| (key(row), row)).collect();
        for row in self.current().await {
            if !known.contains_key(&key(&row)) {
                self.delete(&row).await;
            }
        }
        for row in &self.rows {
            assert!(self.put(row).await);
        }
        for (key, object) in &self.objects {
            let put = self.engine.blobs();
            put.put_file(key, object.clone()).await.unwrap();
        }
    }

    /// Processes the events about the first conversation again, as if they were new.
    async fn generate(&self) -> Result<(), String> {
        let outcomes = || self.rows.iter().filter(|row| is_about_first(row));
        let outcomes = || outcomes().filter(|row| attribute(row, "SK") == "RESULT");
        assert!(outcomes().count() > 3);
        for outcome in outcomes() {
            self.delete(outcome).await;
        }
        let kinds = ["EVENT", "REACTION#", "SIGNAL#"];
        let submitted = self.rows.iter().filter(|row| {
            let is_kind = |kind: &&str| attribute(row, "SK").starts_with(kind);
            row.contains_key("core") && is_about_first(row) && kinds.iter().any(is_kind)
        });
        let messages: Vec<SqsMessage> = submitted.map(|row| pipe_message(row, "INSERT")).collect();
        let generator = self.engine.generator(self.engine.store.clone());
        let failed = generator.handle(batch(messages)).await.batch_item_failures;
        let processed = self.current().await;
        let is_processed = |outcome: &Row| {
            let is_it = |row: &Row| row["PK"] == outcome["PK"] && row["SK"] == outcome["SK"];
            processed.iter().any(is_it)
        };
        if !failed.is_empty() || !outcomes().all(is_processed) {
            return Err(format!("the generator: {failed:?}"));
        }
        Ok(())
    }

    async fn export(&self) -> Result<(), String> {
        let exporter = Exporter::new(
            self.engine.store.clone(),
            self.engine.blobs(),
            Clock::system(),
        );
        for request in [
            json!({"tenant": "acme", "day": Utc::now().date_naive()}),
            json!({"tenant": "acme", "training": {"project": "order-service"}}),
        ] {
            let exported = exporter.handle(&request, None).await;
            let exported = exported.map_err(|error| format!("{request}: {error}"))?;
            let exported = serde_json::to_value(exported).unwrap();
            let rows = exported.pointer("/labels/rows");
            let rows = rows.unwrap_or(&exported["rows"]).as_u64();
            if rows.is_none_or(|rows| rows == 0) {
                return Err(format!("{request}: {exported}"));
            }
        }
        Ok(())
    }

    async fn erase(&self) -> Result<(), String> {
        let world = World::of(&self.engine);
        world.erase().await;
        world.finish().await;
        let progress = world.progress().await;
        let left = self.current().await.into_iter().filter(is_about_first);
        let left: Vec<_> = left.collect();
        if progress["status"] != "done" || !left.is_empty() {
            return Err(format!("the erasure: {progress} {left:?}"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn one_damaged_attribute_does_not_stop_workers_exports_or_erasures() {
    let app = TestApp::start().await;
    let about_first = give_feedback(&app).await;
    let copy = Copy::of(&app).await;
    drop(app);
    let visits_all = given::<String>("HEARBACK_CRASH_POINTS").is_some_and(|points| points == "all");
    let visited = if visits_all { 1 } else { VISITED };
    let (mut failures, mut damages) = (Vec::new(), commit());
    for (kind, row) in one_of_each_kind(&copy.rows, &about_first) {
        for (damage, damaged) in damaged(&row) {
            damages += 1;
            if !damages.is_multiple_of(visited) {
                continue;
            }
            copy.restore().await;
            if !copy.put(&damaged).await {
                continue;
            }
            for ended in [
                copy.generate().await,
                copy.export().await,
                copy.erase().await,
            ] {
                if let Err(failure) = ended {
                    failures.push(format!("{kind:?} {damage}: {failure}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
