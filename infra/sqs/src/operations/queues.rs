//! Operations on queues.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::URL_SAFE};

use crate::{
    Sqs,
    fault::Fault,
    name::QueueName,
    queue_attributes::QueueAttributes,
    store::{
        Unit,
        queues::{self, Counts},
    },
    wire::{
        request::{
            CreateQueue, GetQueueAttributes, GetQueueUrl, ListQueues, OfQueue, SetQueueAttributes,
        },
        response::{Attributes, Empty, QueueUrl, Queues},
    },
};

/// How many messages can be received, are in flight, and are delayed.
const COUNTS: [&str; 3] = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
];
/// The maximum number of queues on one page.
const MAX_PAGE: i64 = 1_000;

impl Sqs {
    pub(crate) async fn create_queue(
        &self,
        request: CreateQueue,
        host: &str,
    ) -> Result<QueueUrl, Fault> {
        if request.tags.is_some_and(|tags| !tags.is_empty()) {
            return Err(Fault::Unsupported("A queue with tags".to_owned()));
        }
        let name = QueueName::parse(&request.queue_name)?;
        let queue_url = name.url(host);
        let settings = request.attributes.unwrap_or_default();
        self.writer
            .run(move |unit| queues::create(unit, &name, &settings))
            .await?;
        Ok(QueueUrl { queue_url })
    }

    pub(crate) async fn get_queue_url(
        &self,
        request: GetQueueUrl,
        host: &str,
    ) -> Result<QueueUrl, Fault> {
        let name = QueueName::stored(request.queue_name);
        let queue = self
            .writer
            .run(move |unit| queues::find(unit, &name))
            .await?;
        Ok(QueueUrl {
            queue_url: queue.name.url(host),
        })
    }

    /// Pages only if the caller gave a size, as SQS does; without one, the first thousand.
    pub(crate) async fn list_queues(
        &self,
        request: ListQueues,
        host: &str,
    ) -> Result<Queues, Fault> {
        let page = request.max_results.unwrap_or(MAX_PAGE);
        if !(1..=MAX_PAGE).contains(&page) {
            return Err(Fault::InvalidParameter(format!(
                "Value {page} for parameter MaxResults is invalid. \
                 Reason: Must be between 1 and {MAX_PAGE}, if provided."
            )));
        }
        let after = request
            .next_token
            .as_deref()
            .map(read_token)
            .transpose()?
            .unwrap_or_default();
        let prefix = request.queue_name_prefix.unwrap_or_default();
        let limit = page + 1;
        let mut names = self
            .writer
            .run(move |unit| queues::list(unit, &prefix, &after, limit))
            .await?;
        let page = usize::try_from(page).unwrap_or(usize::MAX);
        let more = names.len() > page && request.max_results.is_some();
        names.truncate(page);
        let next_token = names
            .last()
            .filter(|_| more)
            .map(|name| URL_SAFE.encode(name.as_str()));
        Ok(Queues {
            queue_urls: names.iter().map(|name| name.url(host)).collect(),
            next_token,
        })
    }

    pub(crate) async fn get_queue_attributes(
        &self,
        request: GetQueueAttributes,
    ) -> Result<Attributes, Fault> {
        let name = QueueName::of_url(&request.queue_url);
        let wanted = request.attribute_names.unwrap_or_default();
        if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
            return Err(Fault::InvalidAttributeName(unknown.clone()));
        }
        let attributes = self
            .writer
            .run(move |unit| describe(unit, &name, &wanted))
            .await?;
        Ok(Attributes { attributes })
    }

    pub(crate) async fn set_queue_attributes(
        &self,
        request: SetQueueAttributes,
    ) -> Result<Empty, Fault> {
        let name = QueueName::of_url(&request.queue_url);
        let settings = request.attributes;
        self.writer
            .run(move |unit| queues::configure(unit, &name, &settings))
            .await?;
        Ok(Empty {})
    }

    pub(crate) async fn purge_queue(&self, request: OfQueue) -> Result<Empty, Fault> {
        let name = QueueName::of_url(&request.queue_url);
        self.writer
            .run(move |unit| queues::purge(unit, &name))
            .await?;
        Ok(Empty {})
    }

    pub(crate) async fn delete_queue(&self, request: OfQueue) -> Result<Empty, Fault> {
        let name = QueueName::of_url(&request.queue_url);
        self.writer
            .run(move |unit| queues::delete(unit, &name))
            .await?;
        Ok(Empty {})
    }
}

fn is_known(name: &str) -> bool {
    let of_the_queue = [
        "All",
        "QueueArn",
        "CreatedTimestamp",
        "LastModifiedTimestamp",
    ];
    of_the_queue.contains(&name) || COUNTS.contains(&name) || QueueAttributes::knows(name)
}

/// The requested attributes. Counts messages only if a count is requested, since counting is slow.
fn describe(
    unit: &Unit<'_>,
    name: &QueueName,
    wanted: &[String],
) -> Result<BTreeMap<&'static str, String>, Fault> {
    let is_wanted = |name: &str| {
        wanted
            .iter()
            .any(|wanted| wanted == name || wanted == "All")
    };
    let queue = queues::find(unit, name)?;
    let mut all = queue.attributes.to_wire();
    all.extend([
        ("QueueArn", queue.name.arn(unit.region)),
        ("CreatedTimestamp", (queue.created_at / 1_000).to_string()),
        (
            "LastModifiedTimestamp",
            (queue.modified_at / 1_000).to_string(),
        ),
    ]);
    if COUNTS.into_iter().any(is_wanted) {
        let Counts {
            visible,
            in_flight,
            delayed,
        } = queues::count(unit, &queue)?;
        all.extend(
            COUNTS
                .into_iter()
                .zip([visible, in_flight, delayed].map(|n| n.to_string())),
        );
    }
    all.retain(|name, _| is_wanted(name));
    Ok(all)
}

fn read_token(token: &str) -> Result<String, Fault> {
    URL_SAFE
        .decode(token)
        .ok()
        .and_then(|name| String::from_utf8(name).ok())
        .ok_or_else(|| Fault::InvalidParameter("The NextToken is invalid.".to_owned()))
}
