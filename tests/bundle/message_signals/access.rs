//! Who may rate a message, who sees the signal, and in which project it is.

use super::*;

#[tokio::test]
async fn a_message_of_another_project_looks_unknown_and_neither_stores_anything() {
    let (app, token) = with_message().await;
    let before = everything(&app).await;
    let other_project = app.token_in("ada", &["billing"]);
    let other_tenant = app.token_of("ada", "other", "feedback:on-behalf feedback:admin");
    let mut responses = Vec::new();
    for (token, body) in [
        (
            &token,
            json!({"message_id": "unknown", "signal": "helpful"}),
        ),
        (&other_project, signal("helpful")),
        (&other_tenant, signal("helpful")),
        // A chat does not give access.
        (
            &other_project,
            json!({"message_id": "m", "signal": "helpful", "chat_id": "c"}),
        ),
    ] {
        let mut response = submit_signal(&app, token, body).await;
        response.body["request_id"] = Value::Null;
        responses.push((response.status, response.body));
        // A withdrawal reveals nothing either.
        assert_eq!(
            withdraw(&app, token, "helpful").await.status,
            StatusCode::NO_CONTENT
        );
    }
    assert_eq!(responses[0].0, StatusCode::NOT_FOUND);
    assert!(
        responses.iter().all(|response| *response == responses[0]),
        "{responses:?}"
    );
    assert_eq!(everything(&app).await, before);
}

#[tokio::test]
async fn registering_a_message_id_of_another_project_reveals_nothing() {
    let (app, ada) = with_message().await;
    let other = app.token_in("eve", &["billing"]);
    let turn = "/conversations/acme/billing/c/turns/t";
    let registered = app.put(&other, turn, &message("m", "c", "d")).await;
    assert_eq!(registered.status, StatusCode::CREATED);
    // Each user rates and reads the message of their own project.
    assert_eq!(
        submit_signal(&app, &other, signal("helpful")).await.status,
        StatusCode::CREATED
    );
    assert_eq!(
        submit_signal(&app, &ada, signal("helpful")).await.status,
        StatusCode::CREATED
    );
    assert_eq!(rows(&app, &other, "").await[0]["workspace_id"], "billing");
    assert_eq!(
        rows(&app, &ada, "").await[0]["workspace_id"],
        "order-service"
    );
    // For a user of both projects the first project of the token counts.
    let both = app.token_in("zoe", &["billing", "order-service"]);
    submit_signal(&app, &both, signal("helpful")).await;
    assert_eq!(rows(&app, &both, "").await[0]["workspace_id"], "billing");
}

#[tokio::test]
async fn no_scope_reads_or_withdraws_signals_of_others() {
    let (app, ada) = with_message().await;
    submit_signal(
        &app,
        &ada,
        json!({"message_id": "m", "signal": "edit", "reason": "secret"}),
    )
    .await;
    let own = rows(&app, &ada, "").await;
    let events = ledger(&app, &ada, 1).await;
    let event = format!("/v1/feedback/{}", events[0]["feedbackId"].as_str().unwrap());
    let scopes = "feedback:on-behalf feedback:report feedback:admin";
    for other in [
        app.token_of("eve", "acme", scopes),
        app.token_of("ada", "other", scopes),
    ] {
        for query in [
            "",
            "?message_id=m",
            "?signal=edit",
            "?message_id=m&signal=edit",
        ] {
            assert_eq!(rows(&app, &other, query).await, Vec::<Value>::new());
        }
        assert_eq!(
            withdraw(&app, &other, "edit").await.status,
            StatusCode::NO_CONTENT
        );
        // The event is as private as the row.
        let response = app.get(&other, &event).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(rows(&app, &ada, "").await, own);
    assert_eq!(app.get(&ada, &event).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_chat_moves_a_signal_only_between_projects_of_its_user() {
    let (app, _) = with_message().await;
    let both = app.token_in("ada", &["billing", "order-service"]);
    let mut turn = message("other", "a", "b");
    turn["user_id"] = json!("eve");
    let agent = app.token_of("agent", "acme", "feedback:on-behalf");
    let third = "/conversations/acme/order-service/in-order-service/turns/t";
    app.put(&agent, third, &turn).await;
    for project in ["billing", "secret"] {
        let token = app.token_in("eve", &[project]);
        let path = format!("/conversations/acme/{project}/in-{project}/turns/t");
        let response = app.put(&token, &path, &message(project, "a", "b")).await;
        assert_eq!(response.status, StatusCode::CREATED);
    }
    let submit_with_chat = |chat: Option<&'static str>| {
        let (app, both) = (&app, &both);
        async move {
            let mut body = signal("helpful");
            if let Some(chat) = chat {
                body["chat_id"] = json!(chat);
            }
            submit_signal(app, both, body).await;
            let row = rows(app, both, "?message_id=m").await.remove(0);
            (row["workspace_id"].clone(), row["chat_id"].clone())
        }
    };
    // The project of the message counts without a chat, and with an unknown chat.
    assert_eq!(
        submit_with_chat(None).await,
        (json!("order-service"), Value::Null)
    );
    assert_eq!(
        submit_with_chat(Some("?")).await,
        (json!("order-service"), json!("?"))
    );
    // A chat in another project of the caller moves the signal there, and it stays there.
    let in_billing = (json!("billing"), json!("in-billing"));
    assert_eq!(submit_with_chat(Some("in-billing")).await, in_billing);
    assert_eq!(submit_with_chat(None).await, in_billing);
    // A chat in a project without access moves nothing.
    let (workspace, _) = submit_with_chat(Some("in-secret")).await;
    assert_eq!(workspace, "billing");
    // The conversation of the message moves it back.
    let (workspace, _) = submit_with_chat(Some("c")).await;
    assert_eq!(workspace, "order-service");
    assert_eq!(submit_with_chat(Some("in-billing")).await, in_billing);
    // A chat that was unknown moves the signal once it is known.
    submit_with_chat(Some("later")).await;
    let token = app.token_in("eve", &["billing"]);
    let later = "/conversations/acme/billing/later/turns/t";
    submit_with_chat(Some("c")).await;
    assert_eq!(submit_with_chat(Some("later")).await.0, "order-service");
    app.put(&token, later, &message("later", "a", "b")).await;
    assert_eq!(submit_with_chat(Some("later")).await.0, "billing");
    // A token without that project does not list the signal.
    let order_service_only = app.token_in("ada", &["order-service"]);
    assert_eq!(
        rows(&app, &order_service_only, "").await,
        Vec::<Value>::new()
    );
    // The next signal with such a token counts for the project of the token.
    submit_signal(&app, &order_service_only, signal("helpful")).await;
    let row = rows(&app, &order_service_only, "").await.remove(0);
    assert_eq!(row["workspace_id"], "order-service");
}
