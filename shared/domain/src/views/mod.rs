//! What people and agents read: reports, timelines, a planner's context, the feed.
//!
//! | to change | look in |
//! |---|---|
//! | the report of a period, or of a conversation | [`period`], [`turn_report`] |
//! | the feedback that an agent receives about its turns | [`timeline`] |
//! | what a planner receives about a rejected turn | [`feedback_context`] |
//! | what the feed lists, in which order, and who may read it | [`feed`] |
//! | what insights count, and by what they group it | [`insights`] |
//! | the frames of the live feed, and how long a connection lasts | [`live`] |
//! | which messages a webhook receives, and when one that fails is called again | [`webhook`] |

pub mod feed;
pub mod feedback_context;
pub mod insights;
pub mod live;
pub mod period;
pub mod timeline;
pub mod turn_report;
pub mod webhook;
