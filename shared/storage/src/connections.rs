//! Connections of the live feed, and the tickets that open them.
//!
//! | row | key | what |
//! |---|---|---|
//! | ticket | `TICKET#` and its digest | who may connect; used once |
//! | connection | `CONNECTION#` and its id | who is connected, what they subscribe to, and how far they are |
//! | listener | `LISTENERS#` and the tenant, or a user of it | connections that a new entry concerns |
//!
//! All expire with the connection, and are found by their user in the author index, for erasures.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity, ReturnValue};
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::{try_join, try_join_all};
use hearback_domain::identity::identifier::{TenantId, UserRef};
use hearback_domain::views::feed::FeedView;
use hearback_domain::views::live::{Listener, Progress, Subscription, TICKET_LIFETIME};

use crate::attributes::CORE;
use crate::conditional::changed;
use crate::item::{self, Builder, Item};
use crate::reads::Key;
use crate::table::{AUTHOR, PK, SK};
use crate::{Error, Store, keys};

const CONNECTION: &str = "connection";
const SUBSCRIPTION: &str = "subscription";
/// The id of the subscription, which a condition compares.
const SUBSCRIPTION_ID: &str = "subscription_id";
const PROGRESS: &str = "progress";
/// How long rows are kept after their connection has ended: the message about its end may be late.
const KEPT_AFTER: TimeDelta = TimeDelta::minutes(15);

/// A connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// Who is connected.
    pub listener: Listener,
    /// What is subscribed to, and how much of that was received.
    pub subscribed: Option<(Subscription, Progress)>,
}

impl Connection {
    fn of(row: &Item) -> Result<Self, Error> {
        let subscribed = if row.contains_key(SUBSCRIPTION) {
            let subscription = item::json(row, CONNECTION, SUBSCRIPTION)?;
            Some((subscription, item::json(row, CONNECTION, PROGRESS)?))
        } else {
            None
        };
        Ok(Self {
            listener: item::json(row, CONNECTION, CORE)?,
            subscribed,
        })
    }
}

impl Store {
    /// Stores a ticket. One call, two writes: the ticket, and its entry in the author index.
    pub async fn put_ticket(&self, ticket: &str, listener: &Listener) -> Result<(), Error> {
        let expires = listener.since + TICKET_LIFETIME;
        self.put_row(ticket_key(ticket), Some(listener), listener, expires)
            .await
    }

