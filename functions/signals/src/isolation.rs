//! Isolates messages: an error or a panic while one is processed does not affect the others.

use std::future::Future;

use futures::future::join_all;
use hearback_lambda::queue::{MessageFailure, Reason, task_result};

/// Processes groups concurrently, each in a task of its own. A group that fails or panics is repeated item by item, so
/// that only the items that fail alone are reported. `work` must be repeatable.
pub(crate) async fn each_group<T, W, F, E>(groups: Vec<Vec<T>>, work: W) -> Vec<(T, Reason)>
where
    T: Clone + Send + 'static,
    W: Fn(Vec<T>) -> F,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: MessageFailure + Send + 'static,
{
    let attempts = groups.into_iter().map(|group| {
        let attempt = tokio::spawn(work(group.clone()));
        async move { (group, task_result(attempt.await)) }
    });
    let mut failed = Vec::new();
    for (mut group, result) in join_all(attempts).await {
        let Err(reason) = result else { continue };
        if group.len() == 1 {
            failed.extend(group.pop().map(|item| (item, reason)));
            continue;
        }
        for item in group {
            if let Err(reason) = task_result(tokio::spawn(work(vec![item.clone()])).await) {
                failed.push((item, reason));
            }
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use hearback_lambda::queue::RetryLimit;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("four fails")]
    struct Fails;

    impl MessageFailure for Fails {
        fn tries(&self) -> RetryLimit {
            RetryLimit::Many
        }
    }

    #[tokio::test]
    async fn a_panic_or_an_error_does_not_affect_other_items() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let seen = done.clone();
        let failed = each_group(vec![vec![1, 2, 3], vec![4], vec![5, 6]], move |group| {
            let seen = seen.clone();
            async move {
                assert!(!group.contains(&2), "poisoned");
                if group.contains(&4) {
                    return Err(Fails);
                }
                seen.lock().unwrap().extend(group);
                Ok(())
            }
        })
        .await;
        let mut done = done.lock().unwrap().clone();
        done.sort_unstable();
        assert_eq!(done, [1, 3, 5, 6]);
        let reason = |text: &str, tries| Reason {
            text: text.to_owned(),
            tries,
        };
        assert_eq!(
            failed,
            [
                (2, reason("the function panicked", RetryLimit::Few)),
                (4, reason("four fails", RetryLimit::Many))
            ]
        );
    }
}
