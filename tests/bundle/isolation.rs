//! Who gets at whose feedback: every route for every kind of caller, as the table of
//! `docs/isolation.md` says.

mod callers;
mod owner;
mod requests;
mod table;

use std::collections::BTreeSet;

use hearback_local::gateway::openapi;
use hearback_local::names::Names;
use hearback_tests::app::TestApp;
use hearback_tests::stored::Stored;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use callers::{Caller, callers};
use owner::Owner;
use requests::{Sent, sent};
use table::{Cell, Row, Table};

#[test]
fn every_route_and_every_caller_is_in_the_table() {
    let document = serde_json::to_value(openapi()).unwrap();
    let routes: BTreeSet<_> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let table = Table::read();
    let told: BTreeSet<_> = table.rows.iter().map(Row::full_route).collect();
    assert_eq!(told, routes);
    let named: BTreeSet<_> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(named.len(), table.rows.len(), "no row twice");
    for row in &table.rows {
        assert_eq!(row.cells.len(), table.callers.len(), "{}", row.name);
    }
    for caller in &table.callers {
        assert!(table::tells_of(caller), "{caller}");
    }
}

#[tokio::test]
async fn every_caller_gets_what_the_table_says_and_nothing_else_of_the_owners() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let key = std::fs::read(folder.path().join(hearback_local::token::KEY_FILE)).unwrap();
    let mut matrix = Matrix {
        callers: callers(&app, &key),
        owner: owner::live(&app).await,
        table: Table::read(),
        app,
    };
    assert_eq!(
        matrix.table.callers,
        matrix
            .callers
            .iter()
            .map(|caller| caller.name)
            .collect::<Vec<_>>()
    );
    let before = settled(&matrix.app).await;
    assert!(before.with(owner::WORDS).len() > 8, "there is what to see");

    // What is refused leaves nothing behind.
    let refused = |_: &Sent, cell: Cell| cell.is_refused();
    assert!(matrix.run(refused).await > 500);
    assert_eq!(stored(&matrix.app).await, before);

    // Before anybody wrote anything, a view of one's own has nothing in it. The same requests show
    // what is the owner's to those who may see it.
    let own = |cell: Cell| !cell.is_refused() && !cell.is_the_owners;
    matrix.run(|sent, cell| own(cell) && !sent.writes).await;
    assert_eq!(stored(&matrix.app).await, before);
    let the_owners = |cell: Cell| cell.is_the_owners;
    matrix
        .run(|sent, cell| the_owners(cell) && !sent.writes)
        .await;

    // What others write of their own, an erasure included, leaves the owner's as it is.
    let before = settled(&matrix.app).await;
    matrix.run(|sent, cell| own(cell) && sent.writes).await;
    matrix.namesake_is_erased().await;
    let after = settled(&matrix.app).await;
    for item in &before.items {
        assert!(after.items.contains(item), "changed by others: {item}");
    }
    for (key, object) in &before.objects {
        assert_eq!(after.objects.get(key), Some(object), "changed by others");
    }

    // At last what may be done to the owner's. The table ends with an erasure.
    matrix
        .run(|sent, cell| the_owners(cell) && sent.writes)
        .await;
}

/// The table, whom it is about, and where it is tried.
struct Matrix {
    app: TestApp,
    table: Table,
    callers: Vec<Caller>,
    owner: Owner,
}

impl Matrix {
    /// Sends the requests of these cells, row by row, and answers how many it sent.
    async fn run(&mut self, these: impl Fn(&Sent, Cell) -> bool) -> usize {
        let mut count = 0;
        for row in &self.table.rows {
            if row.name.starts_with("`PUT /v1/preferences") {
                // What feedback of the rows before teaches makes no version while preferences are changed.
                settled(&self.app).await;
                self.owner.version = self.version().await;
            }
            for (caller, cell, authorization) in of(&self.callers, row) {
                let sent = sent(row, &self.owner, caller);
                if !these(&sent, cell) {
                    continue;
                }
                let answer = self.answer(row, &sent, authorization).await;
                let about = format!("{} by {}: {answer:?}", row.name, caller.name);
                check(&answer, cell, &about);
                self.look(&answer, (row, &sent, caller, cell), &about);
                let version = answer.body()["preferenceVersion"].as_u64();
                // Whoever changes preferences has read them.
                if let Some(version) = version.filter(|_| cell.is_the_owners) {
                    self.owner.version = version;
                }
                count += 1;
            }
        }
        count
    }