    /// Takes a ticket: who may connect with it, unless it was taken or has expired. One call, two writes.
    pub async fn take_ticket(
        &self,
        ticket: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Listener>, Error> {
        let Some(row) = self.take_row(ticket_key(ticket)).await? else {
            return Ok(None);
        };
        let listener: Listener = item::json(&row, "ticket", CORE)?;
        // To the microsecond, as the ticket says; the row's own expiry has seconds.
        Ok((now < listener.since + TICKET_LIFETIME).then_some(listener))
    }

    /// Stores a connection. One call, two writes.
    pub async fn put_connection(&self, id: &str, listener: &Listener) -> Result<(), Error> {
        self.put_row(
            key(id),
            Some(listener),
            listener,
            listener.end().0 + KEPT_AFTER,
        )
        .await
    }

    /// A connection, if it is open. Strongly consistent. One call, one read for each 4 KB.
    pub async fn connection(&self, id: &str) -> Result<Option<Connection>, Error> {
        let (pk, sk) = key(id);
        let row = self.get(pk, sk).await?.item;
        row.as_ref().map(Connection::of).transpose()
    }

    /// Replaces what a connection subscribes to; `false` if it is not open. One call, one write for each KB, and one
    /// call and two writes for the tenant or for each name of the user.
    pub async fn subscribe(
        &self,
        id: &str,
        listener: &Listener,
        subscription: &Subscription,
        progress: &Progress,
    ) -> Result<bool, Error> {
        let subscribed = self
            .connection_update(id)
            .update_expression(
                "SET #subscription = :subscription, #id = :id, #progress = :progress",
            )
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_names("#subscription", SUBSCRIPTION)
            .expression_attribute_names("#id", SUBSCRIPTION_ID)
            .expression_attribute_names("#progress", PROGRESS)
            .expression_attribute_values(":subscription", item::text_of(CONNECTION, subscription)?)
            .expression_attribute_values(":id", AttributeValue::S(subscription.id.to_string()))
            .expression_attribute_values(":progress", item::text_of(CONNECTION, progress)?)
            .send()
            .await;
        if !changed("UpdateItem", subscribed)? {
            return Ok(false);
        }
        let expires = listener.end().0 + KEPT_AFTER;
        let rows = listener_keys(id, listener).into_iter();
        let rows = rows.map(|row| self.put_row(row, None, listener, expires));
        try_join_all(rows).await?;
        Ok(true)
    }

    /// Stores how far a connection is, unless it subscribes to something else by now or its progress is not the one
    /// before any more. One call, one write for each KB.
    pub async fn save_progress(
        &self,
        id: &str,
        subscription: &Subscription,
        before: &Progress,
        progress: &Progress,
    ) -> Result<bool, Error> {
        let saved = self
            .connection_update(id)
            .update_expression("SET #progress = :progress")
            .condition_expression("#id = :id AND #progress = :before")
            .expression_attribute_names("#progress", PROGRESS)
            .expression_attribute_names("#id", SUBSCRIPTION_ID)
            .expression_attribute_values(":before", item::text_of(CONNECTION, before)?)
            .expression_attribute_values(":progress", item::text_of(CONNECTION, progress)?)
            .expression_attribute_values(":id", AttributeValue::S(subscription.id.to_string()))
            .send()
            .await;
        changed("UpdateItem", saved)
    }

    fn connection_update(&self, id: &str) -> UpdateItemFluentBuilder {
        let (pk, sk) = key(id);
        self.client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Removes a connection. One call, two writes, and the same for each listener row.
    pub async fn delete_connection(&self, id: &str) -> Result<(), Error> {
        let Some(row) = self.take_row(key(id)).await? else {
            return Ok(());
        };
        // One that cannot be read leaves listener rows, which are removed when they are found.
        let Some(connection) = item::readable(&row, Connection::of(&row)) else {
            return Ok(());
        };
        self.remove_listeners(id, &connection.listener).await
    }

    /// Removes a listener row whose connection is closed. One call, two writes.
    pub async fn remove_listener(&self, key: Key) -> Result<(), Error> {
        self.take_row(key).await.map(|_| ())
    }

    async fn remove_listeners(&self, id: &str, listener: &Listener) -> Result<(), Error> {
        let rows = listener_keys(id, listener).into_iter();
        try_join_all(rows.map(|row| self.take_row(row))).await?;
        Ok(())
    }

    /// The connections that receive entries of this user, each with the key of its listener row. Eventually consistent.
    /// Two calls, half a read each for each 4 KB.
    pub async fn listeners(&self, owner: UserRef<'_>) -> Result<Vec<(String, Key)>, Error> {
        let (mut found, of_user) = try_join(
            self.listeners_in(keys::tenant_listeners(owner.tenant)),
            self.listeners_in(keys::user_listeners(owner)),
        )
        .await?;
        found.extend(of_user);
        Ok(found)
    }

    async fn listeners_in(&self, partition: String) -> Result<Vec<(String, Key)>, Error> {
        let mut found = Vec::new();
        let mut next: Option<Item> = None;
        loop {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk")
                .expression_attribute_values(":pk", AttributeValue::S(partition.clone()))
                .projection_expression("PK, SK")
                .set_exclusive_start_key(next.take())
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            found.extend(page.items().iter().filter_map(|row| {
                let sk = item::string(row, CONNECTION, SK).ok()?;
                Some((sk.to_owned(), (partition.clone(), sk.to_owned())))
            }));
            next = page.last_evaluated_key;
            if next.is_none() {
                return Ok(found);
            }
        }
    }

    /// Puts a row of a listener.
    async fn put_row(
        &self,
        (pk, sk): Key,
        core: Option<&Listener>,
        listener: &Listener,
        expires: DateTime<Utc>,
    ) -> Result<(), Error> {
        let owner = UserRef::new(&listener.tenant, &listener.user);
        let mut row = Builder::new(pk, sk)
            .string(AUTHOR, keys::user(owner))
            .expires_at(Some(expires));
        if let Some(core) = core {
            row = row.json(CONNECTION, CORE, core)?;
        }
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(row.build()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map(|_| ())
            .map_err(|error| Error::unavailable("PutItem", &error))
    }

    /// Deletes a row, and returns it if it was there.
    async fn take_row(&self, (pk, sk): Key) -> Result<Option<Item>, Error> {
        self.client
            .delete_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .return_values(ReturnValue::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map(|deleted| deleted.attributes)
            .map_err(|error| Error::unavailable("DeleteItem", &error))
    }
}

fn ticket_key(ticket: &str) -> Key {
    (keys::ticket(ticket), keys::TICKET.to_owned())
}

fn key(id: &str) -> Key {
    (keys::connection(id), keys::CONNECTION.to_owned())
}

/// The listener rows of a connection: those of its user's names, or that of the tenant.
fn listener_keys(id: &str, listener: &Listener) -> Vec<Key> {
    let tenant: &TenantId = &listener.tenant;
    let partitions = match &listener.view {
        FeedView::Own(users) => users
            .iter()
            .map(|user| keys::user_listeners(UserRef::new(tenant, user)))
            .collect(),
        FeedView::OnBehalf { user, .. } => vec![keys::user_listeners(UserRef::new(tenant, user))],
        FeedView::Tenant { .. } => vec![keys::tenant_listeners(tenant)],
    };
    partitions
        .into_iter()
        .map(|partition| (partition, id.to_owned()))
        .collect()
}
