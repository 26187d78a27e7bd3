//! What happens when a client connects, sends a frame or leaves.

use axum::http::StatusCode;
use chrono::TimeDelta;
use hearback_domain::events::retention::LEDGER_DAYS;
use hearback_domain::views::feed::{FeedFilter, FeedPosition, FeedView, SETTLED_AFTER};
use hearback_domain::views::live::{
    CHECK_AFTER, ClientAction, ClientFrame, Listener, Progress, ServerFrame, Subscription,
};
use hearback_lambda::settings::setting;
use hearback_lambda::{App, BadSetting, FromEnv, Problem};
use hearback_wire::FieldError;
use uuid::Uuid;

use crate::delivery::{Delivery, Failure};
use crate::sockets::{Posted, Sockets};
use crate::tasks::{Task, Tasks};
use crate::ticket::STREAM_URL;

/// The state of the function.
#[derive(Debug, Clone)]
pub struct LiveFeed {
    /// What HTTP handlers need.
    pub app: App,
    /// What sends events.
    pub delivery: Delivery,
    /// Where clients connect; `None` for the host of the HTTP API.
    pub url: Option<String>,
}

impl FromEnv for LiveFeed {
    fn from_env() -> Result<Self, BadSetting> {
        let app = App::from_env()?;
        Ok(Self {
            delivery: Delivery {
                store: app.store.clone(),
                clock: app.clock,
                sockets: Sockets::from_env()?,
                tasks: Tasks::from_env()?,
            },
            app,
            url: setting(STREAM_URL).ok(),
        })
    }
}

impl LiveFeed {
    /// A client connects with a ticket. Four calls.
    pub async fn connect(&self, id: &str, ticket: &str) -> Result<(), Problem> {
        let Delivery {
            store,
            clock,
            tasks,
            ..
        } = &self.delivery;
        let now = clock.now();
        let listener = store.take_ticket(ticket, now).await?;
        let listener = listener.map(|listener| Listener {
            since: now,
            ..listener
        });
        let Some(listener) = listener.filter(|listener| now < listener.end().0) else {
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized")
                .detail("There is no such ticket, or it was used or has expired. Get a new one."));
        };
        store.put_connection(id, &listener).await?;
        let end = (Task::End, listener.end().0 - now);
        let sent = tasks.send(id, &[end]).await;
        sent.map_err(|error| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable").cause(error.to_string())
        })
    }

    /// A client sends a frame. The client receives what failed and can send the frame again.
    pub async fn receive(&self, id: &str, text: &str) {
        if let Err(failure) = self.process(id, text).await {
            tracing::error!(%failure, "a frame was not processed");
            let frame = error("unavailable", "The frame was not processed. Send it again.");
            // The client may be what cannot be reached.
            let _ = self.delivery.sockets.post(id, &frame).await;
        }
    }

    async fn process(&self, id: &str, text: &str) -> Result<(), Failure> {
        let sockets = &self.delivery.sockets;
        let invalid = |errors: Vec<FieldError>| {
            ServerFrame::Error(
                "invalid_request",
                "The frame does not fit its schema.".to_owned(),
                errors,
            )
        };
        let frame = match ClientFrame::parse(text) {
            Ok(frame) => frame,
            Err(errors) => {
                sockets.post(id, &invalid(errors)).await?;
                return Ok(());
            }
        };
        match (frame.action, frame.after()) {
            (ClientAction::Ping, _) => _ = sockets.post(id, &ServerFrame::Pong).await?,
            (ClientAction::Subscribe, Ok(after)) => {
                self.subscribe(id, after, frame.filter.into()).await?;
            }
            (ClientAction::Subscribe, Err(error)) => {
                sockets.post(id, &invalid(vec![error])).await?;
            }
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        id: &str,
        after: Option<FeedPosition>,
        filter: FeedFilter,
    ) -> Result<(), Failure> {
        let Delivery {
            store,
            clock,
            sockets,
            tasks,
        } = &self.delivery;
        let Some(connection) = self.delivery.open(id).await? else {
            return Ok(());
        };
        let listener = connection.listener;
        if let (Some(project), FeedView::Tenant { reader, .. }) = (&filter.project, &listener.view)
            && let Err(forbidden) = reader.require_project(&listener.tenant, project)
        {
            let frame = error("forbidden", &forbidden.to_string());
            sockets.post(id, &frame).await?;
            return Ok(());
        }
        let now = clock.now();
        let earliest = FeedPosition::before(now - TimeDelta::days(LEDGER_DAYS.into()));
        // An entry that is being written now may precede a later position.
        let settled = FeedPosition::before(now - SETTLED_AFTER);
        let after = after.unwrap_or(settled).clamp(earliest, settled);
        let mut progress = Progress::from(after);
        progress.plan_check(now);
        let subscription = Subscription {
            id: Uuid::new_v4(),
            filter,
        };
        // Before the connection can be woken, so that no event precedes it.
        match sockets.post(id, &ServerFrame::Subscribed(after)).await? {
            Posted::Sent => {}
            Posted::Gone => return Ok(()),
            // The frame may have arrived, but nothing follows: the client must subscribe again.
            Posted::Busy => return Err(Failure::Busy),
        }
        let subscribed = store.subscribe(id, &listener, &subscription, &progress);
        if subscribed.await? {
            let deliveries = [
                (Task::Deliver, TimeDelta::zero()),
                (Task::Deliver, CHECK_AFTER),
            ];
            tasks.send(id, &deliveries).await?;
        }
        Ok(())
    }

    /// A client has left. Three calls.
    pub async fn disconnect(&self, id: &str) -> Result<(), hearback_storage::Error> {
        self.delivery.store.delete_connection(id).await
    }
}

fn error(code: &'static str, detail: &str) -> ServerFrame {
    ServerFrame::Error(code, detail.to_owned(), Vec::new())
}