    /// The newest version of the owner's preferences.
    async fn version(&self) -> u64 {
        let token = self.app.token(owner::OWNER);
        let path = format!("/v1/preferences/{}", owner::OWNER);
        let answer = self.app.get(&token, &path).await;
        answer.body["preferenceVersion"].as_u64().unwrap()
    }

    async fn answer(&self, row: &Row, sent: &Sent, authorization: Option<&str>) -> Answer {
        let (method, route) = row.route();
        let mut request = self.app.request(method, &sent.path(&route));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        if let Some(body) = &sent.body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    /// Whether the answer tells of the owner what the caller did not say itself.
    fn look(
        &self,
        answer: &Answer,
        (row, sent, caller, cell): (&Row, &Sent, &Caller, Cell),
        about: &str,
    ) {
        let (_, route) = row.route();
        let path = sent.path(&route);
        let said = format!("{path} {:?} {}", sent.body, caller.claims);
        let told = format!("{:?} {}", answer.headers, answer.text);
        let secrets = self.owner.secrets.iter();
        let told: Vec<_> = secrets
            .filter(|secret| told.contains(*secret) && !said.contains(*secret))
            .collect();
        if !cell.is_the_owners {
            assert_eq!(told, Vec::<&String>::new(), "{about}");
        } else if sent.shows {
            assert!(!told.is_empty(), "shows nothing: {about}");
        }
    }

    /// Whoever has the owner's name elsewhere asked to be erased: waits until that is done.
    async fn namesake_is_erased(&self) {
        let namesake = self
            .callers
            .iter()
            .find(|caller| caller.name == "namesake")
            .unwrap();
        let token = namesake.authorizations[0].as_deref().unwrap();
        let token = token.strip_prefix("Bearer ").unwrap();
        owner::erased(&self.app, token).await;
    }
}

/// Each caller with its cell in a row, once for each of its tokens.
fn of<'a>(
    callers: &'a [Caller],
    row: &'a Row,
) -> impl Iterator<Item = (&'a Caller, Cell, Option<&'a str>)> {
    callers.iter().zip(&row.cells).flat_map(|(caller, cell)| {
        let authorizations = caller.authorizations.iter();
        authorizations.map(move |authorization| (caller, *cell, authorization.as_deref()))
    })
}

/// What was answered, as it was sent.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    /// As JSON; `null` if it is none.
    fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Whether the answer is the one that the cell says, and a refusal says no more than that.
fn check(answer: &Answer, cell: Cell, about: &str) {
    assert_eq!(answer.status, cell.status, "{about}");
    let body = answer.body();
    let of_event = body.pointer("/results/0/error/status");
    assert_eq!(
        of_event.and_then(Value::as_u64),
        cell.of_event.map(u64::from),
        "{about}"
    );
    let error = match cell.status {
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        _ => return,
    };
    assert_eq!(body["error"], error, "{about}");
    if cell.status == 404 {
        // As for what does not exist anywhere: beside the id of the request nothing but fixed words.
        let mut nothing = json!({
            "type": "about:blank", "title": "Not Found", "status": 404, "error": "not_found",
            "request_id": body["request_id"],
        });
        if let Some(detail) = body["detail"].as_str() {
            let fixed = ["event", "turn", "message"]
                .map(|what| format!("There is no such {what}, or it is not yours."));
            assert!(fixed.iter().any(|fixed| fixed == detail), "{about}");
            nothing["detail"] = json!(detail);
        }
        assert_eq!(body, nothing, "{about}");
    }
}

async fn stored(app: &TestApp) -> Stored {
    Stored::read(&app.bundle.clients, &Names::default()).await
}

/// The store, once nothing is on its way.
async fn settled(app: &TestApp) -> Stored {
    Stored::settled(&app.bundle.clients, &Names::default()).await
}
