//! A bundle without problems logs nothing, from start to stop.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hearback_tests::events::acceptance;
use hearback_tests::process::Process;
use hearback_tests::served::Served;
use reqwest::Method;
use tokio::task::JoinSet;

fn logged(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_bundle_that_is_stopped_logs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let process = Process::serve_quietly("", &data, File::create(&log).unwrap()).await;
    let served = Served::by(&process, &data);
    served.settled().await;
    assert!(process.terminate().await);
    assert_eq!(logged(&log), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_stopped_under_load_logs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    for _ in 0..3 {
        let process = Process::serve_quietly("", &data, File::create(&log).unwrap()).await;
        let served = Arc::new(Served::by(&process, &data));
        let accepted = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        for client in 0..20 {
            let (served, accepted) = (served.clone(), accepted.clone());
            clients.spawn(async move {
                loop {
                    let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
                    let event = acceptance(&format!("user-{client}"));
                    match submit.json(&event).send().await {
                        Ok(response) if response.status() == 202 => {}
                        _ => return,
                    }
                    accepted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let under_load = async {
            while accepted.load(Ordering::Relaxed) < 200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let under_load = tokio::time::timeout(Duration::from_secs(60), under_load).await;
        assert!(under_load.is_ok(), "{}", logged(&log));
        assert!(process.terminate().await);
        clients.join_all().await;
        assert_eq!(logged(&log), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_condition_logs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let process = Process::serve_quietly("", &data, File::create(&log).unwrap()).await;
    let served = Served::by(&process, &data);
    let event = acceptance("ada");
    let mut another = event.clone();
    another["data"]["rating"] = 1.into();
    for (event, expected) in [(&event, 202), (&event, 409), (&another, 409)] {
        let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
        let response = submit.json(event).send().await.unwrap();
        assert_eq!(response.status(), expected);
    }
    // Concurrent events of one user contend for the preferences.
    let mut users = JoinSet::new();
    for _ in 0..50 {
        let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
        let submit = submit.json(&acceptance("ada")).send();
        users.spawn(async move { submit.await.unwrap().status() });
    }
    let responses = users.join_all().await;
    assert!(
        responses.iter().all(|status| *status == 202),
        "{responses:?}"
    );
    served.settled().await;
    assert!(process.terminate().await);
    assert_eq!(logged(&log), "");
}
