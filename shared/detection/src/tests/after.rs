//! Turns that may precede a message.

use super::*;

use After::{
    Answer, Choices, Code, Confirmation, More, NewsAndMore, Offer, Question, Steps, Unknown,
};

/// The turn before a message.
pub(super) enum After {
    /// Not known.
    Unknown,
    /// An answer with a statement.
    Answer,
    /// An answer with code to run.
    Code,
    /// A question for a detail.
    Question,
    /// Several things to choose from.
    Choices,
    /// Steps to take.
    Steps,
    /// A statement, and whether there is anything else.
    NewsAndMore,
    /// An offer to do something.
    Offer,
    /// Whether it has understood.
    Confirmation,
    /// Whether there is anything else.
    More,
}

/// What the phrases detect in a message after that turn.
pub(super) fn verdict(after: &After, message: &str) -> Detection {
    let (prev_query, prev_response) = match after {
        Unknown => (None, None),
        Answer => (
            Some("How do I keep a list of customers in order?"),
            Some("A sorted map keeps its keys in order. Insert each customer under a number."),
        ),
        Code => (
            Some("Write a function that parses the config file"),
            Some("Here it is:\n```rust\nfn parse() {}\n```\nCall it at the start of main."),
        ),
        Question => (
            Some("Book a table for tonight"),
            Some("Sure. Which area of the city do you prefer?"),
        ),
        Choices => (
            Some("lamps under 40 euros"),
            Some("There are three: the Arco for 35, the Luna for 38 and the Stella for 29 euros."),
        ),
        Steps => (
            Some("The scanner is not found"),
            Some("Turn the scanner off and on again. Then select it in the settings."),
        ),
        NewsAndMore => (
            Some("Where is my parcel?"),
            Some("Your parcel was delivered on Tuesday. Is there anything else I can do for you?"),
        ),
        Offer => (
            Some("Rename the column to total"),
            Some("I have renamed the column. Would you like me to update the tests as well?"),
        ),
        Confirmation => (
            Some("Book a table at Luigi's at six"),
            Some("You want a table for 2 at Luigi's at 6 pm. Is that correct?"),
        ),
        More => (
            Some("Thanks"),
            Some("You're welcome! Is there anything else that I can help you with?"),
        ),
    };
    Detector::embedded().by_phrases(&Exchange {
        prev_query,
        prev_response,
        message,
        language: None,
        embedding_similarity: None,
        repeats_query: None,
        earlier: &[],
    })
}
