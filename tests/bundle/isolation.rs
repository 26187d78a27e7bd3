//! Isolation: every route for every kind of caller, as the table of `docs/reference/isolation.md` specifies.

mod callers;
mod claims;
mod live;
mod owner;
mod requests;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use hearback_domain::identity::privacy::Pseudonyms;
use hearback_local::description::openapi;
use hearback_local::files::{PSEUDONYM_KEY_FILE, TOKEN_KEY_FILE};
use hearback_local::names::Names;
use hearback_tests::app::TestApp;
use hearback_tests::stored::Stored;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;

use callers::{Caller, callers};
use owner::Owner;
use requests::{Sent, sent};
use table::{Cell, Row, Table};

#[test]
fn the_isolation_page_lists_every_route_and_every_caller() {
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
    let documented: BTreeSet<_> = table.rows.iter().map(Row::full_route).collect();
    assert_eq!(documented, routes);
    let named: BTreeSet<_> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(named.len(), table.rows.len(), "a row is duplicated");
    for row in &table.rows {
        assert_eq!(row.cells.len(), table.callers.len(), "{}", row.name);
    }
    for caller in &table.callers {
        assert!(table::documents(caller), "{caller}");
    }
}

#[tokio::test]
async fn a_request_that_the_isolation_page_rejects_writes_and_reveals_nothing() {
    let mut matrix = Matrix::new().await;
    let before = settled(&matrix.app).await;
    assert!(before.with(owner::WORDS).len() > 8, "the owner has data");
    let rejected = |_: &Sent, cell: Cell| cell.is_rejected();
    assert!(matrix.run(rejected).await > 2_000);
    assert_eq!(stored(&matrix.app).await, before);
}

#[tokio::test]
async fn every_caller_gets_what_the_isolation_page_says_and_no_other_data_of_the_owner() {
    let mut matrix = Matrix::new().await;
    let before = settled(&matrix.app).await;

    // Before others write anything, their own views are empty, and the owner's data is visible only to those who may
    // see it.
    let own = |cell: Cell| !cell.is_rejected() && !cell.is_the_owners;
    matrix.run(|sent, cell| own(cell) && !sent.writes).await;
    assert_eq!(stored(&matrix.app).await, before);
    let the_owners = |cell: Cell| cell.is_the_owners;
    matrix
        .run(|sent, cell| the_owners(cell) && !sent.writes)
        .await;

    // Writes of others, an erasure included, leave the owner's data unchanged.
    let before = settled(&matrix.app).await;
    matrix.run(|sent, cell| own(cell) && sent.writes).await;
    matrix.wait_for_erasure_of_namesake().await;
    let after = settled(&matrix.app).await;
    // Counts are of everybody.
    let counts = |item: &&String| item.contains("(\"PK\", S(\"INSIGHTS#");
    for item in before.items.iter().filter(|item| !counts(item)) {
        assert!(after.items.contains(item), "changed by others: {item}");
    }
    for (key, object) in &before.objects {
        assert_eq!(after.objects.get(key), Some(object), "changed by others");
    }

    // Finally the permitted writes to the owner's data. The table ends with an erasure.
    matrix
        .run(|sent, cell| the_owners(cell) && sent.writes)
        .await;
}

/// The pseudonym of the owner's anonymous events.
fn pseudonym(folder: &Path) -> String {
    let key = std::fs::read(folder.join(PSEUDONYM_KEY_FILE)).unwrap();
    let (tenant, user) = (owner::TENANT.try_into(), owner::OWNER.try_into());
    let pseudonym = Pseudonyms::new(key).user(&tenant.unwrap(), &user.unwrap());
    pseudonym.unwrap().into()
}

/// The table, its callers, and the bundle under test.
struct Matrix {
    app: TestApp,
    table: Table,
    callers: Vec<Caller>,
    owner: Owner,
    _folder: TempDir,
}

