//! Hearback's model and rules, as pure functions. See docs/reference/rules.md.
//!
//! The crate does no I/O, calls no AWS API and reads no clock and no random numbers: time is an argument, so that tests
//! can call every rule directly. Input is parsed once, at the edge, into types that cannot hold an invalid value
//! ([`hearback_wire`]).
//!
//! | to change | look in |
//! |---|---|
//! | what an event may contain | [`event`], [`submission`] |
//! | what a team compares answers by | [`labels`] |
//! | the learning signals of an event | [`signal`] |
//! | how a user reacts to a turn, or rates a message | [`reaction`], [`message_signal`] |
//! | the event of each kind of feedback in the ledger | [`ledger`] |
//! | which message signals and events count as reactions to a turn, and the status of a turn | [`counted`], [`turn_status`] |
//! | which of a user's feedback on a turn counts in rates and timelines | [`voice`] |
//! | what is published to subscribers | [`publication`] |
//! | how preferences look, change and learn | [`preferences`] |
//! | who may act for whom | [`caller`] |
//! | what is stored of an anonymous user | [`privacy`] |
//! | what an erasure removes, and how long it applies | [`erasure`] |
//! | how a turn is registered in one or two steps, and its retention | [`turn`], [`registration`], [`retention`] |
//! | the feedback that an agent receives about its turns | [`timeline`] |
//! | what an evaluation reads, over all users | [`evaluation`] |
//! | the rows of the training export | [`training`] |
//! | the feed: what was published, in order, and who may read it | [`feed`] |
//! | how old reaction rows are read | [`legacy`] |
//! | which past turn a message is about | [`embedding`], [`target`] |
//! | how past turns are ranked, and what to do after consecutive rejections | [`satisfaction`], [`sequence`] |
//! | what a planner receives about a rejected turn | [`feedback_context`] |
//! | how users' texts are quoted in prompts | [`prompt`] |
//! | which characters SQS and SNS accept | [`sqs_text`] |
//! | what is stored of a rejected event | [`rejected_body`] |
//!
//! Of our crates it imports `detection`, `scrub`, `text` and `wire`.

pub mod caller;
pub mod claims;
pub mod counted;
pub mod cursor;
pub mod dedupe;
pub mod digest;
pub mod embedded;
pub mod embedding;
pub mod erasure;
pub mod evaluation;
pub mod event;
pub mod exchange;
pub mod feed;
pub mod feedback_context;
pub mod follow_up;
pub mod identifier;
pub mod import;
pub mod labels;
pub mod language;
pub mod ledger;
pub mod legacy;
pub mod lines;
pub mod member_digests;
pub mod message_signal;
pub mod mirror;
pub mod page;
pub mod payload;
pub mod period;
pub mod preferences;
pub mod privacy;
pub mod prompt;
pub mod publication;
pub mod rarity;
pub mod reaction;
pub mod recency;
pub mod registration;
pub mod rejected_body;
pub mod retention;
pub mod satisfaction;
pub mod sequence;
pub mod signal;
pub mod sqs_text;
pub mod submission;
pub mod target;
pub mod timeline;
pub mod training;
pub mod turn;
pub mod turn_report;
pub mod turn_status;
pub mod voice;
