//! The table's rows, read and damaged without the API.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

/// A row of the table.
pub type Row = HashMap<String, AttributeValue>;

/// Every row of a table.
pub async fn rows(dynamodb: &aws_sdk_dynamodb::Client, table: &str) -> Vec<Row> {
    let scan = dynamodb.scan().table_name(table).into_paginator();
    let rows = scan.items().send().try_collect().await;
    rows.unwrap()
}

/// The text of an attribute; empty if the row does not have it.
#[must_use]
pub fn attribute<'a>(row: &'a Row, name: &str) -> &'a str {
    let text = row.get(name).and_then(|value| value.as_s().ok());
    text.map_or("", String::as_str)
}

/// Cuts an attribute of a row off after its first character, so that the row cannot be read.
pub async fn damage(dynamodb: &aws_sdk_dynamodb::Client, table: &str, row: &Row, name: &str) {
    let rest = attribute(row, name)
        .chars()
        .next()
        .expect("the attribute is not empty");
    let update = dynamodb
        .update_item()
        .table_name(table)
        .key("PK", row["PK"].clone())
        .key("SK", row["SK"].clone())
        .update_expression("SET #name = :rest")
        .expression_attribute_names("#name", name)
        .expression_attribute_values(":rest", AttributeValue::S(rest.to_string()));
    update.send().await.unwrap();
}

/// Damages the first claim, vector and activity marker, so that what they lead to must be searched.
pub async fn damage_pointers(dynamodb: &aws_sdk_dynamodb::Client, table: &str) {
    let rows = rows(dynamodb, table).await;
    for (key, prefix, name) in [
        ("SK", "CLAIM#", "feedbackId"),
        ("SK", "VEC#", "core"),
        ("PK", "DAY#", "core"),
    ] {
        let found = rows
            .iter()
            .filter(|row| attribute(row, key).starts_with(prefix));
        let first = found.min_by_key(|row| (attribute(row, "PK"), attribute(row, "SK")));
        let first = first.expect("there is one of each");
        damage(dynamodb, table, first, name).await;
    }
}

/// A row as text, its attributes in order.
#[must_use]
pub fn text(row: &Row) -> String {
    let mut attributes: Vec<_> = row.iter().map(|pair| format!("{pair:?}")).collect();
    attributes.sort();
    attributes.join("\n")
}
