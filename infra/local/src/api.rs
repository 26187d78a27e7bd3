//! A client of the API, for commands.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// An API and a token for it.
#[derive(Clone)]
pub struct Api {
    client: Client,
    url: Url,
    token: String,
}

impl Api {
    /// The API at a URL. Requests are sent with this token.
    pub fn new(url: Url, token: String) -> Result<Self> {
        let client = Client::builder().timeout(TIMEOUT).build()?;
        Ok(Self { client, url, token })
    }

    /// A request whose path has these segments.
    pub fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder> {
        let mut url = self.url.clone();
        url.path_segments_mut()
            .ok()
            .context("the URL cannot have a path")?
            .pop_if_empty()
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(self.client.request(method, url).bearer_auth(&self.token))
    }
}

/// Sends a request, and returns the response's status and body; `null` for none.
pub async fn exchange(request: RequestBuilder) -> Result<(StatusCode, Value)> {
    let response = request.send().await;
    let response = response.context("the API cannot be reached")?;
    let status = response.status();
    let body = response.bytes().await?;
    if body.is_empty() {
        return Ok((status, Value::Null));
    }
    let body = serde_json::from_slice(&body);
    let body = body.with_context(|| format!("the API responded with {status}, and no JSON"))?;
    Ok((status, body))
}

/// Sends a request, and returns the body of a successful response; `null` for none.
pub async fn ask(request: RequestBuilder) -> Result<Value> {
    let (status, body) = exchange(request).await?;
    ensure!(
        status.is_success(),
        "the API responded with {status}: {}",
        reason(&body)
    );
    Ok(body)
}

/// Why a request was rejected, according to its problem document.
#[must_use]
pub fn reason(problem: &Value) -> String {
    let text = |of: &Value, name: &str| {
        let text = of.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let errors = problem.get("errors").and_then(Value::as_array);
    let errors = errors.into_iter().flatten().map(|error| {
        let member = text(error, "pointer");
        format!(
            "{} {}",
            member.trim_start_matches('/'),
            text(error, "detail")
        )
    });
    let errors: Vec<_> = errors.collect();
    if errors.is_empty() {
        text(problem, "detail")
    } else {
        errors.join("; ")
    }
}
