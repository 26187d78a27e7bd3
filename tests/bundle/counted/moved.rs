//! A message signal of one name in two projects: it counts for the message that it was set on last, and for no other.

use super::*;

#[tokio::test]
async fn a_signal_that_moves_to_another_project_no_longer_counts_in_the_first() {
    let app = TestApp::start().await;
    let projects = ["qc", "qd"];
    let at = |project: &str| format!("/conversations/acme/{project}/c/turns/t");
    let tokens = projects.map(|project| app.token_in("ada", &[project]));
    for (project, token) in projects.iter().zip(&tokens) {
        let turn = message("m", QUERY, "Here are three business laptops.");
        let response = app.put(token, &at(project), &turn).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    }
    let settles = async |statuses: [&str; 2]| {
        eventually(|| async {
            for ((project, token), status) in projects.iter().zip(&tokens).zip(statuses) {
                let turn = app.get(token, &at(project)).await.body;
                if turn["user_feedback_status"] != status {
                    return None;
                }
            }
            Some(())
        })
        .await;
        Stored::settled(&app.bundle.clients, &Names::default()).await;
    };
    let signal = json!({"message_id": "m", "signal": "unsafe"});
    for (set_in, statuses) in [
        (0, ["rejected", "neutral"]),
        (1, ["neutral", "rejected"]),
        (0, ["rejected", "neutral"]),
    ] {
        let sent = app.post(&tokens[set_in], SIGNALS, &signal).await;
        assert!(sent.status.is_success(), "{}", sent.body);
        settles(statuses).await;
    }
    let both = app.token_in("ada", &projects);
    let withdrawal = format!("{SIGNALS}?message_id=m&signal=unsafe");
    let withdrawn = app.delete(&both, &withdrawal).await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    settles(["neutral", "neutral"]).await;
}