impl Matrix {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let app = TestApp::on(Some(folder.path().to_owned())).await;
        let key = std::fs::read(folder.path().join(TOKEN_KEY_FILE)).unwrap();
        let pseudonym = pseudonym(folder.path());
        let callers = callers(&app, &key, &pseudonym);
        let table = Table::read();
        let names: Vec<_> = callers.iter().map(|caller| caller.name).collect();
        assert_eq!(table.callers, names);
        Self {
            callers,
            owner: owner::create(&app, pseudonym).await,
            table,
            app,
            _folder: folder,
        }
    }

    /// Sends the requests of these cells, row by row, and returns their number.
    async fn run(&mut self, these: impl Fn(&Sent, Cell) -> bool) -> usize {
        let mut count = 0;
        for row in &self.table.rows {
            if row.name.starts_with("`PUT /v1/preferences") {
                // Preferences must not change by learning between the read and the write.
                settled(&self.app).await;
                self.owner.version = self.version().await;
            }
            for (caller, cell, (at, authorization)) in callers_of(&self.callers, row) {
                let sent = sent(row, &self.owner, caller);
                // A caller's permitted write is sent once, not with each token.
                let again = at > 0 && sent.writes && !cell.is_rejected();
                if again || !these(&sent, cell) {
                    continue;
                }
                let response = self.response(row, &sent, authorization).await;
                let about = format!("{} by {}: {response:?}", row.name, caller.name);
                // The request names the user of the caller's first token. With its other tokens, that is another user.
                let foreign = caller.is_authenticated()
                    && at > 0
                    && response.status == 403
                    && cell.is_rejected();
                let cell = if foreign {
                    Cell {
                        status: 403,
                        ..cell
                    }
                } else {
                    cell
                };
                check(&response, cell, &about);
                self.check_secrets(&response, (row, &sent, caller, cell), &about);
                let version = response.body()["preferenceVersion"].as_u64();
                // A caller with access reads the version before the next change.
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
        let response = self.app.get(&token, &path).await;
        response.body["preferenceVersion"].as_u64().unwrap()
    }

    async fn response(&self, row: &Row, sent: &Sent, authorization: Option<&str>) -> RawResponse {
        let (method, route) = row.route();
        let mut request = self.app.request(method, &sent.path(&route));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        if let Some(body) = &sent.body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        RawResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    /// Asserts that the response contains the owner's secrets only where the cell permits it. What the request
    /// contains itself does not count.
    fn check_secrets(
        &self,
        response: &RawResponse,
        (row, sent, caller, cell): (&Row, &Sent, &Caller, Cell),
        about: &str,
    ) {
        let (_, route) = row.route();
        let path = sent.path(&route);
        let request_text = format!("{path} {:?} {}", sent.body, caller.claims);
        let revealed = format!("{:?} {}", response.headers, response.text);
        let in_view = row.name.contains("in the owner's view");
        let is_owners_view = caller.name == "owner" || cell.is_the_owners && in_view;
        for private in sent.private.iter().filter(|_| !is_owners_view) {
            assert!(!revealed.contains(private), "{private}: {about}");
        }
        let secrets = self.owner.secrets.iter();
        let revealed: Vec<_> = secrets
            .filter(|secret| revealed.contains(*secret) && !request_text.contains(*secret))
            .collect();
        if !cell.is_the_owners {
            assert_eq!(revealed, Vec::<&String>::new(), "{about}");
        } else if sent.shows {
            assert!(!revealed.is_empty(), "shows nothing: {about}");
        }
    }

    /// Waits until the requested erasure of the namesake is done.
    async fn wait_for_erasure_of_namesake(&self) {
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

/// Each caller with its cell in a row, once for each of its numbered tokens.
fn callers_of<'a>(
    callers: &'a [Caller],
    row: &'a Row,
) -> impl Iterator<Item = (&'a Caller, Cell, (usize, Option<&'a str>))> {
    callers.iter().zip(&row.cells).flat_map(|(caller, cell)| {
        let authorizations = caller.authorizations.iter().map(Option::as_deref);
        let authorizations = authorizations.enumerate();
        authorizations.map(move |authorization| (caller, *cell, authorization))
    })
}

/// A response with its text.
#[derive(Debug)]
struct RawResponse {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl RawResponse {
    /// The body as JSON; `null` if it is not JSON.
    fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Asserts that the response matches the cell, and that a rejection reveals no more.
fn check(response: &RawResponse, cell: Cell, about: &str) {
    assert_eq!(response.status, cell.status, "{about}");
    let body = response.body();
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
        // The same response as for an id that does not exist: besides the request id only fixed text.
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

/// Reads the store once it is settled.
async fn settled(app: &TestApp) -> Stored {
    Stored::settled(&app.bundle.clients, &Names::default()).await
}
