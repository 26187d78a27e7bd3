//! Runs the function `operations` on Lambda.

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), lambda_runtime::Error> {
    hearback_lambda::serve(hearback_operations::routes()).await
}
