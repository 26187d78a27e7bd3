//! Keeps messages apart: what one of them does to the code that works on it, a panic included,
//! stays its own trouble.

use std::future::Future;

use futures::future::join_all;

/// Works on groups side by side, each in a task of its own. A group that fails, by error or
/// panic, is tried again item by item, so that only the items that fail alone are reported. That
/// is right only for work that may be repeated.
pub(crate) async fn each_group<T, W, F, E>(groups: Vec<Vec<T>>, work: W) -> Vec<(T, String)>
where
    T: Clone + Send + 'static,
    W: Fn(Vec<T>) -> F,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: ToString + Send + 'static,
{
    let attempts = groups.into_iter().map(|group| {
        let attempt = tokio::spawn(work(group.clone()));
        async move { (group, ended(attempt).await) }
    });
    let mut failed = Vec::new();
    for (mut group, result) in join_all(attempts).await {
        let Err(reason) = result else { continue };
        if group.len() == 1 {
            failed.extend(group.pop().map(|item| (item, reason)));
            continue;
        }
        for item in group {
            if let Err(reason) = ended(tokio::spawn(work(vec![item.clone()]))).await {
                failed.push((item, reason));
            }
        }
    }
    failed
}

/// How a task ended. A panic's message may quote data, so that it panicked is all that is said.
async fn ended<E: ToString>(task: tokio::task::JoinHandle<Result<(), E>>) -> Result<(), String> {
    match task.await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("the signal generator panicked".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn a_panic_or_an_error_harms_no_neighbour() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let seen = done.clone();
        let failed = each_group(vec![vec![1, 2, 3], vec![4], vec![5, 6]], move |group| {
            let seen = seen.clone();
            async move {
                assert!(!group.contains(&2), "poisoned");
                if group.contains(&4) {
                    return Err("four fails");
                }
                seen.lock().unwrap().extend(group);
                Ok(())
            }
        })
        .await;
        let mut done = done.lock().unwrap().clone();
        done.sort_unstable();
        assert_eq!(done, [1, 3, 5, 6]);
        assert_eq!(
            failed,
            [
                (2, "the signal generator panicked".to_owned()),
                (4, "four fails".to_owned())
            ]
        );
    }
}
