//! All functions in one binary, which runs the one that `HEARBACK_FUNCTION` names, so that tests link the SDKs once
//! instead of a dozen times. A deployment has one binary for each function, from the same files.

#[path = "../../../functions/batch/src/main.rs"]
mod batch;
#[path = "../../../functions/console/src/main.rs"]
mod console;
#[path = "../../../functions/erasure/src/bin/eraser.rs"]
mod eraser;
#[path = "../../../functions/erasure/src/main.rs"]
mod erasure;
#[path = "../../../functions/export/src/main.rs"]
mod export;
#[path = "../../../functions/stream/src/bin/fanout.rs"]
mod fanout;
#[path = "../../../functions/batch/src/bin/imports.rs"]
mod imports;
#[path = "../../../functions/batch/src/bin/ingest.rs"]
mod ingest;
#[path = "../../../functions/insights/src/main.rs"]
mod insights;
#[path = "../../../functions/relay/src/bin/nats.rs"]
mod nats;
#[path = "../../../functions/operations/src/main.rs"]
mod operations;
#[path = "../../../functions/preferences/src/main.rs"]
mod preferences;
#[path = "../../../functions/signals/src/bin/publish.rs"]
mod publish;
#[path = "../../../functions/retrieval/src/main.rs"]
mod retrieval;
#[path = "../../../functions/signals/src/main.rs"]
mod signals;
#[path = "../../../functions/stream/src/main.rs"]
mod stream;
#[path = "../../../functions/submit/src/main.rs"]
mod submit;
#[path = "../../../functions/turns/src/main.rs"]
mod turns;
#[path = "../../../functions/relay/src/bin/webhook_sender.rs"]
mod webhook_sender;
#[path = "../../../functions/relay/src/bin/webhooks.rs"]
mod webhooks;

use hearback_tests::process::FUNCTION;

fn main() -> Result<(), lambda_runtime::Error> {
    let name = std::env::var(FUNCTION).map_err(|_| format!("{FUNCTION} names no function"))?;
    match name.as_str() {
        "batch" => batch::main(),
        "console" => console::main(),
        "eraser" => eraser::main(),
        "erasure" => erasure::main(),
        "export" => export::main(),
        "fanout" => fanout::main(),
        "imports" => imports::main(),
        "ingest" => ingest::main(),
        "insights" => insights::main(),
        "nats" => nats::main(),
        "operations" => operations::main(),
        "preferences" => preferences::main(),
        "publish" => publish::main(),
        "retrieval" => retrieval::main(),
        "signals" => signals::main(),
        "stream" => stream::main(),
        "submit" => submit::main(),
        "turns" => turns::main(),
        "webhook-sender" => webhook_sender::main(),
        "webhooks" => webhooks::main(),
        _ => Err(format!("there is no function {name}").into()),
    }
}
